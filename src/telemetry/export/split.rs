//! Batches cut by size. The SDK counts spans, receivers count bytes: LLM spans repeat the conversation, so a batch of a
//! few hundred can be far beyond what a receiver takes.

use std::time::Duration;

use opentelemetry::{Array, KeyValue, Value};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

/// About how large a request may be; many receivers refuse more than 4 MiB.
const MAX_REQUEST_BYTES: usize = 3 * 1024 * 1024;

/// An exporter that sends large batches in several requests.
#[derive(Debug)]
pub(super) struct SplitBySize<E>(pub(super) E);

impl<E: SpanExporter> SpanExporter for SplitBySize<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let mut result = Ok(());
        for part in split(batch, MAX_REQUEST_BYTES) {
            result = self.0.export(part).await.and(result);
        }
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.0.set_resource(resource);
    }
}

/// The batch in parts of at most `max` bytes, in order; a span beyond that has a part of its own.
fn split(batch: Vec<SpanData>, max: usize) -> Vec<Vec<SpanData>> {
    let mut parts: Vec<Vec<SpanData>> = Vec::new();
    let mut size = 0;
    for span in batch {
        let bytes = size_of(&span);
        size += bytes;
        match parts.last_mut().filter(|_| size <= max) {
            Some(part) => part.push(span),
            None => {
                parts.push(vec![span]);
                size = bytes;
            }
        }
    }
    parts
}

/// About how many bytes a span is on the wire.
fn size_of(span: &SpanData) -> usize {
    const FRAME: usize = 100;
    let attributes =
        |all: &[KeyValue]| all.iter().map(|pair| pair.key.as_str().len() + value_size(&pair.value) + 8).sum::<usize>();
    let events = span.events.iter().map(|event| event.name.len() + attributes(&event.attributes) + 16).sum::<usize>();
    FRAME + span.name.len() + attributes(&span.attributes) + events
}

fn value_size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.as_str().len(),
        Value::Array(Array::String(texts)) => texts.iter().map(|text| text.as_str().len() + 4).sum(),
        Value::Bool(_) | Value::I64(_) | Value::F64(_) | Value::Array(_) | _ => 8, // numbers; the enum is not ours and open
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry::InstrumentationScope;
    use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status};
    use opentelemetry_sdk::trace::{SpanEvents, SpanLinks};
    use std::time::SystemTime;

    fn span(bytes: usize) -> SpanData {
        SpanData {
            span_context: SpanContext::empty_context(),
            parent_span_id: SpanId::INVALID,
            parent_span_is_remote: false,
            span_kind: SpanKind::Internal,
            name: "span".into(),
            start_time: SystemTime::UNIX_EPOCH,
            end_time: SystemTime::UNIX_EPOCH,
            attributes: vec![KeyValue::new("text", "x".repeat(bytes))],
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Ok,
            instrumentation_scope: InstrumentationScope::default(),
        }
    }

    #[test]
    fn a_batch_is_cut_where_it_grows_too_large_and_nothing_is_lost() {
        let parts = split(vec![span(1000), span(1000), span(9000), span(1000)], 3000);
        assert_eq!(parts.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1, 1]);
        assert_eq!(split(vec![], 3000), Vec::<Vec<SpanData>>::new());
    }
}
