//! Bounded export queue: holds spans or log records until they are sent, and counts every one.
//!
//! The queue is bounded by items and by bytes. An item occupies its place until it is sent or given up, retries
//! included. Adding an item never waits: an item that finds no place is dropped and counted.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::batching::Batching;
use super::size::ByteSize;

/// The outcomes of the spans, or of the log records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanCounts {
    /// Spans that wait or are in flight.
    pub queued: u64,
    /// Their size in bytes, approximately.
    pub queued_bytes: u64,
    /// Spans that a receiver accepted.
    pub exported: u64,
    /// Spans dropped because the queue was full.
    pub dropped: u64,
    /// Spans that no receiver accepted, after all retries.
    pub failed: u64,
}

impl SpanCounts {
    /// Spans that no receiver will get.
    pub fn lost(&self) -> u64 {
        self.dropped + self.failed
    }
}

/// The queue between the threads that produce items and the sender.
#[derive(Debug)]
pub(super) struct ExportQueue<T> {
    waiting: Mutex<QueueState<T>>,
    bounds: Batching,
    wake: Notify,
    closed: watch::Sender<Option<Closing>>,
}

#[derive(Debug)]
struct QueueState<T> {
    items: VecDeque<(T, usize)>,
    counts: SpanCounts,
}

/// The end of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closing {
    pub(super) since: Instant,
    /// When the items that are still queued are given up.
    pub(super) until: Instant,
}

/// The items of one request.
pub(super) struct Batch<T> {
    pub(super) items: Vec<T>,
    pub(super) size: Size,
}

/// The space that a batch occupies in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) items: u64,
    bytes: u64,
}

/// The outcome of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// Taken, except for that many items.
    TakenInPart(u64),
    Failed,
}

impl<T: ByteSize> ExportQueue<T> {
    pub(super) fn new(bounds: Batching) -> Self {
        let waiting = Mutex::new(QueueState { items: VecDeque::new(), counts: SpanCounts::default() });
        Self { waiting, bounds, wake: Notify::new(), closed: watch::Sender::new(None) }
    }

    /// Puts an item into the queue, or drops it.
    pub(super) fn offer(&self, item: T) {
        // Counted in bytes too: a few hundred spans of a model exceed what a receiver takes (decision 0012).
        let bytes = item.byte_size();
        let closed = self.closed.borrow().is_some();
        let mut waiting = self.waiting();
        let counts = &mut waiting.counts;
        let full = counts.queued >= self.bounds.queue as u64
            || counts.queued_bytes.saturating_add(bytes as u64) > self.bounds.queue_bytes as u64;
        if closed || full {
            counts.dropped += 1;
            return;
        }
        counts.queued += 1;
        counts.queued_bytes += bytes as u64;
        waiting.items.push_back((item, bytes));
        let enough = self.bounds.batch_bytes.min(self.bounds.queue_bytes / 2) as u64;
        if waiting.items.len() >= self.bounds.batch || waiting.counts.queued_bytes >= enough {
            self.wake.notify_one();
        }
    }

    /// Wakes the sender although no batch is full.
    pub(super) fn flush(&self) {
        self.wake.notify_one();
    }

    /// Waits until a batch is full, until its items have waited for `delay`, or until the queue is closed.
    pub(super) async fn ready(&self, delay: Duration) {
        let _ = tokio::time::timeout(delay, self.wake.notified()).await;
    }

    /// The next items that fit into one request, in order; a larger item is sent alone.
    pub(super) fn take(&self) -> Option<Batch<T>> {
        let mut waiting = self.waiting();
        let (first, size) = waiting.items.pop_front()?;
        let (mut items, mut bytes) = (vec![first], size);
        while items.len() < self.bounds.batch {
            let Some((item, size)) = waiting.items.pop_front_if(|(_, size)| bytes + *size <= self.bounds.batch_bytes)
            else {
                break;
            };
            bytes += size;
            items.push(item);
        }
        let size = Size { items: items.len() as u64, bytes: bytes as u64 };
        Some(Batch { items, size })
    }

    /// Frees the space of a batch and counts its items by outcome.
    pub(super) fn settle(&self, size: Size, delivery: Delivery) {
        let counts = &mut self.waiting().counts;
        counts.queued -= size.items;
        counts.queued_bytes -= size.bytes;
        match delivery {
            Delivery::TakenInPart(rejected) => {
                let rejected = rejected.min(size.items);
                counts.exported += size.items - rejected;
                counts.failed += rejected;
            }
            Delivery::Failed => counts.failed += size.items,
        }
    }

    /// Closes the queue: it accepts no more items, and those that are queued have this time left.
    pub(super) fn close(&self, limit: Duration) {
        let since = Instant::now();
        let closing = Closing { since, until: since + limit };
        self.closed.send_if_modified(|closed| closed.is_none() && closed.replace(closing).is_none());
        self.wake.notify_one();
    }

    /// Whether the queue is closed.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.borrow().is_some()
    }

    /// Waits until the queue is closed.
    pub(super) async fn closed(&self) -> Closing {
        let mut closed = self.closed.subscribe();
        let closing = closed.wait_for(Option::is_some).await.ok().and_then(|closing| *closing);
        let now = Instant::now();
        closing.unwrap_or(Closing { since: now, until: now }) // `self` owns the channel, so it is open
    }

    pub(super) fn span_counts(&self) -> SpanCounts {
        self.waiting().counts
    }

    fn waiting(&self) -> MutexGuard<'_, QueueState<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
pub(super) mod tests;
