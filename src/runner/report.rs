//! Report of an idle run.

use std::sync::Arc;

use serde::Serialize;
use toolgate_core::chat::Message;
use toolgate_core::error::Failure;
use toolgate_core::id::{RunId, SessionId};
use toolgate_core::run::{Budget, Compensation, Output, PendingItem, Run, RunResult, RunWarning, Status};

/// The result that a caller receives. `pending` contains what source 002 calls messages, tool requests and tool
/// interactions.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub run_id: RunId,
    /// The conversation of the run.
    pub session_id: SessionId,
    /// The length of the journal.
    pub version: u64,
    pub status: Status,
    /// The answer, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
    /// The warnings about the result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<RunWarning>,
    /// What became of the calls that it undoes before it ends, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compensation: Option<Compensation>,
    /// The pending items; empty unless the run is pending.
    pub pending: Vec<PendingItem>,
    /// The reason why the run did not complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// The conversation so far, including the open turn.
    pub messages: Vec<Arc<Message>>,
    /// Turns with tools, and rejected answers.
    pub tool_interactions: u32,
    pub budget: Budget,
    /// Its duration, summary, exit code and models.
    #[serde(flatten)]
    pub result: RunResult,
}

impl Report {
    /// The report of a run.
    pub fn new(run_id: RunId, run: &Run) -> Self {
        let ending = run.ending();
        Self {
            session_id: run.started().session.clone(),
            version: run.length(),
            status: run.status(),
            output: ending.and_then(|ending| ending.output().cloned()),
            warnings: run.warnings(),
            compensation: run.compensation(),
            pending: run.pending(),
            error: run.failure().map(|failure| failure.of_run(&run_id)),
            messages: run.messages(),
            tool_interactions: run.budget().tool_interactions,
            budget: run.budget().clone(),
            result: run.result(),
            run_id,
        }
    }

    /// Converts every report except of a completed or pending run into an error.
    pub fn into_result(self) -> Result<Self, Failure> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(self),
        }
    }
}
