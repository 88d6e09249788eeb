//! Span size in bytes. The SDK counts spans, but receivers and memory limits count bytes: LLM spans repeat the
//! conversation, so a few hundred of them can far exceed the limit of a receiver.

use opentelemetry::{Array, KeyValue, Value};
use opentelemetry_sdk::trace::SpanData;

/// The approximate size of a span as protobuf, in bytes.
pub(super) fn size_of(span: &SpanData) -> usize {
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
        Value::Bool(_) | Value::I64(_) | Value::F64(_) | Value::Array(_) | _ => 8, // numbers; a foreign, open enum
    }
}
