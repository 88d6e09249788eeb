//! W3C trace identity, derived rather than invented.
//!
//! A trace id enters a run from outside, with the event that begins an execution. Every span id below it is a hash of
//! the trace id and of what the span stands for. So the driver can put the id of a call's span into the MCP request
//! *before* the call runs, and telemetry, which only reads the journal afterwards, arrives at the same id.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use sha2::{Digest, Sha256};

/// A 16-byte W3C trace id; lower-case hex in text.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(pub [u8; 16]);

/// An 8-byte W3C span id; lower-case hex in text.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(pub [u8; 8]);

/// The trace that one execution (a start or a resume) of a run writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// The trace all spans of the execution belong to.
    pub id: TraceId,
    /// The caller's span, when the execution continues a remote trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SpanId>,
    /// Whether spans are recorded; the sampling decision is made once, when the execution begins.
    pub sampled: bool,
    /// The caller's `tracestate`, passed on unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

/// What is sent along with an outgoing request so that the other side can continue the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanContext {
    /// The trace.
    pub trace: TraceId,
    /// The span that is the parent on the other side.
    pub span: SpanId,
    /// The sampling decision.
    pub sampled: bool,
    /// `tracestate`, if the caller gave one.
    pub state: Option<String>,
}

impl Trace {
    /// The id of the span that stands for `what`; equal input, equal id. Never all zero.
    pub fn span(&self, what: &str) -> SpanId {
        let mut hash = Sha256::new();
        hash.update(self.id.0);
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

    /// The context to send with a request made under the span that stands for `what`.
    pub fn context(&self, what: &str) -> SpanContext {
        SpanContext { trace: self.id, span: self.span(what), sampled: self.sampled, state: self.state.clone() }
    }

    /// Reads a W3C `traceparent` header: the caller's trace and span become ours. `None` if it is malformed.
    pub fn from_traceparent(header: &str) -> Option<Self> {
        let mut fields = header.trim().split('-');
        let (version, trace, span, flags) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        if version.len() != 2 || version == "ff" || (version == "00" && fields.next().is_some()) {
            return None;
        }
        let id = TraceId(hex_bytes(trace)?);
        let parent = SpanId(hex_bytes(span)?);
        let [flags] = hex_bytes::<1>(flags)?;
        let valid = id.0 != [0; 16] && parent.0 != [0; 8];
        valid.then_some(Self { id, parent: Some(parent), sampled: flags & 1 == 1, state: None })
    }
}

impl SpanContext {
    /// The W3C `traceparent` header of this context.
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }
}

/// Reads exactly `N` bytes of lower-case hex.
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
                hex_bytes::<$len>(&text)
                    .map(Self)
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
    fn a_traceparent_is_read_and_written_back() {
        let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let trace = Trace::from_traceparent(header).expect("valid");
        assert_eq!(trace.parent.expect("parent").to_string(), "00f067aa0ba902b7");
        let sent = trace.context("call/a").traceparent();
        assert!(sent.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-") && sent.ends_with("-01"));
    }

    #[test]
    fn a_malformed_traceparent_is_no_parent() {
        for header in [
            "",
            "00-xyz",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(Trace::from_traceparent(header), None, "{header}");
        }
    }
}
