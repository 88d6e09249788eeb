//! Export sender: sends spans or log records from the queue to one receiver, on the export thread.
//!
//! While the process runs, each batch is tried for the time limit of an export. When the process ends, the remaining
//! items are sent as long as the receiver accepts any. The sender gives up a receiver that accepts none after a few
//! seconds, and a receiver that was never reachable (`reachability`) almost immediately.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use tokio::time::{Instant, sleep_until, timeout};

use super::ExportError;
use super::batching::Batching;
use super::queue::{Batch, Delivery, ExportQueue, SpanCounts};
use super::reachability::Reachability;
use super::rejections::{Rejected, Rejections};
use super::runtime::ExportRuntime;
use super::size::ByteSize;
use super::transport::Signal;

/// How long the sender waits at the end for a receiver that accepts nothing: a receiver that restarts is back in that
/// time.
const STALL_TIMEOUT: Duration = Duration::from_secs(7);

/// The time limit for the last items.
const SHUTDOWN: Duration = Duration::from_secs(30);

/// An exporter of one signal.
pub(super) trait BatchExporter: Send + Sync {
    /// What it exports.
    type Item: ByteSize + Send + 'static;

    /// Sends one batch.
    fn export_batch(&self, items: Vec<Self::Item>) -> impl Future<Output = OTelSdkResult> + Send;
}

impl<E: SpanExporter> BatchExporter for E {
    type Item = SpanData;

    fn export_batch(&self, spans: Vec<SpanData>) -> impl Future<Output = OTelSdkResult> + Send {
        self.export(spans)
    }
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
        let round = SendLoop {
            signal,
            exporter,
            reachability,
            rejections: Rejections::listen(),
            queue: queue.clone(),
            batching,
            reason: reason.clone(),
            last_taken: Instant::now(),
            given_up: false,
            has_complained: false,
        };
        runtime.spawn(round.carry(end));
        Self { signal, queue, address, reason, ended: Mutex::new(ended), _runtime: runtime }
    }

    /// Queues an item. Never waits.
    pub(super) fn offer(&self, item: T) {
        self.queue.offer(item);
    }

    pub(super) fn span_counts(&self) -> SpanCounts {
        self.queue.span_counts()
    }

    /// Sends the remaining items. Blocks, on any thread; an error reports those lost since the start.
    pub(super) fn finish(&self) -> Result<(), ExportError> {
        self.queue.close();
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(SHUTDOWN + STALL_TIMEOUT); // the sender ends by itself well before that
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
    last_taken: Instant,
    given_up: bool,
    has_complained: bool,
}

impl<E: BatchExporter> SendLoop<E> {
    async fn carry(mut self, end: Sender<()>) {
        loop {
            self.queue.ready(self.batching.delay).await;
            let last = self.queue.is_closed();
            while let Some(batch) = self.queue.take() {
                self.deliver(batch).await;
            }
            if last {
                break;
            }
        }
        let _ = end.send(());
    }

    async fn deliver(&mut self, batch: Batch<E::Item>) {
        let size = batch.size;
        let delivery = match self.export(batch.items).await {
            Ok(rejected) => {
                self.reachability.answered();
                self.last_taken = Instant::now();
                rejected.map_or(Delivery::Taken, |Rejected { items, message }| {
                    self.lost(items, format!("the receiver rejected some: {message}"));
                    Delivery::TakenInPart(items)
                })
            }
            Err(SendError::GivenUp) => Delivery::Failed,
            Err(SendError::Because(reason)) => {
                self.lost(size.items, reason);
                Delivery::Failed
            }
        };
        self.queue.settle(size, delivery);
    }

    /// Logs the loss once while the process runs; the end of the process reports the total.
    fn lost(&mut self, lost: u64, reason: String) {
        if !self.queue.is_closed() && !std::mem::replace(&mut self.has_complained, true) {
            match self.signal {
                Signal::Logs => tracing::warn!(lost, reason, "log records lost; further losses are not logged"),
                Signal::Traces | Signal::Metrics => {
                    tracing::warn!(spans = lost, reason, "spans lost; further losses are not logged");
                }
            }
        }
        *self.reason.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
    }

    async fn export(&mut self, items: Vec<E::Item>) -> Result<Option<Rejected>, SendError> {
        if self.given_up {
            return Err(SendError::GivenUp);
        }
        let export = self.rejections.during(self.exporter.export_batch(items));
        let exported = tokio::select! {
            exported = timeout(self.batching.timeout, export) => exported,
            reason = give_up_reason(&self.queue, &self.reachability, self.last_taken) => {
                self.given_up = true;
                return Err(SendError::because(reason));
            }
        };
        match exported {
            Ok((Ok(()), rejected)) => Ok(rejected),
            Ok((Err(error), _)) => Err(SendError::because(&error.to_string())),
            Err(_) => Err(SendError::because("an export took longer than OTEL_BSP_EXPORT_TIMEOUT allows")),
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

/// Completes when an ending process has waited long enough, with the reason. `last_taken` is the time at which the
/// receiver last accepted a batch.
async fn give_up_reason<T: ByteSize>(
    queue: &ExportQueue<T>,
    reachability: &Reachability,
    last_taken: Instant,
) -> &'static str {
    let closed = queue.closed().await;
    tokio::select! {
        () = sleep_until((closed.max(last_taken) + STALL_TIMEOUT).min(closed + SHUTDOWN)) => {
            "it accepted nothing for several seconds at the end"
        }
        () = reachability.hopeless(closed) => "it was never reachable",
    }
}

#[cfg(test)]
mod tests;
