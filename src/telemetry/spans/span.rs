//! A finished span, in nobody's wire format.

use jiff::Timestamp;
use serde::Serialize;

use super::attributes::{Attribute, bounded};
use super::{Value, names};
use crate::core::trace::{SpanId, TraceId};

/// A finished span.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Span {
    /// Its trace.
    pub trace: TraceId,
    /// Its id, derived from the trace and from what it stands for.
    pub id: SpanId,
    /// The span above it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// The caller's `tracestate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Spans of other traces it goes back to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// What a list of spans shows.
    pub name: String,
    /// Its OTLP kind.
    pub kind: Kind,
    /// When it began.
    pub start: Timestamp,
    /// When it ended; never before it began.
    pub end: Timestamp,
    /// How it ended.
    pub status: Status,
    /// Each name once, the essential ones first.
    pub attributes: Vec<Attribute>,
    /// What happened within, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<SpanEvent>,
}

impl Span {
    /// What an attribute says.
    pub fn attribute(&self, name: &str) -> Option<&Value> {
        self.attributes.iter().find(|(known, _)| **known == *name).map(|(_, value)| value)
    }

    /// What an attribute says, if that is text.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.attribute(name)? {
            Value::Text(text) => Some(text),
            Value::Texts(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_) => None,
        }
    }

    /// What an attribute says, if that is a whole number.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.attribute(name)? {
            Value::Int(number) => Some(*number),
            Value::Text(_) | Value::Texts(_) | Value::Float(_) | Value::Bool(_) => None,
        }
    }
}

/// The span above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Parent {
    /// Its id, in the same trace.
    pub id: SpanId,
    /// Whether it is the caller's.
    pub remote: bool,
}

/// A span of another trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Link {
    /// The other trace.
    pub trace: TraceId,
    /// The span in it.
    pub span: SpanId,
}

/// The OTLP kinds that we use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Kind {
    /// Work of this process.
    Internal,
    /// A request to another one.
    Client,
}

/// How a span ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Status {
    /// Well.
    Ok,
    /// Not; why.
    Error(String),
}

/// Something that happened within a span.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SpanEvent {
    /// What.
    pub name: &'static str,
    /// When; within the span.
    pub at: Timestamp,
    /// More of it.
    pub attributes: Vec<Attribute>,
}

impl SpanEvent {
    /// The event by which readers show what went wrong.
    pub(super) fn exception(kind: &str, message: &str, at: Timestamp) -> Self {
        let attributes = vec![
            (names::EXCEPTION_TYPE.into(), Value::Text(kind.into())),
            (names::EXCEPTION_MESSAGE.into(), Value::Text(bounded(message).into())),
        ];
        Self { name: names::EXCEPTION, at, attributes }
    }
}

impl Status {
    /// A failure with its description.
    pub(super) fn error(message: &str) -> Self {
        Self::Error(bounded(message))
    }
}
