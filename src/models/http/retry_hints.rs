//! Retry hints: the headers by which a server controls retries.

use jiff::{Timestamp, fmt::rfc2822};
use toolgate_core::error::Failure;

/// The hints of one answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RetryHints {
    delay_ms: Option<u64>,
    should_retry: Option<bool>,
}

impl RetryHints {
    /// Reads `retry-after-ms` (finer, so it wins), `retry-after` in seconds or as an HTTP date, and `x-should-retry`.
    pub(super) fn read<'a>(header: impl Fn(&str) -> Option<&'a str>, now: Timestamp) -> Self {
        let delay_ms = header("retry-after-ms")
            .and_then(|text| milliseconds(text, 1.0))
            .or_else(|| header("retry-after").and_then(|text| milliseconds(text, 1000.0)))
            .or_else(|| header("retry-after").and_then(|text| until(text, now)));
        let should_retry = match header("x-should-retry") {
            Some("true") => Some(true),
            Some("false") => Some(false),
            Some(_) | None => None,
        };
        Self { delay_ms, should_retry }
    }

    /// Applies the hints to a failure: `x-should-retry` overrides the code.
    pub(super) fn apply(&self, failure: Failure) -> Failure {
        let retryable = self.should_retry.unwrap_or(failure.retryable);
        let delay_ms = self.delay_ms.or(failure.retry_after_ms).filter(|_| retryable);
        failure.retryable(retryable).after_ms(delay_ms)
    }
}

/// A decimal number of units, rounded up to whole milliseconds.
fn milliseconds(text: &str, unit_ms: f64) -> Option<u64> {
    let amount: f64 = text.trim().parse().ok()?;
    // The cast saturates, and a negative value or NaN means no delay.
    (amount >= 0.0).then(|| (amount * unit_ms).ceil() as u64)
}

/// The milliseconds until a date; a date in the past means now.
fn until(date: &str, now: Timestamp) -> Option<u64> {
    let date = rfc2822::DateTimeParser::new().parse_timestamp(date.trim()).ok()?;
    Some(u64::try_from(date.as_millisecond().saturating_sub(now.as_millisecond())).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delay(headers: &[(&str, &'static str)]) -> Option<u64> {
        let now = "2026-10-21T07:27:50Z".parse().unwrap();
        let header = |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        RetryHints::read(header, now).delay_ms
    }

    #[test]
    fn delays_are_read_in_every_form() {
        assert_eq!(delay(&[("retry-after", "2")]), Some(2_000));
        assert_eq!(delay(&[("retry-after", "0.5")]), Some(500));
        assert_eq!(delay(&[("retry-after", "2"), ("retry-after-ms", "1200")]), Some(1_200));
        assert_eq!(delay(&[("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT")]), Some(10_000));
        assert_eq!(delay(&[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")]), Some(0));
        assert_eq!(delay(&[("retry-after", "soon")]), None);
        assert_eq!(delay(&[("retry-after", "-1")]), None);
        assert_eq!(delay(&[("retry-after", "NaN")]), None);
    }
}
