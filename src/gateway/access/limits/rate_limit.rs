//! Rate limiter: a token bucket per key, refilled at the rate (GCRA).

use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};

/// After how many checks full buckets are removed.
const CHECKS: u32 = 1024;

type Buckets<K> = RateLimiter<K, DashMapStateStore<K>, DefaultClock, StateInformationMiddleware>;

/// A rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    pub per_minute: NonZeroU32,
    /// The largest burst.
    pub burst: NonZeroU32,
}

/// A token bucket per key.
pub(super) struct Rates<K: Hash + Eq + Clone> {
    buckets: Buckets<K>,
    rate: Rate,
    checks: AtomicU32,
}

/// The rest of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RateState {
    rate: Rate,
    remaining: u32,
}

impl<K: Hash + Eq + Clone> Rates<K> {
    pub(super) fn new(rate: Rate) -> Self {
        let quota = Quota::per_minute(rate.per_minute).allow_burst(rate.burst);
        Self { buckets: RateLimiter::dashmap(quota).with_middleware(), rate, checks: AtomicU32::new(0) }
    }

    /// Takes a token from the bucket. The error is how long to wait for one.
    pub(super) fn check(&self, key: &K) -> Result<RateState, Duration> {
        if self.checks.fetch_add(1, Ordering::Relaxed) % CHECKS == CHECKS - 1 {
            self.buckets.retain_recent();
        }
        match self.buckets.check_key(key) {
            Ok(state) => Ok(RateState { rate: self.rate, remaining: state.remaining_burst_capacity() }),
            Err(not_yet) => Err(not_yet.wait_time_from(DefaultClock::default().now())),
        }
    }

    /// The state of an empty bucket, for a caller that has to wait.
    pub(super) fn used_up(&self) -> RateState {
        RateState { rate: self.rate, remaining: 0 }
    }
}

impl RateState {
    /// `RateLimit-Policy`: the burst, and the seconds in which an empty bucket is full.
    pub(super) fn policy(self) -> String {
        format!(r#""requests";q={};w={}"#, self.rate.burst, self.rate.seconds_for(self.rate.burst.get()))
    }

    /// `RateLimit`: the tokens left, and the seconds until the bucket is full.
    pub(super) fn header_value(self) -> String {
        let missing = self.rate.burst.get().saturating_sub(self.remaining);
        format!(r#""requests";r={};t={}"#, self.remaining, self.rate.seconds_for(missing))
    }
}

impl Rate {
    /// The seconds in which so many tokens are refilled.
    fn seconds_for(self, count: u32) -> u64 {
        (u64::from(count) * 60).div_ceil(u64::from(self.per_minute.get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(per_minute: u32, burst: u32) -> Rate {
        Rate { per_minute: NonZeroU32::new(per_minute).unwrap(), burst: NonZeroU32::new(burst).unwrap() }
    }

    #[test]
    fn a_bucket_allows_a_burst_and_then_delays() {
        let rates = Rates::new(rate(6, 3));
        let left: Vec<String> = (0..3).map(|_| rates.check(&"ann").unwrap().header_value()).collect();
        assert_eq!(left, [r#""requests";r=2;t=10"#, r#""requests";r=1;t=20"#, r#""requests";r=0;t=30"#]);
        let wait = rates.check(&"ann").unwrap_err();
        assert!(wait > Duration::from_secs(9) && wait <= Duration::from_secs(10), "{wait:?}");
        assert!(rates.check(&"bob").is_ok());
        assert_eq!(rates.used_up().policy(), r#""requests";q=3;w=30"#);
    }

    #[test]
    fn buckets_that_are_full_again_are_not_kept() {
        let rates = Rates::new(rate(u32::MAX, 1));
        for guess in 0..10 * CHECKS {
            let _ = rates.check(&guess);
        }
        assert!(rates.buckets.len() <= 2 * CHECKS as usize, "{}", rates.buckets.len());
    }
}
