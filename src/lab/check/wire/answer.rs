//! Answer to a request, or the reason why there is none.

use std::time::Duration;

use serde_json::Value;

/// An error of JSON-RPC.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::check) struct RpcError {
    pub(in crate::check) code: i64,
    pub(in crate::check) message: String,
    pub(in crate::check) data: Value,
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::check) struct Answer {
    pub(in crate::check) outcome: Result<Value, RpcError>,
    /// The time from the request to the answer.
    pub(in crate::check) took: Duration,
    /// The size of the message in bytes.
    pub(in crate::check) size: usize,
    /// The HTTP status, over HTTP.
    pub(in crate::check) status: Option<u16>,
}

impl Answer {
    /// The result, if the request did not fail.
    pub(in crate::check) fn result(&self) -> Option<&Value> {
        self.outcome.as_ref().ok()
    }

    /// The code of the error, if the request failed.
    pub(in crate::check) fn error_code(&self) -> Option<i64> {
        self.outcome.as_ref().err().map(|error| error.code)
    }
}

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::check) enum NoAnswer {
    /// The time limit passed.
    TimedOut(Duration),
    /// The process ended, or the connection broke.
    Closed(String),
    /// The answer was there and could not be read.
    Unreadable(String),
    /// The HTTP status, and the beginning of a body that is not a message.
    Http(u16, String),
}

impl NoAnswer {
    /// The reason, to follow "the request".
    pub(in crate::check) fn in_words(&self) -> String {
        match self {
            Self::TimedOut(limit) => format!("was not answered within {}", seconds(*limit)),
            Self::Closed(reason) => format!("was not answered: {reason}"),
            Self::Unreadable(reason) => format!("was answered with a message that cannot be read: {reason}"),
            Self::Http(status, body) if body.is_empty() => format!("was answered with HTTP {status}"),
            Self::Http(status, body) => format!("was answered with HTTP {status}: {body}"),
        }
    }

    /// Whether the process or the connection ended.
    pub(in crate::check) fn is_closed(&self) -> bool {
        matches!(self, Self::Closed(_))
    }
}

/// A duration in words: `85 ms`, `1.2 s`.
pub(crate) fn seconds(duration: Duration) -> String {
    match duration.as_millis() {
        millis @ 0..1_000 => format!("{millis} ms"),
        _ => format!("{:.1} s", duration.as_secs_f64()),
    }
}
