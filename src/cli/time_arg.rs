//! Time argument: a duration from now, a duration ago, or a timestamp.

use std::str::FromStr;

use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};

use super::view::clock;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// A duration, in the past or in the future as the flag defines.
    Away(SignedDuration),
    At(Timestamp),
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(at) = text.parse::<Timestamp>() {
            return Ok(Self::At(at));
        }
        let span = text.parse::<Span>().ok();
        let duration = span.and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()).ok());
        match duration {
            Some(duration) if duration.is_positive() => Ok(Self::Away(duration)),
            Some(_) | None => Err("write how long (90s, 30m, 8h, 2d) or when (2027-01-01T09:00:00Z)".into()),
        }
    }
}

impl Moment {
    /// The time, which must be in the past.
    pub(super) fn before(self, now: Timestamp) -> Result<Timestamp, String> {
        match self {
            Self::At(at) => Ok(at),
            Self::Away(duration) => now.checked_sub(duration).map_err(|_| "that is too long ago".to_owned()),
        }
    }

    /// The time, which must be in the future.
    pub(super) fn after(self, now: Timestamp) -> Result<Timestamp, String> {
        let at = match self {
            Self::At(at) => at,
            Self::Away(duration) => now.checked_add(duration).map_err(|_| "that is too far away".to_owned())?,
        };
        if at > now { Ok(at) } else { Err(format!("{} has passed; give a time in the future", clock(at))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_future_time_is_a_duration_or_a_timestamp() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        for (text, then) in [
            ("90s", "2026-01-01T00:01:30Z"),
            ("30m", "2026-01-01T00:30:00Z"),
            ("8h", "2026-01-01T08:00:00Z"),
            ("2d", "2026-01-03T00:00:00Z"),
            ("1d 12h", "2026-01-02T12:00:00Z"),
            ("1w", "2026-01-08T00:00:00Z"),
            ("2027-01-01T09:00:00Z", "2027-01-01T09:00:00Z"),
        ] {
            let at = text.parse::<Moment>().unwrap().after(now).unwrap();
            assert_eq!(at, then.parse::<Timestamp>().unwrap(), "{text}");
        }
    }

    #[test]
    fn a_past_time_is_a_duration_or_a_timestamp() {
        let now: Timestamp = "2026-01-08T00:00:00Z".parse().unwrap();
        for (text, then) in [
            ("1d 12h", "2026-01-06T12:00:00Z"),
            ("1w", "2026-01-01T00:00:00Z"),
            ("2025-01-01T09:00:00Z", "2025-01-01T09:00:00Z"),
        ] {
            let at = text.parse::<Moment>().unwrap().before(now).unwrap();
            assert_eq!(at, then.parse::<Timestamp>().unwrap(), "{text}");
        }
    }

    #[test]
    fn an_invalid_future_time_is_rejected_with_the_formats() {
        for text in ["", "soon", "8", "-8h", "0s"] {
            assert!(text.parse::<Moment>().unwrap_err().contains("8h"), "{text}");
        }
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        assert!(Moment::At(now).after(now).unwrap_err().contains("has passed"));
    }
}
