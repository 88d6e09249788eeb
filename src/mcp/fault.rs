//! Errors of one exchange, in words for people and models, and the outcome of a call that each error means.

use std::time::Duration;

use serde_json::Value;
use toolgate_core::tool::{FailureKind, Outcome};

/// A placeholder for the code of a JSON-RPC error, where the SDK requires one and the server sent none or an invalid
/// one. Servers send every small number.
pub(super) const NO_CODE: i32 = i32::MIN;
/// The JSON-RPC error that requires the user to visit addresses before the call is repeated.
pub(super) const VISITS_REQUIRED: i32 = -32042;

/// Why a request got no answer. Messages complete the sentence "the MCP server `x` ...".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    /// The request certainly never reached the server.
    #[error("{0}")]
    NotSent(String),
    /// The server does not know the session, and processed nothing in it.
    #[error("{0}")]
    SessionOver(String),
    /// The server answered with a protocol error.
    #[error("refused the request: {}", refusal(.message, *.code))]
    Refused {
        /// The JSON-RPC code, or [`NO_CODE`].
        code: i32,
        /// The server's message.
        message: String,
        /// The server's additional data, for programs.
        data: Option<Value>,
    },
    /// The server, or a proxy in front of it, refused the request without an MCP message.
    #[error("refused the request with {0}")]
    Rejected(String),
    /// The server requests a capability that toolgate did not offer.
    #[error("{0}")]
    Demands(String),
    /// The server asked a question without a known answer, and was notified that the request is cancelled.
    #[error("was notified that the request is cancelled, because it asked something")]
    CancelledForElicitation,
    /// The server requested repetition after repetition, as overloaded servers do.
    #[error(
        "answered {times} times within {:.1} s that the call is to be made again, without a result and without a question, \
         as a server does that is overloaded; the call was given up. Try again later", .within.as_secs_f64()
    )]
    Deferred {
        /// The number of repetitions.
        times: u32,
        /// The duration from the first to the last of them.
        within: Duration,
    },
    /// The server was silent for too long.
    #[error(
        "gave neither an answer nor progress for {} s; the request was cancelled. Raise its `call_timeout_s` if it needs \
         longer", seconds(*.0)
    )]
    Silent(Duration),
    /// The request took too long in total.
    #[error(
        "gave no answer within {} s; the request was cancelled. Raise its `total_timeout_s` if it needs longer",
        seconds(*.0)
    )]
    Late(Duration),
    /// The request exceeded the caller's remaining time, which is shorter than the server's limit.
    #[error("gave no answer within the {} s that were left for the call; the request was cancelled", seconds(*.0))]
    OutOfTime(Duration),
    /// The connection broke.
    #[error("broke off the connection: {0}")]
    Disconnected(String),
    /// The answer exceeded this size in bytes.
    #[error(
        "answered with more than {} MiB of JSON, the most that is read of one HTTP response; let the tool return less, or in \
         pieces, or let the server answer with an event stream, of which more is read", .0 / 1024 / 1024
    )]
    TooLong(usize),
    /// The answer is not an MCP result.
    #[error("answered with something that is no MCP result: {0}")]
    Unreadable(String),
    /// The answer is ambiguous.
    #[error("answered with something that cannot be read: {0}")]
    Garbled(String),
    /// The answer is not MCP.
    #[error("answered with {0}")]
    NoMcp(String),
}

impl Fault {
    /// The code of the JSON-RPC error that the server answered with, if any.
    pub(super) fn code(&self) -> Option<i32> {
        match self {
            Self::Refused { code, .. } => Some(*code).filter(|code| *code != NO_CODE),
            Self::NotSent(_)
            | Self::SessionOver(_)
            | Self::Rejected(_)
            | Self::Demands(_)
            | Self::CancelledForElicitation => None,
            Self::Deferred { .. } | Self::Silent(_) | Self::Late(_) | Self::OutOfTime(_) | Self::Disconnected(_) => {
                None
            }
            Self::TooLong(_) | Self::Unreadable(_) | Self::Garbled(_) | Self::NoMcp(_) => None,
        }
    }

    /// The outcome of a call with this error.
    pub(super) fn into_outcome(self, server: &str) -> Outcome {
        let kind = match &self {
            Self::NotSent(_) | Self::SessionOver(_) => FailureKind::Unavailable,
            Self::Refused { .. } | Self::Rejected(_) | Self::Demands(_) => FailureKind::Refused,
            Self::CancelledForElicitation => FailureKind::Cancelled,
            Self::Deferred { .. } | Self::Silent(_) | Self::Late(_) | Self::OutOfTime(_) => FailureKind::Timeout,
            Self::Disconnected(_) => FailureKind::Disconnected,
            Self::TooLong(_) | Self::Unreadable(_) | Self::Garbled(_) | Self::NoMcp(_) => FailureKind::Unreadable,
        };
        Outcome::failed(kind, format!("the MCP server `{server}` {self}"))
    }
}

/// The text of a server's refusal: its message, and its code.
pub(super) fn refusal(message: &str, code: i32) -> String {
    match code {
        NO_CODE => message.to_owned(),
        code => format!("{message} (JSON-RPC error {code})"),
    }
}

/// Seconds for a message: `120`, `1.5`, `0.05`.
pub(super) fn seconds(duration: Duration) -> f64 {
    let seconds = duration.as_secs_f64();
    let unit = if seconds < 0.1 {
        1000.0
    } else if seconds < 1.0 {
        100.0
    } else {
        10.0
    };
    (seconds * unit).round() / unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_that_was_not_sent_is_not_reported() {
        let refused = |code| Fault::Refused { code, message: "overloaded".into(), data: None };
        assert_eq!(refused(-32000).to_string(), "refused the request: overloaded (JSON-RPC error -32000)");
        assert_eq!((refused(0).code(), refused(NO_CODE).code()), (Some(0), None));
        assert_eq!(refused(NO_CODE).to_string(), "refused the request: overloaded");
    }

    #[test]
    fn a_duration_has_no_superfluous_digits() {
        for (nanoseconds, expected) in
            [(591_069_682, "0.59"), (120_000_000_000, "120"), (1_499_999_999, "1.5"), (50_100_000, "0.05")]
        {
            assert_eq!(seconds(Duration::from_nanos(nanoseconds)).to_string(), expected);
        }
    }
}
