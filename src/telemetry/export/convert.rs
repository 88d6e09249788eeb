//! Conversion of our spans into the SDK's types.

use std::time::SystemTime;

use opentelemetry::trace::{
    Event, Link as SdkLink, SpanContext, SpanId as SdkSpanId, SpanKind, Status as SdkStatus, TraceFlags,
    TraceId as SdkTraceId, TraceState,
};
use opentelemetry::{Array, InstrumentationScope, Key, KeyValue, StringValue, Value as SdkValue};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use toolgate_core::trace::{SpanId, TraceId};

use super::limits::DroppedCounts;
use crate::spans::{Attribute, Kind, Link, SharedText, Span, SpanEvent, Status, Value};

/// A span in the SDK's form, with the counts that the limits removed.
pub(super) fn span_data(span: Span, left_out: DroppedCounts, scope: &InstrumentationScope) -> SpanData {
    let state = span.state.as_deref().and_then(|state| state.parse::<TraceState>().ok()).unwrap_or_default();
    let mut events = SpanEvents::default();
    let dropped = left_out.event_attributes.into_iter().chain(std::iter::repeat(0));
    events.events = span.events.into_iter().zip(dropped).map(|(one, dropped)| event(one, dropped)).collect();
    events.dropped_count = left_out.events;
    let mut links = SpanLinks::default();
    links.links = span.links.into_iter().map(link).collect();
    links.dropped_count = left_out.links;
    SpanData {
        span_context: SpanContext::new(trace_id(span.trace), span_id(span.id), TraceFlags::SAMPLED, false, state),
        parent_span_id: span.parent.map_or(SdkSpanId::INVALID, |parent| span_id(parent.id)),
        parent_span_is_remote: span.parent.is_some_and(|parent| parent.remote),
        span_kind: match span.kind {
            Kind::Internal => SpanKind::Internal,
            Kind::Client => SpanKind::Client,
        },
        name: span.name.into(),
        start_time: SystemTime::from(span.start),
        end_time: SystemTime::from(span.end),
        attributes: attributes(span.attributes),
        dropped_attributes_count: left_out.attributes,
        events,
        links,
        status: match span.status {
            Status::Ok => SdkStatus::Ok,
            Status::Error(message) => SdkStatus::error(message),
        },
        instrumentation_scope: scope.clone(),
    }
}

fn event(event: SpanEvent, dropped: u32) -> Event {
    Event::new(event.name, SystemTime::from(event.at), attributes(event.attributes), dropped)
}

fn link(link: Link) -> SdkLink {
    let context =
        SpanContext::new(trace_id(link.trace), span_id(link.span), TraceFlags::SAMPLED, true, TraceState::default());
    SdkLink::new(context, Vec::new(), 0)
}

fn attributes(attributes: Vec<Attribute>) -> Vec<KeyValue> {
    attributes.into_iter().map(|(name, value)| KeyValue::new(key(name), sdk_value(value))).collect()
}

fn key(name: SharedText) -> Key {
    match name {
        SharedText::Static(name) => name.into(),
        SharedText::Counted(name) => name.into(),
    }
}

fn sdk_value(value: Value) -> SdkValue {
    match value {
        Value::Text(SharedText::Static(text)) => SdkValue::String(text.into()),
        Value::Text(SharedText::Counted(text)) => SdkValue::String(text.into()),
        Value::Texts(texts) => SdkValue::Array(Array::String(texts.into_iter().map(StringValue::from).collect())),
        Value::Int(number) => SdkValue::I64(number),
        Value::Float(number) => SdkValue::F64(number),
        Value::Bool(flag) => SdkValue::Bool(flag),
    }
}

fn trace_id(id: TraceId) -> SdkTraceId {
    SdkTraceId::from_bytes(id.0)
}

fn span_id(id: SpanId) -> SdkSpanId {
    SdkSpanId::from_bytes(id.0)
}
