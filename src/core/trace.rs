//! W3C trace identity: trace ids come from outside, span ids are derived.
//!
//! A trace id enters a run with the event that begins an execution. Every span id below it is a hash of the trace id
//! and of the span's label. So the driver can put the id of a call's span into the MCP request *before* the call runs,
//! and telemetry, which only reads the journal afterwards, derives the same id.

mod baggage;
mod propagation;
mod tracestate;

use std::fmt;

pub use baggage::Baggage;
pub use propagation::{Propagation, UnknownPropagator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use sha2::{Digest, Sha256};

/// A 16-byte W3C trace id; lower-case hex in text.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(pub [u8; 16]);

/// An 8-byte W3C span id; lower-case hex in text.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(pub [u8; 8]);

/// The trace of one execution (a start or a resume) of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// The trace of all spans of the execution.
    pub id: TraceId,
    /// The caller's span, when the execution continues a remote trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SpanId>,
    /// Whether spans are recorded; the sampling decision is made once, when the execution begins.
    pub sampled: bool,
    /// The caller's `tracestate`, passed on unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The caller's `baggage`, as far as it could be read ([`Baggage`]), passed on unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baggage: Option<String>,
    /// A salt that distinguishes the spans of this execution from those of others that continue the same remote trace:
    /// their labels are the same. A trace that begins here needs no salt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub salt: Option<SpanId>,
}

/// The context of an outgoing request, with which the other side can continue the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanContext {
    pub trace: TraceId,
    /// The parent span of the other side's spans.
    pub span: SpanId,
    /// The sampling decision.
    pub sampled: bool,
    /// `tracestate`, if the caller gave one.
    pub state: Option<String>,
    /// `baggage`, if the caller gave any.
    pub baggage: Option<String>,
}

impl TraceId {
    /// Its last half, as a salt: of a new id, the salt is unique.
    pub fn salt(self) -> SpanId {
        let mut salt = [0; 8];
        for (to, from) in salt.iter_mut().zip(self.0.iter().skip(8)) {
            *to = *from;
        }
        SpanId(salt)
    }
}

impl Trace {
    /// A trace that begins here.
    pub fn new(id: TraceId, sampled: bool) -> Self {
        Self { id, parent: None, sampled, state: None, baggage: None, salt: None }
    }

    /// The id of the span with the label `what`; equal input, equal id. Never all zero.
    pub fn span(&self, what: &str) -> SpanId {
        // The driver and telemetry both compute it, so no span object has to reach from one to the other (decision
        // 0002).
        let mut hash = Sha256::new();
        hash.update(self.id.0);
        if let Some(salt) = &self.salt {
            hash.update(salt.0);
        }
        hash.update(what.as_bytes());
        let digest = hash.finalize();
        let mut id = [0u8; 8];
        for (to, from) in id.iter_mut().zip(digest.iter()) {
            *to = *from;
        }
        if id == [0; 8] {
            id = [1; 8];
        }
        SpanId(id)
    }

    /// The context of a request made under the span with the label `what`.
    pub fn context(&self, what: &str) -> SpanContext {
        self.context_of(self.span(what))
    }

    /// The context of a request made under the caller's own span; `None` for a trace that begins here.
    pub fn remote_context(&self) -> Option<SpanContext> {
        self.parent.map(|span| self.context_of(span))
    }

    fn context_of(&self, span: SpanId) -> SpanContext {
        let (state, baggage) = (self.state.clone(), self.baggage.clone());
        SpanContext { trace: self.id, span, sampled: self.sampled, state, baggage }
    }

    /// Parses a W3C `traceparent` header: the run continues the caller's trace and span. `None` if it is malformed.
    pub fn from_traceparent(header: &str) -> Option<Self> {
        let mut fields = header.trim().split('-');
        let (version, trace, span, flags) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        if hex_bytes::<1>(version)? == [0xff] || (version == "00" && fields.next().is_some()) {
            return None;
        }
        let id = TraceId(hex_bytes(trace)?);
        let parent = SpanId(hex_bytes(span)?);
        let [flags] = hex_bytes::<1>(flags)?;
        let valid = id.0 != [0; 16] && parent.0 != [0; 8];
        valid.then(|| Self { parent: Some(parent), ..Self::new(id, flags & 1 == 1) })
    }

    /// Sets the caller's `tracestate`. If any part is malformed, all of it is dropped: it belongs to other systems, and
    /// a part of it may have another meaning. Returns whether it was set.
    pub fn take_state(&mut self, header: &str) -> bool {
        let header = header.trim();
        let is_valid = tracestate::is_valid(header);
        if is_valid && !header.is_empty() {
            self.state = Some(header.to_owned());
        }
        is_valid
    }
}

impl SpanContext {
    /// The propagated fields, by their names in HTTP headers and in `_meta` of MCP (SEP-414). Empty fields are omitted.
    pub fn fields(&self, propagation: Propagation) -> Vec<(&'static str, String)> {
        let trace_context = [("traceparent", Some(self.traceparent())), ("tracestate", self.state.clone())];
        let mut fields = Vec::new();
        if propagation.trace_context {
            fields.extend(trace_context);
        }
        if propagation.baggage {
            fields.push(("baggage", self.baggage.clone()));
        }
        let field =
            |(name, value): (_, Option<String>)| value.filter(|text| !text.trim().is_empty()).map(|text| (name, text));
        fields.into_iter().filter_map(field).collect()
    }

    /// The W3C `traceparent` header of this context.
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }
}

/// Parses exactly `N` bytes of lower-case hex.
fn hex_bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != N * 2 || !text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
        return None;
    }
    let mut bytes = [0u8; N];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(index * 2..index * 2 + 2)?, 16).ok()?;
    }
    Some(bytes)
}

macro_rules! hex_id {
    ($name:ident, $len:literal) => {
        impl $name {
            /// The id of this lower-case hex text.
            pub fn parse(text: &str) -> Option<Self> {
                hex_bytes::<$len>(text).map(Self)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                Self::parse(&text)
                    .ok_or_else(|| D::Error::custom(concat!("expected ", $len, " bytes of lower-case hex")))
            }
        }
    };
}
hex_id!(TraceId, 16);
hex_id!(SpanId, 8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_round_trips() {
        let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let trace = Trace::from_traceparent(header).expect("valid");
        assert_eq!(trace.parent.expect("parent").to_string(), "00f067aa0ba902b7");
        let sent = trace.context("call/a").traceparent();
        assert!(sent.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-") && sent.ends_with("-01"));
    }

    #[test]
    fn two_executions_in_one_trace_share_no_span() {
        let trace = Trace::from_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").expect("valid");
        let [first, second] = [[1; 8], [2; 8]].map(|salt| Trace { salt: Some(SpanId(salt)), ..trace.clone() });
        assert_ne!(first.span("execution/0"), second.span("execution/0"));
        assert_eq!(first.span("execution/0"), first.clone().span("execution/0"));
        assert_eq!(first.remote_context(), second.remote_context(), "the caller's span is the same");
    }

    #[test]
    fn only_allowed_and_nonempty_fields_are_propagated() {
        let mut trace = Trace::new(TraceId([1; 16]), true);
        (trace.state, trace.baggage) = (Some("a=1".into()), Some("user=ada".into()));
        let names = |trace: &Trace, propagation| {
            trace.context("call").fields(propagation).into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(&trace, Propagation::ALL), ["traceparent", "tracestate", "baggage"]);
        assert_eq!(names(&trace, Propagation::TRACE_CONTEXT), ["traceparent", "tracestate"]);
        assert_eq!(names(&trace, Propagation { trace_context: false, baggage: true }), ["baggage"]);
        assert_eq!(names(&trace, Propagation::NOTHING), [""; 0]);
        (trace.state, trace.baggage) = (Some(String::new()), Some(" ".into()));
        assert_eq!(names(&trace, Propagation::ALL), ["traceparent"]);
    }

    #[test]
    fn a_journal_without_baggage_round_trips() {
        let written = r#"{"id":"01010101010101010101010101010101","sampled":true}"#;
        let trace: Trace = serde_json::from_str(written).expect("valid");
        assert_eq!(trace, Trace::new(TraceId([1; 16]), true));
        assert_eq!(serde_json::to_string(&trace).expect("JSON"), written);
    }

    #[test]
    fn a_malformed_traceparent_is_rejected() {
        for header in [
            "",
            "00-xyz",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "0x-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(Trace::from_traceparent(header), None, "{header}");
        }
    }
}
