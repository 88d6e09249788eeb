//! Finished span, independent of any wire format.

use jiff::Timestamp;
use serde::Serialize;
use toolgate_core::trace::{SpanId, TraceId};

use super::attributes::{Attribute, without_nul};
use super::{Value, names};

/// A finished span.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Span {
    pub trace: TraceId,
    /// The span id, derived from the trace and from what the span represents.
    pub id: SpanId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// The caller's `tracestate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Links to spans of other traces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// The position of the fact that finishes it; of a root before a wait, of the last fact before the wait.
    #[serde(skip)]
    pub seq: u64,
    /// The display name.
    pub name: String,
    /// The OTLP kind.
    pub kind: Kind,
    pub start: Timestamp,
    /// The end time; never before the start.
    pub end: Timestamp,
    /// Success, or the error.
    pub status: Status,
    /// The attributes: each name once, the essential ones first.
    pub attributes: Vec<Attribute>,
    /// The events, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<SpanEvent>,
}

impl Span {
    /// The value of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&Value> {
        self.attributes.iter().find(|(known, _)| **known == *name).map(|(_, value)| value)
    }

    /// The value of an attribute, if it is text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.attribute(name)?.as_text()
    }

    /// The value of an attribute, if it is a whole number.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.attribute(name)? {
            Value::Int(number) => Some(*number),
            Value::Text(_) | Value::Texts(_) | Value::Float(_) | Value::Bool(_) => None,
        }
    }
}

/// The parent span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Parent {
    /// The parent's id, in the same trace.
    pub id: SpanId,
    /// Whether it is a span of the caller.
    pub remote: bool,
}

/// A span of another trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Link {
    pub trace: TraceId,
    pub span: SpanId,
}

/// The OTLP kinds in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Kind {
    /// Work inside this process.
    Internal,
    /// A request to another process.
    Client,
}

/// The status of a span.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Status {
    Ok,
    /// Failure, with a description.
    Error(String),
}

/// An event within a span.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SpanEvent {
    pub name: &'static str,
    /// The time; within the span.
    pub at: Timestamp,
    /// Further attributes.
    pub attributes: Vec<Attribute>,
}

impl SpanEvent {
    /// The exception event, by which readers show an error.
    pub(super) fn exception(kind: &str, message: &str, at: Timestamp) -> Self {
        let attributes = vec![
            (names::EXCEPTION_TYPE.into(), Value::Text(kind.to_owned().into())),
            (names::EXCEPTION_MESSAGE.into(), Value::Text(without_nul(message.to_owned()).into())),
        ];
        Self { name: names::EXCEPTION, at, attributes }
    }
}

impl Status {
    /// An error with its description.
    pub(super) fn error(message: &str) -> Self {
        Self::Error(without_nul(message.to_owned()))
    }
}
