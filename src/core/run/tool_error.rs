//! Tool errors that end a run: those of an agent with `on_tool_error: fail`.

use super::{OnToolError, Run};
use crate::error::{ErrorCode, Failure};
use crate::id::CallId;
use crate::tool::Outcome;

impl Run {
    /// Keeps the error of the first call that settled with one, if it ends the run. The calls of builtin tools do not count:
    /// they fail because of the model's arguments alone. Neither do calls that the source of a fork sent.
    pub(super) fn note_tool_error(&mut self, id: &CallId, outcome: &Outcome) {
        if self.started.spec.rules.on_tool_error == OnToolError::Report
            || self.tool_error.is_some()
            || !outcome.is_error()
        {
            return;
        }
        let Some(call) = self.call(id).filter(|call| !call.is_builtin() && !call.sent_by_source) else { return };
        let tool = &call.requested.name;
        let message = match outcome {
            Outcome::Returned(_) => format!("tool `{tool}` reported an error to call {id}; see `tool.completed`"),
            Outcome::Failed(failure) => format!("call {id} of tool `{tool}` failed: {}", failure.message),
            Outcome::Unknown => format!("call {id} of tool `{tool}` was sent, and its outcome is unknown"),
        };
        self.tool_error = Some(Failure::new(ErrorCode::ToolFailed, message));
    }
}
