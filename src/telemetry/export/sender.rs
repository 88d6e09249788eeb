//! Export sender: sends spans or log records from the queue to one receiver, on the export thread.
//!
//! While the process runs, each batch is tried for the time limit of an export. Several batches are in flight at once, as
//! long as the receiver accepts them: a receiver that takes seconds for each is slow, not unavailable. When the process
//! ends, the remaining items are sent as long as the receiver accepts any. The sender gives up a receiver that accepts none
//! after a few seconds, and a receiver that was never reachable (`reachability`) almost immediately.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use opentelemetry_sdk::error::OTelSdkResult;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::ExportError;
use super::batching::Batching;
use super::queue::{Batch, Closing, Delivery, ExportQueue, SpanCounts};
use super::reachability::Reachability;
use super::rejections::{Rejected, Rejections};
use super::runtime::ExportRuntime;
use super::size::ByteSize;
use super::transport::Signal;

/// How long the sender waits at the end for a receiver that accepts nothing: a receiver that restarts is back in that
/// time.
const STALL_TIMEOUT: Duration = Duration::from_secs(7);

/// How many batches are in flight at once to a receiver that accepts them. To one that does not, each batch in flight is
/// lost after its time limit, and those in the queue are kept.
const IN_FLIGHT: usize = 8;

/// An exporter of one signal.
pub(super) trait BatchExporter: Send + Sync {
    /// What it exports.
    type Item: ByteSize + Send + 'static;

    /// Sends one batch.
    fn export_batch(&self, items: Vec<Self::Item>) -> impl Future<Output = OTelSdkResult> + Send;
}

/// Sends items to one receiver.
pub(super) struct ExportSender<T> {
    signal: Signal,
    queue: Arc<ExportQueue<T>>,
    address: String,
    reason: Arc<Mutex<Option<String>>>,
    ended: Mutex<Receiver<()>>,
    _runtime: ExportRuntime,
}

impl<T: ByteSize + Send + 'static> ExportSender<T> {
    /// Starts the sender. `address` names the receiver in errors.
    pub(super) fn start<E>(
        signal: Signal,
        (exporter, reachability): (E, Reachability),
        address: String,
        batching: Batching,
        runtime: ExportRuntime,
    ) -> Self
    where
        E: BatchExporter<Item = T> + 'static,
    {
        let queue = Arc::new(ExportQueue::new(batching));
        let reason = Arc::new(Mutex::new(None));
        let (end, ended) = channel();
        let round = Arc::new(SendLoop {
            signal,
            exporter,
            reachability,
            rejections: Rejections::listen(),
            queue: queue.clone(),
            batching,
            reason: reason.clone(),
            last_taken: watch::Sender::new(Instant::now()),
            accepts: AtomicBool::new(false),
            given_up: AtomicBool::new(false),
            has_complained: AtomicBool::new(false),
        });
        runtime.spawn(round.carry(end));
        Self { signal, queue, address, reason, ended: Mutex::new(ended), _runtime: runtime }
    }

    /// Queues an item. Never waits.
    pub(super) fn offer(&self, item: T) {
        self.queue.offer(item);
    }

    /// Sends what is queued without waiting for further items.
    pub(super) fn flush(&self) {
        self.queue.flush();
    }

    pub(super) fn span_counts(&self) -> SpanCounts {
        self.queue.span_counts()
    }

    /// Sends the remaining items for at most that time. Blocks, on any thread; an error reports those lost since the
    /// start.
    pub(super) fn finish(&self, limit: Duration) -> Result<(), ExportError> {
        self.queue.close(limit);
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(limit + Duration::from_secs(1)); // the sender ends by itself before that
        let counts = self.queue.span_counts();
        let lost = counts.lost() + counts.queued;
        if lost == 0 {
            return Ok(());
        }
        let reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let reason = reason.unwrap_or_else(|| "they were produced faster than they could be sent".to_owned());
        Err(ExportError::Lost { lost, what: self.signal.items(), address: self.address.clone(), reason })
    }
}

struct SendLoop<E: BatchExporter> {
    signal: Signal,
    exporter: E,
    reachability: Reachability,
    rejections: Rejections,
    queue: Arc<ExportQueue<E::Item>>,
    batching: Batching,
    reason: Arc<Mutex<Option<String>>>,
    /// When the receiver last accepted a batch.
    last_taken: watch::Sender<Instant>,
    /// Whether it accepted the last one.
    accepts: AtomicBool,
    given_up: AtomicBool,
    has_complained: AtomicBool,
}

impl<E: BatchExporter + 'static> SendLoop<E> {
    async fn carry(self: Arc<Self>, end: Sender<()>) {
        let mut in_flight = JoinSet::new();
        loop {
            self.queue.ready(self.batching.delay).await;
            let last = self.queue.is_closed();
            while let Some(batch) = self.queue.take() {
                in_flight.spawn(Arc::clone(&self).deliver(batch));
                while in_flight.len() >= self.most_in_flight() {
                    in_flight.join_next().await;
                }
            }
            while in_flight.try_join_next().is_some() {}
            if last {
                break;
            }
        }
        while in_flight.join_next().await.is_some() {}
        let _ = end.send(());
    }

    fn most_in_flight(&self) -> usize {
        if self.accepts.load(Ordering::Relaxed) { IN_FLIGHT } else { 1 }
    }

    async fn deliver(self: Arc<Self>, mut batch: Batch<E::Item>) {
        let size = batch.size;
        batch.items.retain(|item| !item.is_void());
        let void = size.items - batch.items.len() as u64;
        if batch.items.is_empty() {
            return self.queue.settle(size, Delivery::Failed);
        }
        let exported = self.export(batch.items).await;
        self.accepts.store(exported.is_ok(), Ordering::Relaxed);
        let delivery = match exported {
            Ok(rejected) => {
                self.reachability.answered();
                self.last_taken.send_replace(Instant::now());
                rejected.map_or(Delivery::TakenInPart(void), |Rejected { items, message }| {
                    self.lost(items, format!("the receiver rejected some: {message}"));
                    Delivery::TakenInPart(items + void)
                })
            }
            Err(SendError::GivenUp) => Delivery::Failed,
            Err(SendError::Because(reason)) => {
                self.lost(size.items - void, reason);
                Delivery::Failed
            }
        };
        self.queue.settle(size, delivery);
    }

    /// Logs the loss once while the process runs; the end of the process reports the total.
    fn lost(&self, lost: u64, reason: String) {
        if !self.queue.is_closed() && !self.has_complained.swap(true, Ordering::Relaxed) {
            match self.signal {
                Signal::Logs => tracing::warn!(lost, reason, "log records lost; further losses are not logged"),
                Signal::Traces | Signal::Metrics => {
                    tracing::warn!(spans = lost, reason, "spans lost; further losses are not logged");
                }
            }
        }
        *self.reason.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
    }

    async fn export(&self, items: Vec<E::Item>) -> Result<Option<Rejected>, SendError> {
        if self.given_up.load(Ordering::Relaxed) {
            return Err(SendError::GivenUp);
        }
        let export = self.rejections.during(self.exporter.export_batch(items));
        let exported = tokio::select! {
            exported = timeout(self.batching.timeout, export) => exported,
            reason = self.give_up_reason() => {
                self.given_up.store(true, Ordering::Relaxed);
                return Err(SendError::because(reason));
            }
        };
        match exported {
            Ok((Ok(()), rejected)) => Ok(rejected),
            Ok((Err(error), _)) => Err(SendError::because(&error.to_string())),
            Err(_) => Err(SendError::because("an export took longer than OTEL_BSP_EXPORT_TIMEOUT allows")),
        }
    }

    /// Completes when an ending process has waited long enough, with the reason.
    async fn give_up_reason(&self) -> &'static str {
        let closing = self.queue.closed().await;
        tokio::select! {
            () = self.stalled(closing) => "it accepted nothing for several seconds at the end",
            () = sleep_until(closing.until) => "the time for the end of the process was over",
            () = self.reachability.hopeless(closing.since) => "it was never reachable",
        }
    }

    /// Completes when the receiver has accepted nothing for too long.
    async fn stalled(&self, closing: Closing) {
        let mut last_taken = self.last_taken.subscribe();
        loop {
            let since = closing.since.max(*last_taken.borrow_and_update());
            tokio::select! {
                () = sleep_until(since + STALL_TIMEOUT) => return,
                _ = last_taken.changed() => {} // `self` owns the channel, so it is open
            }
        }
    }
}

/// Why a batch was not accepted.
enum SendError {
    /// The receiver was given up.
    GivenUp,
    Because(String),
}

impl SendError {
    fn because(reason: &str) -> Self {
        Self::Because(reason.to_owned())
    }
}

#[cfg(test)]
mod tests;
