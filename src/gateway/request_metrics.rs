//! Request metrics: the recorder of answered requests, and the number of open event streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use toolgate_ports::RequestMeter;

#[derive(Default)]
pub(super) struct RequestMetrics {
    /// The recorder of answered requests, if there is one.
    pub(super) meter: Option<Arc<dyn RequestMeter>>,
    streams: Arc<AtomicU64>,
}

impl RequestMetrics {
    /// How many streams are open.
    pub(super) fn streams(&self) -> u64 {
        self.streams.load(Ordering::Relaxed)
    }

    /// Counts a stream until the result is dropped.
    pub(super) fn open_stream(&self) -> OpenStream {
        self.streams.fetch_add(1, Ordering::Relaxed);
        OpenStream(self.streams.clone())
    }
}

/// An open stream, which is counted while this value lives.
pub(super) struct OpenStream(Arc<AtomicU64>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
