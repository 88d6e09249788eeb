//! Compensation: undo calls, and what became of them. `compensation_fold` has the effects on a run.

use serde::{Deserialize, Serialize};

use super::Ending;
use crate::id::CallId;
use crate::tool::{Arguments, Origin, ToolCall};

/// A call that undoes another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UndoCall {
    pub undoes: CallId,
    /// Its id, tool and arguments. Malformed arguments are the reason why there are none.
    #[serde(flatten)]
    pub call: ToolCall,
}

/// What became of the calls of a run that compensates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compensation {
    /// The undo calls, in their order.
    pub undone: Vec<UndoResult>,
    /// The calls that have an undo and may have taken effect, but whose outcome is not known. They are not undone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outcome_unknown: Vec<CallId>,
}

/// What became of an undo call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoResult {
    pub undoes: CallId,
    pub call_id: CallId,
    /// The name that the model sees.
    pub tool_name: String,
    pub state: UndoState,
    /// The reason, if it was refused or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The state of an undo call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UndoState {
    /// It is not settled yet.
    Open,
    Undone,
    /// It ended with an error.
    Failed,
    /// It was not made: by policy or a person, or because the call cannot be made.
    Refused,
    /// It was sent, and its outcome is unknown.
    OutcomeUnknown,
    /// The run was cancelled again before it was made.
    NotMade,
}

impl UndoState {
    /// Its name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Undone => "undone",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::NotMade => "not_made",
        }
    }
}

/// The compensation of a run, before and after it is decided.
#[derive(Clone, Debug, Default)]
pub(super) struct Compensating {
    /// The calls that took effect and have an undo, in the order of settling.
    pub(super) effects: Vec<Effect>,
    /// The calls with an undo that may have taken effect.
    pub(super) outcome_unknown: Vec<CallId>,
    /// The decided ending, once there is one.
    pub(super) ending: Option<Ending>,
    /// The undo calls, once the ending is decided.
    pub(super) undo: Vec<UndoCall>,
    /// What became of them, once the run is over.
    pub(super) settled: Vec<UndoResult>,
}

/// A call that took effect.
#[derive(Clone, Debug)]
pub(super) struct Effect {
    pub(super) call: CallId,
    /// The tool that undoes it.
    pub(super) tool: Origin,
    /// The arguments of the undo.
    pub(super) arguments: Arguments,
}
