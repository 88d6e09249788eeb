//! Result of a run in short, for its index row, lists and callers. Derived from the journal and the times of its events.

use serde::{Deserialize, Serialize};

use super::replies::shortened;
use super::state::Phase;
use super::{Ending, Run, Status};
use crate::error::{ErrorCode, Failure, FailureContext};
use crate::id::ModelName;

/// The result of a run, or its state so far. A fork's result is that of its own part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunResult {
    /// The beginning of the answer or, without one, of the last text of a model; at most 500 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The error that ended the run, if it did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<ErrorCode>,
    /// How far a run that did not complete came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<RunPhase>,
    /// The exit code of the command line; `None` while the run is not over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u8>,
    /// The time from the first event to the ending, waits included; `None` while the run is not over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The models that replied, by their configured names, in the order of their first replies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ModelName>,
    /// The number of replies from models.
    pub iterations: u32,
}

/// The phase in which a run ended that did not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunPhase {
    /// Before the first reply of a model: often a problem of the configuration.
    Initialization,
    /// After a reply.
    Execution,
}

impl RunPhase {
    /// Its name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Initialization => "initialization",
            Self::Execution => "execution",
        }
    }
}

impl RunResult {
    /// The result without what it quotes of the conversation.
    #[must_use]
    pub fn without_content(self) -> Self {
        Self { summary: None, ..self }
    }
}

impl Run {
    /// The failure that ended the run, with its agent and the attempt at a model that failed.
    pub fn failure(&self) -> Option<Failure> {
        self.failure_of(self.ending()?)
    }

    /// The failure of an ending, also before the ending is folded.
    pub fn failure_of(&self, ending: &Ending) -> Option<Failure> {
        let (model, attempt) = self.replies.failed.clone().or_else(|| self.failed_attempt(ending)).unzip();
        let agent = self.started.spec.agent.clone();
        let context = FailureContext { run_id: None, agent, model, attempt };
        Some(Failure { context: Some(Box::new(context)), ..ending.failure()? })
    }

    pub(super) fn note_failed_attempt(&mut self, ending: &Ending) {
        self.replies.failed = self.failed_attempt(ending);
    }

    fn failed_attempt(&self, ending: &Ending) -> Option<(ModelName, u32)> {
        let (Phase::Retrying { attempts, error: known }, Ending::Failed { error }) = (&self.phase, ending) else {
            return None;
        };
        (known.code == error.code).then(|| (attempts.model.clone(), attempts.count))
    }

    /// The result so far.
    pub fn result(&self) -> RunResult {
        let ending = self.ending();
        let error_code = ending.and_then(|ending| ending.failure()).map(|failure| failure.code);
        let iterations = self.budget.iterations;
        let phase = if iterations == 0 { RunPhase::Initialization } else { RunPhase::Execution };
        let times = self.began.zip(self.clock).filter(|_| ending.is_some());
        let answer = ending.and_then(|ending| ending.output()).and_then(|output| shortened(&output.text));
        RunResult {
            summary: answer.or_else(|| self.replies.last_text.clone()),
            error_code,
            phase: error_code.map(|_| phase),
            exit_code: self.status().exit_code(),
            duration_ms: times.map(|(from, to)| u64::try_from(to.duration_since(from).as_millis()).unwrap_or(0)),
            models: self.replies.models.clone(),
            iterations,
        }
    }
}

impl Status {
    /// The exit code of the command line for a run that ended so; `None` if it is not over.
    pub fn exit_code(self) -> Option<u8> {
        match self {
            Self::Running | Self::Pending => None,
            Self::Completed => Some(0),
            Self::Failed | Self::Incomplete | Self::Expired => Some(1),
            Self::Cancelled => Some(130),
        }
    }
}
