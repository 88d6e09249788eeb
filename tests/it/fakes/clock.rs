//! A clock that starts at a fixed time and advances with tokio's, so that a paused test controls both.

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::time::Instant;
use toolgate::ports::Clock;

/// Records how long the program waited.
pub(crate) struct FakeClock {
    began: Instant,
    slept: Mutex<Vec<Duration>>,
}

impl FakeClock {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), slept: Mutex::default() }
    }

    /// Every wait, in order.
    pub(crate) fn slept(&self) -> Vec<Duration> {
        self.slept.lock().unwrap().clone()
    }
}

#[async_trait]
impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        start + self.began.elapsed()
    }

    async fn sleep(&self, duration: Duration) {
        self.slept.lock().unwrap().push(duration);
        tokio::time::sleep(duration).await;
    }
}
