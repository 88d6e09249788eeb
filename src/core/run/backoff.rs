//! Delays before further attempts at a model.

use std::time::Duration;

/// The delays before further attempts at a model, unless its provider names one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// The first delay, multiplied for each further attempt up to the cap. Each run waits between half of it and all of it,
    /// so that runs that failed together do not return together.
    Exponential {
        /// The delay before the second attempt.
        first: Duration,
        /// The longest delay.
        cap: Duration,
        /// The factor, at least 1.
        factor: u32,
    },
    /// Always the same delay.
    Constant(Duration),
}

impl Default for Backoff {
    fn default() -> Self {
        Self::Exponential { first: Duration::from_millis(500), cap: Duration::from_secs(8), factor: 2 }
    }
}

impl Backoff {
    /// The delay before the attempt with that number, from 2. `part` is the random part of its second half, in thousandths.
    pub fn delay(&self, attempt: u32, part: u32) -> Duration {
        match *self {
            Self::Constant(delay) => delay,
            Self::Exponential { first, cap, factor } => {
                let multiple = factor.saturating_pow(attempt.saturating_sub(2));
                let half = first.saturating_mul(multiple).min(cap) / 2;
                half + half.saturating_mul(part) / 1000
            }
        }
    }
}
