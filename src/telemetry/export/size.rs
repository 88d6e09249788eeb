//! Size of spans and log records in bytes. The SDK counts spans, but receivers and memory limits count bytes: LLM spans
//! repeat the conversation, so a few hundred of them can far exceed the limit of a receiver.

use opentelemetry::logs::AnyValue;
use opentelemetry::{Array, KeyValue, Value};
use opentelemetry_sdk::logs::SdkLogRecord;
use opentelemetry_sdk::trace::SpanData;

/// The fixed part of a span or a log record.
const FRAME: usize = 100;

/// An item with an approximate size as protobuf, in bytes.
pub(super) trait ByteSize {
    fn byte_size(&self) -> usize;

    /// Whether it is not to be sent any more.
    fn is_void(&self) -> bool {
        false
    }
}

impl ByteSize for SpanData {
    fn byte_size(&self) -> usize {
        let attributes = |all: &[KeyValue]| {
            all.iter().map(|pair| pair.key.as_str().len() + value_size(&pair.value) + 8).sum::<usize>()
        };
        let events = self.events.iter().map(|event| event.name.len() + attributes(&event.attributes) + 16);
        FRAME + self.name.len() + attributes(&self.attributes) + events.sum::<usize>()
    }
}

impl ByteSize for SdkLogRecord {
    fn byte_size(&self) -> usize {
        let attributes = self.attributes_iter().map(|(name, value)| name.as_str().len() + text_size(value) + 8);
        FRAME + self.body().map_or(0, text_size) + attributes.sum::<usize>()
    }
}

fn text_size(value: &AnyValue) -> usize {
    match value {
        AnyValue::String(text) => text.as_str().len(),
        AnyValue::Int(_) | AnyValue::Double(_) | AnyValue::Boolean(_) | _ => 8, // a foreign, open enum
    }
}

fn value_size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.as_str().len(),
        Value::Array(Array::String(texts)) => texts.iter().map(|text| text.as_str().len() + 4).sum(),
        Value::Bool(_) | Value::I64(_) | Value::F64(_) | Value::Array(_) | _ => 8, // numbers; a foreign, open enum
    }
}
