//! Server replies to calls.

use super::{CallTransport, ElicitationRequest, Outcome, TaskHandle};

/// A reply with its transport.
#[derive(Clone, Debug, PartialEq)]
pub struct DeliveredReply {
    /// The reply, or the substitute if there was none.
    pub reply: CallReply,
    /// How the server was reached; `None` if nothing was sent.
    pub wire: Option<Box<CallTransport>>,
}

/// A server's reply to a call: usually its end.
#[derive(Clone, Debug, PartialEq)]
pub enum CallReply {
    Ended {
        outcome: Outcome,
        /// The server's stderr during a failed call: the last lines, bounded, without secrets.
        stderr: Vec<String>,
    },
    NeedsInput(ElicitationRequest),
    /// The server continues the call as a task, to be polled later.
    Task(TaskHandle),
}

impl From<Outcome> for CallReply {
    fn from(outcome: Outcome) -> Self {
        Self::Ended { outcome, stderr: Vec::new() }
    }
}

impl From<CallReply> for DeliveredReply {
    fn from(reply: CallReply) -> Self {
        Self { reply, wire: None }
    }
}

impl From<Outcome> for DeliveredReply {
    fn from(outcome: Outcome) -> Self {
        CallReply::from(outcome).into()
    }
}
