//! Timestamps in JSON for programs: always with milliseconds, so that they have one length and sort as text.

use jiff::Timestamp;
use serde::{Serialize, Serializer};

/// For `#[serde(serialize_with)]`: `2026-11-22T18:00:00.000Z`.
pub fn millis<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{at:.3}"))
}

/// The same for a time that may be missing.
pub fn optional_millis<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    at.map(|at| format!("{at:.3}")).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(Serialize)]
    struct Times {
        #[serde(serialize_with = "millis")]
        at: Timestamp,
        #[serde(serialize_with = "optional_millis")]
        until: Option<Timestamp>,
    }

    #[test]
    fn times_have_three_decimals() {
        let at: Timestamp = "2026-11-22T18:00:00Z".parse().unwrap();
        let until = Some("2026-11-22T18:00:00.123999Z".parse().unwrap());
        assert_eq!(
            json!(Times { at, until }),
            json!({"at": "2026-11-22T18:00:00.000Z", "until": "2026-11-22T18:00:00.123Z"})
        );
        assert_eq!(json!(Times { at, until: None })["until"], json!(null));
    }
}
