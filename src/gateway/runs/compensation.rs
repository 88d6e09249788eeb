//! The API view of a compensation.

use serde::Serialize;
use toolgate_core::run::{Compensation, UndoResult, UndoState};
use utoipa::ToSchema;

use crate::closed_sets::UndoStateView;

/// What became of the calls that a run undoes before it ends.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Compensation)]
pub(super) struct CompensationView {
    /// The undo calls, in the order in which they are made.
    undone: Vec<UndoView>,
    /// The ids of calls that may have taken effect and are not undone, because their outcome is unknown.
    outcome_unknown: Vec<String>,
}

/// A call that undoes another one.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Undo)]
struct UndoView {
    /// The id of the call that it undoes.
    undoes: String,
    /// Its id, by which it is approved and named in events.
    call_id: String,
    /// The name of its tool.
    tool_name: String,
    /// Its state.
    #[schema(value_type = UndoStateView)]
    state: UndoState,
    /// Why it was refused or failed.
    reason: Option<String>,
}

impl CompensationView {
    pub(super) fn new(Compensation { undone, outcome_unknown }: Compensation) -> Self {
        let outcome_unknown = outcome_unknown.iter().map(ToString::to_string).collect();
        Self { undone: undone.into_iter().map(UndoView::new).collect(), outcome_unknown }
    }
}

impl UndoView {
    fn new(UndoResult { undoes, call_id, tool_name, state, reason }: UndoResult) -> Self {
        Self { undoes: undoes.to_string(), call_id: call_id.to_string(), tool_name, state, reason }
    }
}
