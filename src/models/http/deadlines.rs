//! How long one request may wait for what.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::settings::Timeouts;
use crate::core::error::{ErrorCode, Failure};

/// Some servers keep a finished stream open, and keep it alive with comments; nobody is to wait long for a mark that never
/// comes.
const REST: Duration = Duration::from_secs(2);

/// What is being waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    /// The first token of a streamed reply.
    FirstToken,
    /// The next piece of an answer that has begun.
    NextPiece,
    /// What may follow when the outcome is certain, as it has been since then: the bill, the end mark.
    Rest(Instant),
    /// The head of an answer that is not streamed: it comes when the model is done.
    WholeReply,
}

/// The clock of one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadlines {
    sent: Instant,
    timeouts: Timeouts,
}

impl Deadlines {
    /// Starts the clock.
    pub(super) fn start(timeouts: Timeouts) -> Self {
        Self { sent: Instant::now(), timeouts }
    }

    /// Milliseconds since the request was sent.
    pub(super) fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.sent.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Waits for something, but not longer than is set for it and for the whole request.
    pub(super) async fn wait<T>(&self, awaited: Awaited, future: impl Future<Output = T>) -> Result<T, Failure> {
        let Timeouts { first_token, idle, total, connect: _ } = self.timeouts;
        let whole = (after(self.sent, total), "no complete reply", total);
        let next = match awaited {
            Awaited::FirstToken => (after(self.sent, first_token), "no token", first_token),
            Awaited::NextPiece => (after(Instant::now(), idle), "no further piece of the reply", idle),
            Awaited::Rest(settled) => (after(settled, idle.min(REST)), "no end of the reply", idle.min(REST)),
            Awaited::WholeReply => whole,
        };
        let (until, what, limit) = if next.0 < whole.0 { next } else { whole };
        timeout_at(until, future).await.map_err(|_| timed_out(what, limit))
    }
}

/// A moment so far away that the addition overflows is a day away.
fn after(moment: Instant, duration: Duration) -> Instant {
    moment.checked_add(duration).unwrap_or(moment + Duration::from_secs(86_400))
}

/// The failure of a wait that was too long.
fn timed_out(what: &str, limit: Duration) -> Failure {
    Failure::new(ErrorCode::ProviderTimeout, format!("the model server sent {what} within {limit:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::sleep;

    #[tokio::test(start_paused = true)]
    async fn a_server_that_goes_on_sending_does_not_put_off_the_end_of_a_settled_answer() {
        let deadlines = Deadlines::start(Timeouts::default());
        let settled = Instant::now();
        let comment = || deadlines.wait(Awaited::Rest(settled), sleep(Duration::from_millis(600)));
        for _ in 0..3 {
            assert_eq!(comment().await, Ok(()));
        }
        assert!(comment().await.is_err());
        assert_eq!(settled.elapsed(), REST);
    }
}
