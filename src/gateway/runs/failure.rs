//! The API view of a failure.

use serde::Serialize;
use toolgate_core::error::{ErrorCode, Failure, FailureContext};
use toolgate_core::id::AgentName;
use toolgate_runner::RunnerError;
use utoipa::ToSchema;

use crate::closed_sets::{ErrorCodeView, FailedStepView};

/// An error of a run.
#[derive(ToSchema)]
#[schema(as = Failure)]
#[allow(dead_code)] // core writes it; this describes what it writes
pub(crate) struct FailureView {
    /// The error code, which is stable.
    code: ErrorCodeView,
    /// A description of the error and its remedy, for people.
    message: String,
    /// Whether a retry may succeed later.
    retryable: bool,
    /// The delay that the provider asks for, in milliseconds.
    retry_after_ms: Option<u64>,
    /// The step of the turn that failed, where the code does not say it.
    step: Option<FailedStepView>,
    /// The run that the error ended.
    context: Option<FailureContextView>,
}

/// The run that an error ended, and the attempt at a model that failed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FailureContext)]
pub(crate) struct FailureContextView {
    /// The run's id.
    run_id: Option<String>,
    /// The run's agent.
    agent: String,
    /// The model of the failed attempt.
    model: Option<String>,
    /// The number of the failed attempt in its turn, from 1.
    attempt: Option<u32>,
}

/// The failure of a run that this server cannot continue.
pub(super) fn failure_of_blocked(error: RunnerError) -> Failure {
    // The names of other agents are not this caller's to read.
    if let RunnerError::NoSuchAgent { name, .. } = &error {
        return failure_of_unknown_agent(name);
    }
    Failure::new(ErrorCode::Configuration, error.to_string())
}

/// The failure of a run whose agent is not configured here.
pub(super) fn failure_of_unknown_agent(name: &AgentName) -> Failure {
    let message = format!("agent `{name}` is not configured here; configure it again, or cancel the run");
    Failure::new(ErrorCode::Configuration, message)
}

impl FailureContextView {
    pub(crate) fn new(context: FailureContext) -> Self {
        Self {
            run_id: context.run_id.map(|run| run.to_string()),
            agent: context.agent.to_string(),
            model: context.model.map(|model| model.to_string()),
            attempt: context.attempt,
        }
    }
}
