//! Reconnect backoff: exponential delays with jitter, so that servers that failed together do not retry together.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);

/// The minimum lifetime of a connection that resets the failure count.
pub(super) const STABLE: Duration = Duration::from_secs(60);

/// The delay after this many consecutive failures. It doubles with each failure; half of it is fixed, and `jitter`
/// (0..=1000) scales the other half.
pub(super) fn delay_after(failures: u32, jitter: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    // Random in half, so that the servers of one outage do not restart together (decision 0008).
    let half = FIRST.saturating_mul(1 << doublings).min(LONGEST) / 2;
    half + half.saturating_mul(jitter.min(1000)) / 1000
}

/// A random number in 0..=1000.
pub(super) fn jitter() -> u32 {
    let random = RandomState::new().build_hasher().finish();
    u32::try_from(random % 1001).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_delay_doubles_up_to_half_a_minute() {
        let longest: Vec<u128> = (1..=9).map(|failures| delay_after(failures, 1000).as_millis()).collect();
        assert_eq!(longest, [500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000]);
    }

    proptest! {
        #[test]
        fn a_delay_is_never_short_enough_for_a_hot_loop_nor_longer_than_half_a_minute(failures: u32, jitter: u32) {
            let delay = delay_after(failures, jitter);
            prop_assert!((FIRST / 2..=LONGEST).contains(&delay), "{delay:?}");
            prop_assert!(delay <= delay_after(failures, 1000) && delay >= delay_after(failures, 1000) / 2);
        }

        #[test]
        fn with_the_same_jitter_another_failure_never_shortens_the_delay(failures in 0u32..u32::MAX, jitter: u32) {
            prop_assert!(delay_after(failures, jitter) <= delay_after(failures + 1, jitter));
        }
    }

    #[test]
    fn luck_differs() {
        let drawn: std::collections::BTreeSet<u32> = (0..50).map(|_| jitter()).collect();
        assert!(drawn.len() > 10 && drawn.iter().all(|luck| *luck <= 1000), "{drawn:?}");
    }
}
