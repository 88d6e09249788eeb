//! Pending task: a call that its server continues in the background. It settles without an answer.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{AnswerForm, BackgroundWork, Description, Kind, PendingCall, PendingCounts};
use crate::id::CallId;
use crate::run::{Call, CallState};
use crate::tool::{Arguments, Origin, TaskHandle, Tool, ToolName};

/// A call that runs as a task at its server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PendingTask {
    pub call_id: CallId,
    pub origin: Origin,
    /// The name the model sees.
    pub name: ToolName,
    pub arguments: Arguments,
    pub task: TaskHandle,
}

impl PendingTask {
    pub(super) fn new(call: &Call, tool: &Tool) -> Option<Self> {
        let CallState::Task(task) = &call.state else { return None };
        Some(Self {
            call_id: call.requested.id.clone(),
            origin: tool.origin.clone(),
            name: tool.name.clone(),
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
            since: None,
            until: None,
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
        let origin = Cow::Borrowed(&self.origin);
        let arguments = Cow::Borrowed(&self.arguments);
        Some(PendingCall { id: &self.call_id, name: &self.name, origin, arguments })
    }

    fn count(&self, counts: &mut PendingCounts) {
        counts.tasks += 1;
    }
}
