//! Batching limits: the bounds of the span queue and of a batch, from the `OTEL_BSP_*` variables. Pure.

use std::time::Duration;

use super::SettingsError;
use super::variables::Variables;

/// The most spans that may wait. Root spans end last, so a short queue loses whole trees when many runs end together.
const QUEUE: usize = 65_536;
const QUEUE_BYTES: usize = 64 * 1024 * 1024;
const BATCH: usize = 512;
const DELAY_MS: usize = 5_000;
const EXPORT_MS: usize = 30_000;

/// The bounds of the queue and of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Batching {
    /// The most spans that may wait, including those in flight.
    pub(super) queue: usize,
    /// The most bytes that may wait, approximately.
    pub(super) queue_bytes: usize,
    /// The most spans of one request.
    pub(super) batch: usize,
    /// The most bytes of one request, approximately; a larger span is sent alone.
    pub(super) batch_bytes: usize,
    /// The longest time that a span waits for others.
    pub(super) delay: Duration,
    /// The time limit for the export of one batch, including retries.
    pub(super) timeout: Duration,
}

impl Batching {
    /// Reads the variables. `queue_bytes` comes from the configuration, `batch_bytes` from the transport.
    pub(super) fn resolve(
        queue_bytes: Option<usize>,
        batch_bytes: usize,
        variables: Variables<'_>,
    ) -> Result<Self, SettingsError> {
        let read = |name, least, usual| variables.number(name, least).map(|set| set.unwrap_or(usual));
        let queue = read("OTEL_BSP_MAX_QUEUE_SIZE", 1, QUEUE)?;
        Ok(Self {
            queue,
            queue_bytes: queue_bytes.unwrap_or(QUEUE_BYTES),
            batch: read("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 1, BATCH)?.min(queue),
            batch_bytes,
            delay: Duration::from_millis(read("OTEL_BSP_SCHEDULE_DELAY", 1, DELAY_MS)? as u64),
            timeout: Duration::from_millis(read("OTEL_BSP_EXPORT_TIMEOUT", 1, EXPORT_MS)? as u64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(set: &[(&str, &str)]) -> Result<Batching, SettingsError> {
        let env = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Batching::resolve(None, 1_000, Variables(&env))
    }

    #[test]
    fn each_variable_sets_one_bound_and_no_batch_is_larger_than_the_queue() {
        let usual = resolve(&[]).expect("sound");
        assert_eq!((usual.queue, usual.queue_bytes, usual.batch), (65_536, 67_108_864, 512));
        let ms = Duration::from_millis;
        for (name, expected) in [
            ("OTEL_BSP_MAX_QUEUE_SIZE", Batching { queue: 7, batch: 7, ..usual }),
            ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", Batching { batch: 7, ..usual }),
            ("OTEL_BSP_SCHEDULE_DELAY", Batching { delay: ms(7), ..usual }),
            ("OTEL_BSP_EXPORT_TIMEOUT", Batching { timeout: ms(7), ..usual }),
        ] {
            assert_eq!(resolve(&[(name, "7")]), Ok(expected), "{name}");
            let refused = resolve(&[(name, "seven")]).expect_err("refused").to_string();
            assert!(refused.contains(name), "{refused}");
        }
    }
}
