//! Pending task: a call that its server continues in the background. It settles without an answer.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{AnswerForm, BackgroundWork, Description, Kind, PendingCall, PendingCounts};
use crate::id::CallId;
use crate::run::{Call, CallState};
use crate::tool::{Arguments, TaskHandle, Tool, ToolName, ToolRef};

/// A call that runs as a task at its server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PendingTask {
    pub call_id: CallId,
    pub tool: ToolRef,
    /// The name the model sees.
    pub tool_name: ToolName,
    pub arguments: Arguments,
    pub task: TaskHandle,
}

impl PendingTask {
    pub(super) fn new(call: &Call, tool: &Tool) -> Option<Self> {
        let CallState::Task(task) = &call.state else { return None };
        Some(Self {
            call_id: call.requested.id.clone(),
            tool: ToolRef::new(tool),
            tool_name: tool.name.clone(),
            arguments: call.arguments().clone(),
            task: (**task).clone(),
        })
    }
}

impl Kind for PendingTask {
    fn describe(&self) -> Description<'_> {
        Description {
            kind: "task",
            call_id: Some(&self.call_id),
            event: None,
            requested_at: None,
            expires_at: None,
            form: AnswerForm::Background(BackgroundWork {
                noun: "task",
                place: "at its server",
                awaited: "its server to finish the task",
                id: &self.task.id,
                poll_ms: self.task.poll_ms,
                message: self.task.message.as_deref(),
            }),
        }
    }

    fn call(&self) -> Option<PendingCall<'_>> {
        let tool = Cow::Borrowed(&self.tool);
        let arguments = Cow::Borrowed(&self.arguments);
        Some(PendingCall { id: &self.call_id, name: &self.tool_name, tool, arguments })
    }

    fn count(&self, counts: &mut PendingCounts) {
        counts.tasks += 1;
    }
}
