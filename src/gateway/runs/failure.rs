//! The API view of a failure.

use serde::Serialize;
use toolgate_core::error::{ErrorCode, Failure, FailureContext};
use toolgate_core::id::AgentName;
use toolgate_runner::RunnerError;
use utoipa::ToSchema;

/// An error of a run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Failure)]
pub(crate) struct FailureView {
    /// The error code, which is stable.
    #[schema(value_type = String, example = "provider_unavailable")]
    code: ErrorCode,
    /// A description of the error and its remedy, for people.
    message: String,
    /// Whether a retry may succeed later.
    retryable: bool,
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

impl FailureView {
    pub(super) fn new(failure: Failure) -> Self {
        Self {
            code: failure.code,
            message: failure.message,
            retryable: failure.retryable,
            context: failure.context.map(|context| FailureContextView::new(*context)),
        }
    }

    pub(super) fn of_blocked(error: RunnerError) -> Self {
        // The names of other agents are not this caller's to read.
        if let RunnerError::NoSuchAgent { name, .. } = &error {
            return Self::of_unknown_agent(name);
        }
        Self::new(Failure::new(ErrorCode::Configuration, error.to_string()))
    }

    /// The failure of a run whose agent is not configured here.
    pub(super) fn of_unknown_agent(name: &AgentName) -> Self {
        let message = format!("agent `{name}` is not configured here; configure it again, or cancel the run");
        Self::new(Failure::new(ErrorCode::Configuration, message))
    }
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
