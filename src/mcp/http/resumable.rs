//! Streams that the SDK resumes: which request each of them answers, and the pace of the attempts.
//!
//! The SDK waits as long as the server says (`retry`) and resumes without end. A server that ends each stream at once
//! and says `retry: 0` would get hundreds of requests a second, so attempts in quick succession get a growing pause and
//! a bound.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::RequestId;
use tokio::time::Instant;

/// How many streams are remembered, in case the SDK resumes one.
const MAX_RESUMABLE: usize = 64;
/// The pause after the first attempt, doubled with each attempt that comes sooner, and its upper limit.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How many attempts in a row may come sooner than that: about two minutes.
const MAX_QUICK: u32 = 30;

/// Streams that ended after an event with an id, and the requests that they answer. Clones share the same streams.
#[derive(Clone, Debug, Default)]
pub(super) struct Resumable(Arc<Mutex<Streams>>);

#[derive(Debug, Default)]
struct Streams {
    ended: VecDeque<(String, RequestId)>,
    /// The attempts for the stream of a request; `None` is the stream of the session.
    attempts: VecDeque<(Option<RequestId>, Attempts)>,
}

#[derive(Clone, Copy, Debug)]
struct Attempts {
    last: Instant,
    pause: Duration,
    quick: u32,
}

impl Resumable {
    /// Records the end of a request's stream after this event.
    pub(super) fn note(&self, last_event: String, request: RequestId) {
        push_bounded(&mut self.streams().ended, (last_event, request));
    }

    /// The request whose stream ended last at this event.
    pub(super) fn request(&self, last_event: &str) -> Option<RequestId> {
        self.streams().ended.iter().rev().find(|(id, _)| id == last_event).map(|(_, request)| request.clone())
    }

    /// Records an attempt to open the stream of a request, or of the session. Returns the pause before it, or `None` if
    /// another attempt is of no use.
    pub(super) fn attempt(&self, request: Option<&RequestId>) -> Option<Duration> {
        let now = Instant::now();
        let mut streams = self.streams();
        let Some((_, attempts)) = streams.attempts.iter_mut().find(|(of, _)| of.as_ref() == request) else {
            let attempts = Attempts { last: now, pause: FIRST_PAUSE, quick: 0 };
            push_bounded(&mut streams.attempts, (request.cloned(), attempts));
            return Some(Duration::ZERO);
        };
        let wait = (attempts.last + attempts.pause).saturating_duration_since(now);
        attempts.last = now + wait;
        if !wait.is_zero() {
            attempts.quick += 1;
            attempts.pause = (attempts.pause * 2).min(LONGEST_PAUSE);
        }
        (attempts.quick <= MAX_QUICK).then_some(wait)
    }

    /// Records that the stream of a request, or of the session, delivered a message, or ended for good.
    pub(super) fn moved(&self, request: Option<&RequestId>) {
        self.streams().attempts.retain(|(of, _)| of.as_ref() != request);
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn push_bounded<T>(queue: &mut VecDeque<T>, item: T) {
    if queue.len() == MAX_RESUMABLE {
        queue.pop_front();
    }
    queue.push_back(item);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The attempts within that time of a client that resumes as soon as it may, and whether it gave up.
    async fn attempts_within(time: Duration, retry: Duration) -> (u32, bool) {
        let (resumable, request, begun) = (Resumable::default(), RequestId::Number(7), Instant::now());
        let mut attempts = 0;
        while begun.elapsed() < time {
            tokio::time::advance(retry).await;
            let Some(pause) = resumable.attempt(Some(&request)) else { return (attempts, true) };
            attempts += 1;
            tokio::time::advance(pause).await;
        }
        (attempts, false)
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_in_quick_succession_get_a_growing_pause_and_a_bound() {
        assert_eq!(attempts_within(Duration::from_secs(4), Duration::ZERO).await, (7, false));
        let (attempts, gave_up) = attempts_within(Duration::from_secs(600), Duration::ZERO).await;
        assert_eq!((attempts, gave_up), (MAX_QUICK + 1, true));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_asks_for_a_second_between_attempts_is_polled_without_a_bound() {
        assert_eq!(attempts_within(Duration::from_secs(600), Duration::from_secs(1)).await, (600, false));
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_begins_the_count_again() {
        let resumable = Resumable::default();
        for _ in 0..10 * MAX_QUICK {
            assert!(resumable.attempt(None).is_some());
            resumable.moved(None);
        }
    }
}
