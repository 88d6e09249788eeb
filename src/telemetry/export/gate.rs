//! Where spans wait to be sent, and where every one of them is accounted for.
//!
//! The queue is bounded by spans and by bytes. A span counts as waiting until it has left or was given up, so what is
//! being sent again and again holds its place. Whoever brings a span never waits: one that finds no place is dropped
//! and counted.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use opentelemetry_sdk::trace::SpanData;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::batching::Batching;
use super::size::size_of;

/// What became of the spans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// They wait, or are on their way.
    pub queued: u64,
    /// About as many bytes do.
    pub queued_bytes: u64,
    /// A receiver took them.
    pub exported: u64,
    /// They found no place in the queue.
    pub dropped: u64,
    /// No receiver took them, for as long as it was tried.
    pub failed: u64,
}

impl Tally {
    /// Spans that no receiver will ever see.
    pub fn lost(&self) -> u64 {
        self.dropped + self.failed
    }
}

/// The queue between those who make spans and the one who sends them.
#[derive(Debug)]
pub(super) struct Gate {
    waiting: Mutex<Waiting>,
    bounds: Batching,
    wake: Notify,
    closed: watch::Sender<Option<Instant>>,
}

#[derive(Debug, Default)]
struct Waiting {
    spans: VecDeque<(SpanData, usize)>,
    tally: Tally,
}

/// Spans that leave in one request.
pub(super) struct Batch {
    pub(super) spans: Vec<SpanData>,
    pub(super) size: Size,
}

/// The place that a batch holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) spans: u64,
    bytes: u64,
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    Taken,
    /// But for so many.
    TakenInPart(u64),
    Failed,
}

impl Gate {
    pub(super) fn new(bounds: Batching) -> Self {
        Self { waiting: Mutex::default(), bounds, wake: Notify::new(), closed: watch::Sender::new(None) }
    }

    /// Puts a span into the queue, or drops it.
    pub(super) fn offer(&self, span: SpanData) {
        let bytes = size_of(&span);
        let closed = self.closed.borrow().is_some();
        let mut waiting = self.waiting();
        let tally = &mut waiting.tally;
        let full = tally.queued >= self.bounds.queue as u64
            || tally.queued_bytes.saturating_add(bytes as u64) > self.bounds.queue_bytes as u64;
        if closed || full {
            tally.dropped += 1;
            return;
        }
        tally.queued += 1;
        tally.queued_bytes += bytes as u64;
        waiting.spans.push_back((span, bytes));
        let enough = self.bounds.batch_bytes.min(self.bounds.queue_bytes / 2) as u64;
        if waiting.spans.len() >= self.bounds.batch || waiting.tally.queued_bytes >= enough {
            self.wake.notify_one();
        }
    }

    /// Waits until there is a whole batch, until what is there has waited long enough, or until the gate is closed.
    pub(super) async fn ready(&self, delay: Duration) {
        let _ = tokio::time::timeout(delay, self.wake.notified()).await;
    }

    /// The next spans that fit into one request, in order; a span beyond that is sent alone.
    pub(super) fn take(&self) -> Option<Batch> {
        let mut waiting = self.waiting();
        let (first, size) = waiting.spans.pop_front()?;
        let (mut spans, mut bytes) = (vec![first], size);
        while spans.len() < self.bounds.batch {
            let Some((span, size)) = waiting.spans.pop_front_if(|(_, size)| bytes + *size <= self.bounds.batch_bytes)
            else {
                break;
            };
            bytes += size;
            spans.push(span);
        }
        let size = Size { spans: spans.len() as u64, bytes: bytes as u64 };
        Some(Batch { spans, size })
    }

    /// Gives the place of a batch free.
    pub(super) fn settle(&self, size: Size, delivery: Delivery) {
        let tally = &mut self.waiting().tally;
        tally.queued -= size.spans;
        tally.queued_bytes -= size.bytes;
        match delivery {
            Delivery::Taken => tally.exported += size.spans,
            Delivery::TakenInPart(rejected) => {
                let rejected = rejected.min(size.spans);
                tally.exported += size.spans - rejected;
                tally.failed += rejected;
            }
            Delivery::Failed => tally.failed += size.spans,
        }
    }

    /// Lets nothing in any more.
    pub(super) fn close(&self) {
        self.closed.send_if_modified(|closed| closed.is_none() && closed.replace(Instant::now()).is_none());
        self.wake.notify_one();
    }

    /// Whether it lets nothing in any more.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.borrow().is_some()
    }

    /// Waits until the gate is closed, and says since when it is.
    pub(super) async fn closed(&self) -> Instant {
        let mut closed = self.closed.subscribe();
        let since = closed.wait_for(Option::is_some).await.ok().and_then(|since| *since);
        since.unwrap_or_else(Instant::now) // the sender is ours: it is there
    }

    pub(super) fn tally(&self) -> Tally {
        self.waiting().tally
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
pub(super) mod tests;
