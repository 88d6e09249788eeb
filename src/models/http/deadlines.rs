//! Request deadlines.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use toolgate_core::error::{ErrorCode, Failure};

use toolgate_settings::model::Timeouts;

/// How long to wait after the outcome is settled. Some servers keep a finished stream open and send comments, and never
/// send the end mark.
const REST: Duration = Duration::from_secs(2);

/// The event that the request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AwaitedEvent {
    /// The first token of a streamed reply.
    FirstToken,
    /// The next bytes of an answer that has started.
    NextPiece,
    /// The rest after the outcome was settled at that time: usage and the end mark.
    Rest(Instant),
    /// The head of an unstreamed answer, which comes when the model is done.
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

    /// Waits for an event within its own deadline and the total one.
    pub(super) async fn wait<T>(&self, awaited: AwaitedEvent, future: impl Future<Output = T>) -> Result<T, Failure> {
        let Timeouts { first_token, idle, total, connect: _ } = self.timeouts;
        let whole = (after(self.sent, total), "no complete reply", total);
        let next = match awaited {
            AwaitedEvent::FirstToken => (after(self.sent, first_token), "no token", first_token),
            AwaitedEvent::NextPiece => (after(Instant::now(), idle), "no further piece of the reply", idle),
            AwaitedEvent::Rest(settled) => (after(settled, idle.min(REST)), "no end of the reply", idle.min(REST)),
            AwaitedEvent::WholeReply => whole,
        };
        let (until, what, limit) = if next.0 < whole.0 { next } else { whole };
        timeout_at(until, future).await.map_err(|_| timed_out(what, limit))
    }
}

/// A sum that overflows becomes a day from now.
fn after(moment: Instant, duration: Duration) -> Instant {
    moment.checked_add(duration).unwrap_or(moment + Duration::from_secs(86_400))
}

/// The failure of an expired wait.
fn timed_out(what: &str, limit: Duration) -> Failure {
    Failure::new(ErrorCode::ProviderTimeout, format!("the model server sent {what} within {limit:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::sleep;

    #[tokio::test(start_paused = true)]
    async fn a_chatty_server_does_not_delay_a_settled_answer() {
        let deadlines = Deadlines::start(Timeouts::default());
        let settled = Instant::now();
        let comment = || deadlines.wait(AwaitedEvent::Rest(settled), sleep(Duration::from_millis(600)));
        for _ in 0..3 {
            assert_eq!(comment().await, Ok(()));
        }
        assert!(comment().await.is_err());
        assert_eq!(settled.elapsed(), REST);
    }
}
