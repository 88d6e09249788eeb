//! Marked span: a span in the queue, with the receipt by which the mark of its run moves.

use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

use super::marks::Receipt;
use super::sender::BatchExporter;
use super::size::ByteSize;

/// A span in the queue.
#[derive(Debug)]
pub(super) struct MarkedSpan {
    pub(super) data: SpanData,
    /// `None` if its run has no mark.
    pub(super) receipt: Option<Receipt>,
}

impl ByteSize for MarkedSpan {
    fn byte_size(&self) -> usize {
        self.data.byte_size()
    }

    fn is_void(&self) -> bool {
        self.receipt.as_ref().is_some_and(Receipt::is_void)
    }
}

/// An exporter of marked spans.
pub(super) struct MarkedSpans<E>(pub(super) E);

impl<E: SpanExporter> BatchExporter for MarkedSpans<E> {
    type Item = MarkedSpan;

    async fn export_batch(&self, spans: Vec<MarkedSpan>) -> OTelSdkResult {
        let (data, receipts): (Vec<_>, Vec<_>) = spans.into_iter().map(|span| (span.data, span.receipt)).unzip();
        self.0.export(data).await?;
        // A receiver that rejected some of them rejects them again.
        receipts.into_iter().flatten().for_each(Receipt::accepted);
        Ok(())
    }
}
