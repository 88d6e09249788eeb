//! What comes back from a server for a call.

use super::{InputNeeded, Outcome, TaskHandle, Wire};

/// A reply, and the way it took.
#[derive(Clone, Debug, PartialEq)]
pub struct Replied {
    /// What came back, or had to be said in its place.
    pub reply: CallReply,
    /// How the server was reached; `None` if nothing was sent.
    pub wire: Option<Box<Wire>>,
}

/// What a server made of a call: usually its end.
#[derive(Clone, Debug, PartialEq)]
pub enum CallReply {
    /// It is over.
    Ended {
        /// How.
        outcome: Outcome,
        /// What the server wrote to stderr meanwhile, when the call failed: the last lines, bounded, without secrets.
        stderr: Vec<String>,
    },
    /// The server wants to know something first.
    NeedsInput(InputNeeded),
    /// The server goes on by itself and is to be asked later.
    Task(TaskHandle),
}

impl From<Outcome> for CallReply {
    fn from(outcome: Outcome) -> Self {
        Self::Ended { outcome, stderr: Vec::new() }
    }
}

impl From<CallReply> for Replied {
    fn from(reply: CallReply) -> Self {
        Self { reply, wire: None }
    }
}

impl From<Outcome> for Replied {
    fn from(outcome: Outcome) -> Self {
        CallReply::from(outcome).into()
    }
}
