//! Open tasks of a run, for cancelling them at their servers: a task continues at its server whatever its call waits
//! for.

use super::state::Run;
use super::turn::{Call, CallState};
use crate::id::CallId;
use crate::tool::{Origin, TaskHandle};
use crate::trace::SpanContext;

/// A task that may outlive its run.
#[derive(Clone, Debug)]
pub struct OpenTask {
    /// The call that became the task.
    pub call: CallId,
    pub origin: Origin,
    pub task: TaskHandle,
    pub trace: SpanContext,
}

impl Run {
    /// The tasks of the open turn, including those that wait for an answer or are receiving one. Empty once the run is
    /// over: query them before.
    pub fn open_tasks(&self) -> Vec<OpenTask> {
        let open = self.phase.calls().iter().filter_map(|call| {
            let (task, tool) = (call.task()?, call.tool.as_ref()?);
            let (call, origin) = (call.requested.id.clone(), tool.origin.clone());
            Some(OpenTask { trace: self.call_context(&call), call, origin, task: task.clone() })
        });
        open.collect()
    }
}

impl Call {
    /// The unfinished task at its server that the call has become.
    pub fn task(&self) -> Option<&TaskHandle> {
        match &self.state {
            CallState::Task(task) => Some(task),
            CallState::NeedsInput(needed) => needed.task.as_ref(),
            CallState::New
            | CallState::Selected
            | CallState::Asked { .. }
            | CallState::Authorized
            | CallState::Started => self.answered.as_ref()?.needed.task.as_ref(),
            CallState::Settled(_) => None,
        }
    }
}
