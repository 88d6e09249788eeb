//! What comes back from a server for a call.

use super::{InputNeeded, Outcome, TaskHandle};

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
