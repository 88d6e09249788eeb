//! Console exporter: spans as lines of JSON on standard error, to read without a receiver.

use std::io::Write as _;

use serde_json::{Map, Value as Json, json};

use crate::logging::Stderr;
use crate::spans::{Attribute, Span, Status};

/// Writes a span. Ignores write errors: a closed terminal is not a failure.
pub(super) fn write(span: &Span) {
    let _ = Stderr.write_all(format!("{}\n", line(span)).as_bytes());
}

fn line(span: &Span) -> Json {
    let events = span
        .events
        .iter()
        .map(|event| json!({ "name": event.name, "time": event.at, "attributes": object(&event.attributes) }));
    let links = span.links.iter().map(|link| json!({ "trace_id": link.trace, "span_id": link.span }));
    let status = match &span.status {
        Status::Ok => json!({ "code": "OK" }),
        Status::Error(message) => json!({ "code": "ERROR", "message": message }),
    };
    json!({
        "name": span.name,
        "trace_id": span.trace,
        "span_id": span.id,
        "parent_span_id": span.parent.map(|parent| parent.id),
        "kind": span.kind,
        "start": span.start,
        "end": span.end,
        "status": status,
        "attributes": object(&span.attributes),
        "events": events.collect::<Vec<_>>(),
        "links": links.collect::<Vec<_>>(),
    })
}

fn object(attributes: &[Attribute]) -> Map<String, Json> {
    attributes.iter().map(|(name, value)| (name.to_string(), json!(value))).collect()
}
