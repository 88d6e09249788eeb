//! Refusals of inputs.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::CallId;

/// The reason why an input was refused. No part of it was applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum ResumeError {
    /// The run has no such call.
    #[error("call `{call_id}` is not a call of this run that waits; the run lists its pending items")]
    UnknownCall { call_id: CallId },
    /// The call is settled already, with a different answer.
    #[error("call `{call_id}` is settled already, with a different answer")]
    AlreadySettled { call_id: CallId },
    /// A result for a call that waits for a decision, or another wrong kind of answer.
    #[error("call `{call_id}` waits for {expected}, not for {given}")]
    WrongKind { call_id: CallId, expected: String, given: String },
    /// The same call is answered twice.
    #[error("call `{call_id}` is answered twice in one request")]
    Duplicate { call_id: CallId },
    /// The call is not what was shown to the approver.
    #[error("call `{call_id}` changed since it was shown; review it and decide again")]
    Drifted { call_id: CallId },
    /// The answer came too late.
    #[error(
        "call `{call_id}` was not answered in time, and accepts no answer any more; when the run resumes, its model reads \
         that there was no answer"
    )]
    TooLate { call_id: CallId },
    /// Answers that would send a call a second time, without explicit consent to that.
    #[error(
        "call `{call_id}` had begun when its server asked, and was cancelled: with answers it is sent a second time, and \
         whatever it did may be done twice; confirm that with `\"repeat\": true` beside the responses, or decline, and the \
         model reads that the outcome is unknown"
    )]
    RepeatUnconfirmed { call_id: CallId },
    /// An extension that does not extend the deadline.
    #[error("call `{call_id}` has time until {until} already; give a later time")]
    NotLater {
        call_id: CallId,
        /// The current deadline.
        until: Timestamp,
    },
    /// An extension for an item without a deadline.
    #[error("call `{call_id}` has no deadline; there is time for it as long as the run lives")]
    NoDeadline { call_id: CallId },
    /// An extension to a time in the past.
    #[error("the deadline {until} for call `{call_id}` has passed; give a later time")]
    InThePast {
        call_id: CallId,
        /// The given deadline.
        until: Timestamp,
    },
    /// A request that is not partial leaves items pending.
    #[error("these calls are pending too: {}; answer all of them, or make the resume partial", list(missing))]
    Incomplete {
        /// The calls without an answer.
        missing: Vec<CallId>,
    },
    /// The input does not match the request, or is too large for any run.
    #[error("{what} of call `{call_id}` {problems}")]
    Invalid {
        call_id: CallId,
        /// The part, in words, such as `the result`.
        what: String,
        /// The first invalid location in it, as a JSON Pointer; empty for the whole.
        at: String,
        problems: String,
    },
    /// The journal has more events than the sender saw.
    #[error("the run is at version {actual}, not {expected}, and is {status}")]
    VersionConflict {
        /// The version the sender saw.
        expected: u64,
        actual: u64,
        status: String,
    },
    /// The run has no pause to end.
    #[error("the run is not paused")]
    NotPaused,
    /// The run is over.
    #[error("the run is over: {status}")]
    RunEnded { status: String },
    /// The input is larger than a run accepts.
    #[error("{what} has more than {most} bytes; say it with less, or raise `max_result_bytes`")]
    Oversized {
        /// The input, in words, such as `the message`.
        what: String,
        /// The maximum size.
        most: usize,
    },
    /// A message without words.
    #[error("a message needs text")]
    EmptyMessage,
}

fn list(ids: &[CallId]) -> String {
    ids.iter().map(CallId::as_str).collect::<Vec<_>>().join(", ")
}
