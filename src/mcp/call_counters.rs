//! Call statistics of a server. No decision depends on them.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Serialize, Serializer};
use tokio::time::Instant;

/// The weight of the newest call in the mean.
const WEIGHT: f64 = 0.2;

/// The calls to a server since toolgate started.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CallStats {
    /// Calls that were sent.
    pub made: u64,
    /// Sent calls that got no answer. An answer that reports an error counts as an answer.
    pub failed: u64,
    pub in_flight: u64,
    /// Calls that wait for the concurrency limit, or for the server.
    pub waiting: u64,
    /// How long the answers took; absent before the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
}

/// Durations of answers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// The last one, in milliseconds.
    #[serde(rename = "last_ms", serialize_with = "milliseconds")]
    pub last: Duration,
    /// The mean, weighted towards newer calls, in milliseconds.
    #[serde(rename = "mean_ms", serialize_with = "milliseconds")]
    pub mean: Duration,
    /// The longest, in milliseconds.
    #[serde(rename = "longest_ms", serialize_with = "milliseconds")]
    pub longest: Duration,
}

/// The counters of one server.
#[derive(Debug, Default)]
pub(super) struct CallCounters(Mutex<CallStats>);

/// A waiting call. Dropping it ends the wait.
pub(super) struct WaitGuard<'a>(&'a CallCounters);

/// A call in flight. Dropping it without a result means that the caller stopped waiting.
pub(super) struct InFlightGuard<'a> {
    counters: &'a CallCounters,
    begun: Instant,
}

impl CallCounters {
    /// Counts a waiting call.
    pub(super) fn wait(&self) -> WaitGuard<'_> {
        self.lock().waiting += 1;
        WaitGuard(self)
    }

    /// The current statistics.
    pub(super) fn stats(&self) -> CallStats {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, CallStats> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> WaitGuard<'a> {
    /// Ends the wait: the call is sent.
    pub(super) fn sent(self) -> InFlightGuard<'a> {
        let counters = self.0;
        drop(self);
        let mut stats = counters.lock();
        stats.made += 1;
        stats.in_flight += 1;
        InFlightGuard { counters, begun: Instant::now() }
    }
}

impl InFlightGuard<'_> {
    pub(super) fn answered(self) {
        let took = self.begun.elapsed();
        let mut stats = self.counters.lock();
        let latency = stats.latency.get_or_insert(Latency { last: took, mean: took, longest: took });
        latency.last = took;
        latency.mean = latency.mean.mul_f64(1.0 - WEIGHT) + took.mul_f64(WEIGHT);
        latency.longest = latency.longest.max(took);
    }

    /// Counts a call without an answer.
    pub(super) fn failed(self) {
        self.counters.lock().failed += 1;
    }

    /// Uncounts a call that could not be sent.
    pub(super) fn unsent(self) {
        self.counters.lock().made -= 1;
    }
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting -= 1;
    }
}

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        self.counters.lock().in_flight -= 1;
    }
}

fn milliseconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((duration.as_secs_f64() * 1e6).round() / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_call_is_counted_where_it_is_and_how_it_ended() {
        let counters = CallCounters::default();
        let counts = || {
            let stats = counters.stats();
            [stats.waiting, stats.in_flight, stats.made, stats.failed]
        };
        let (first, second, third) = (counters.wait(), counters.wait(), counters.wait());
        assert_eq!(counts(), [3, 0, 0, 0]);
        drop(third);
        let (first, second) = (first.sent(), second.sent());
        assert_eq!(counts(), [0, 2, 2, 0]);
        tokio::time::advance(Duration::from_millis(100)).await;
        first.answered();
        second.failed();
        drop(counters.wait().sent());
        assert_eq!(counts(), [0, 0, 3, 1]);
        counters.wait().sent().unsent();
        assert_eq!(counts(), [0, 0, 3, 1], "a call that was not sent does not count as made");
        let slow = counters.wait().sent();
        tokio::time::advance(Duration::from_millis(600)).await;
        slow.answered();
        let quick = counters.wait().sent();
        tokio::time::advance(Duration::from_millis(100)).await;
        quick.answered();
        let [last, mean, longest] = [100, 180, 600].map(Duration::from_millis);
        assert_eq!(counters.stats().latency, Some(Latency { last, mean, longest }));
    }
}
