//! Time limits of an exchange.

use std::time::Duration;

use tokio::time::Instant;

/// The time limits of an exchange.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The longest silence; a progress report resets it.
    pub(super) silence: Duration,
    /// The total time limit, for the message.
    pub(super) total: Duration,
    /// When the total time limit is reached.
    pub(super) deadline: Instant,
}

impl Limits {
    /// Limits that begin now.
    pub(super) fn new(silence: Duration, total: Duration) -> Self {
        let (longest, now) = (Duration::from_secs(365 * 24 * 3600), Instant::now());
        Self { silence: silence.min(longest), total, deadline: now + total.min(longest) }
    }
}
