//! Service errors: why a request is refused, with one of a closed set of codes. Each surface maps them to its own form:
//! HTTP to a problem, the command line to an exit code.

use std::time::Duration;

use serde::Serialize;
use toolgate_core::error::{ErrorCode, Failure, FailureContext};
use toolgate_core::id::{RunId, SessionId};
use toolgate_core::run::{ResumeError, Status};
use toolgate_ports::{QuotaExceeded, RunRow, SessionHead, SessionRow, StoreError};
use toolgate_runner::RunnerError;
use utoipa::ToSchema;

use super::error_reason::ErrorReason;

/// The reason for refusing a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct ServiceError {
    /// The stable code.
    pub code: ErrorCode,
    /// Why, where the code alone does not tell a program what to do.
    pub reason: Option<ErrorReason>,
    /// A description of the error and its remedy, for people.
    pub detail: String,
    /// The cause, which is only for the log: paths, advice for operators.
    pub cause: Option<String>,
    /// The errors at single places of the request.
    pub errors: Vec<FieldError>,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// How long to wait before a retry.
    pub retry_after: Option<Duration>,
    /// The state of the run or session that the request is about, if that is why it is refused.
    pub current: Option<Box<CurrentState>>,
    /// The run whose failure this is.
    pub context: Option<Box<FailureContext>>,
    /// The quota that is used up.
    pub quota: Option<Box<QuotaExceeded>>,
}

/// An error at one place of the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = FieldProblem)]
pub struct FieldError {
    /// The place in the body, as a JSON Pointer (RFC 6901); empty for the whole body.
    pub pointer: String,
    /// The error.
    pub detail: String,
}

impl ServiceError {
    /// An error, retryable by default if its code is. `detail` describes the error and its remedy.
    pub fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self {
            code,
            reason: None,
            detail: detail.into(),
            cause: None,
            errors: Vec::new(),
            retryable: code.is_retryable(),
            retry_after: None,
            current: None,
            context: None,
            quota: None,
        }
    }

    /// A conflict with a state that does not change: a retry is refused again.
    pub fn lasting_conflict(detail: impl Into<String>) -> Self {
        Self { retryable: false, ..Self::new(ErrorCode::Conflict, detail) }
    }

    /// A resource that does not exist, or belongs to another tenant: the caller does not learn which.
    pub fn not_found(what: &str, id: &str) -> Self {
        Self::new(ErrorCode::NotFound, format!("there is no {what} `{id}`"))
    }

    /// A request about webhooks to a server that sends none.
    pub(crate) fn no_webhooks() -> Self {
        Self::new(ErrorCode::Unavailable, "this server has no webhooks")
    }

    /// The request is well formed, but its value at one place is not valid.
    pub fn invalid(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        let error = FieldError { pointer: pointer.into(), detail: detail.into() };
        Self::new(ErrorCode::Validation, error.detail.clone()).and(error)
    }

    /// Reports a name that a field of the request gives: the address exists, but the field is not valid.
    #[must_use]
    pub fn of_field(self, pointer: &str) -> Self {
        Self::invalid(pointer, self.detail)
    }

    /// Reports a name that a query parameter gives.
    #[must_use]
    pub fn of_parameter(self, name: &str) -> Self {
        Self::new(ErrorCode::Validation, format!("`{name}`: {}", self.detail))
    }

    /// Adds an error at one more place.
    #[must_use]
    pub fn and(mut self, error: FieldError) -> Self {
        self.errors.push(error);
        self
    }

    /// Adds the reason for programs.
    #[must_use]
    pub fn with(self, reason: ErrorReason) -> Self {
        Self { reason: Some(reason), ..self }
    }

    /// Adds the cause.
    #[must_use]
    pub fn because(self, cause: impl Into<String>) -> Self {
        Self { cause: Some(cause.into()), ..self }
    }

    /// Adds a delay after which to retry.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { retryable: true, retry_after: Some(delay), ..self }
    }

    /// The error of the runner, with the places of the request that caused it.
    pub fn at_fields(error: RunnerError, place: impl Fn(&ResumeError) -> String) -> Self {
        if let Some(fault) = error.store_fault() {
            return Self::from(fault);
        }
        if let Some(over) = error.quota_exceeded() {
            let refused = Self::new(error.code(), over.to_string()).with(ErrorReason::QuotaExceeded);
            return Self { quota: Some(Box::new(over.clone())), ..refused.after(over.retry_after) };
        }
        let (code, detail, is_retryable) = (error.code(), error.to_string(), error.is_retryable());
        let reason = ErrorReason::of_runner(&error);
        let soon = |seconds| Duration::from_secs(seconds);
        let mut failed = match error {
            RunnerError::Closed => Self::new(code, "this server is stopping and accepts no more runs").after(soon(1)),
            RunnerError::StillDriven(_)
            | RunnerError::SessionChanging(_)
            | RunnerError::DrivenElsewhere { .. }
            | RunnerError::Released(_) => Self::new(code, detail).after(soon(1)),
            RunnerError::SessionHasHistory(_) => Self::invalid("/input", detail),
            RunnerError::SessionOfAnotherAgent { .. } => Self::invalid("/agent", detail),
            RunnerError::SessionBusy { head, .. } => {
                Self { current: Some(Box::new(CurrentState::of_head(&head))), ..Self::new(code, detail) }
            }
            RunnerError::NotTheHead { head, .. } => {
                let current = head.map(|head| Box::new(CurrentState::of_head(&head)));
                Self { current, ..Self::new(code, detail) }
            }
            RunnerError::SessionVersion(current) => {
                Self { current: Some(Box::new(CurrentState::of_session(&current))), ..Self::new(code, detail) }
            }
            RunnerError::RunOfAnotherSession { .. } => Self::invalid("/session_id", detail),
            RunnerError::InvalidSession { member, why } | RunnerError::InvalidFeedback { member, why } => {
                Self::invalid(format!("/{member}"), why)
            }
            RunnerError::Busy => Self::new(code, detail).after(soon(5)),
            RunnerError::Refused(refusals) => {
                let refused = refusals.iter();
                let refused =
                    refused.map(|refusal| FieldError { pointer: place(refusal), detail: refusal.to_string() });
                refused.fold(Self::new(code, detail), Self::and)
            }
            // The caller who asks about an existing run or session cannot bring its agent back.
            RunnerError::NoSuchAgent { name, .. } => {
                let detail = format!(
                    "the agent of this run, `{name}`, is not configured on this server any more; configure it again, or \
                     cancel the run"
                );
                Self::lasting_conflict(detail).with(ErrorReason::AgentMissing)
            }
            RunnerError::ServerMissing { .. }
            | RunnerError::ModeMissing { .. }
            | RunnerError::InjectionMissing { .. } => Self::lasting_conflict(detail).with(ErrorReason::ServerMissing),
            RunnerError::WiderLimit { limit, .. } | RunnerError::WiderThanSession { limit, .. } => {
                Self::invalid(format!("/limits/{}", limit.name), detail)
            }
            RunnerError::NoSuchServer { .. } => Self::invalid("/servers", detail),
            RunnerError::ForeignTool { foreign, .. } => {
                Self::invalid(format!("/tools/{}/{}", foreign.list, foreign.index), detail)
            }
            RunnerError::DuplicateTool(_) => Self::invalid("/external_tools", detail),
            RunnerError::UnusableTool { place, .. } => Self::invalid(format!("/external_tools/{place}"), detail),
            RunnerError::UnusableOutputSchema(_) => Self::invalid("/output_schema", detail),
            RunnerError::UnusableModelOptions { option, .. } => {
                Self::invalid(option.map(|option| format!("/{option}")).unwrap_or_default(), detail)
            }
            RunnerError::InstructionsRefused(_) => Self::invalid("/instructions", detail),
            RunnerError::EmptyMessage | RunnerError::FileMissing => Self::invalid("/input", detail),
            RunnerError::NoSuchModel { .. } => Self::invalid("/model", detail),
            RunnerError::NoSuchMode { .. } => Self::invalid("/mode", detail),
            RunnerError::UnusableCondition(_) => Self::invalid("/when", detail),
            RunnerError::NoSuchPosition { .. } | RunnerError::ForkEnds { .. } => Self::invalid("/at", detail),
            RunnerError::Incomplete(_)
            | RunnerError::ModelTwice { .. }
            | RunnerError::NoSuchTool { .. }
            | RunnerError::NotOfAServer(_)
            | RunnerError::InvalidArguments { .. }
            | RunnerError::ServerTwice(_)
            | RunnerError::NoSuchRun(_)
            | RunnerError::NoSuchSession(_)
            | RunnerError::SessionDeleted { .. }
            | RunnerError::SessionExists(_)
            | RunnerError::SessionLimit { .. }
            | RunnerError::FeedbackLimit(_)
            | RunnerError::NoSuchFeedback { .. }
            | RunnerError::Purged { .. }
            | RunnerError::NotOver { .. }
            | RunnerError::NotEnded { .. }
            | RunnerError::SessionOfAnotherPrincipal(_)
            | RunnerError::Drive(_)
            | RunnerError::Envelope(_)
            | RunnerError::Lost(_) => Self::new(code, detail),
        };
        failed.retryable = is_retryable;
        failed.reason = failed.reason.or(reason);
        failed
    }

    /// The error of a request that names the agent itself: its name is wrong, not the configuration.
    pub fn of_named_agent(error: RunnerError) -> Self {
        let detail = error.to_string();
        if matches!(error, RunnerError::NoSuchAgent { .. }) {
            Self::invalid("/agent", detail)
        } else {
            Self::from(error)
        }
    }
}

impl From<RunnerError> for ServiceError {
    fn from(error: RunnerError) -> Self {
        Self::at_fields(error, |_| String::new())
    }
}

/// The store does not answer, or returns invalid data. Its location and the remedy are only logged.
impl From<&StoreError> for ServiceError {
    fn from(error: &StoreError) -> Self {
        let failed = match error {
            StoreError::Unavailable(_) => {
                Self::new(ErrorCode::StoreUnavailable, "the store is not available; this server's log says why")
            }
            StoreError::Full(_) => {
                let detail = "the disk of this server's store is full, so nothing was stored; its operator has to free \
                              disk space";
                Self::new(ErrorCode::StoreUnavailable, detail)
            }
            StoreError::Corrupt(_) => {
                let detail = "the store holds data that this server cannot read; its log says which";
                Self::new(ErrorCode::JournalCorrupt, detail)
            }
        };
        failed.because(error.to_string())
    }
}

impl From<StoreError> for ServiceError {
    fn from(error: StoreError) -> Self {
        Self::from(&error)
    }
}

impl From<Failure> for ServiceError {
    fn from(failure: Failure) -> Self {
        Self {
            retryable: failure.retryable,
            retry_after: failure.retry_after_ms.map(Duration::from_millis),
            context: failure.context,
            ..Self::new(failure.code, failure.message)
        }
    }
}

/// The state of a run or session when a request was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CurrentState {
    Run {
        id: RunId,
        status: Status,
        /// The length of its journal.
        version: u64,
    },
    Session {
        id: SessionId,
        /// Its latest run.
        head: Option<SessionHead>,
        version: u64,
    },
}

impl CurrentState {
    /// The state in a run's index row.
    pub fn of_run(row: &RunRow) -> Self {
        Self::Run { id: row.id.clone(), status: row.status, version: row.version }
    }

    /// The state of the latest run of a session.
    pub(crate) fn of_head(head: &SessionHead) -> Self {
        Self::Run { id: head.run.clone(), status: head.status, version: head.version }
    }

    /// The state of a session.
    pub(crate) fn of_session(row: &SessionRow) -> Self {
        Self::Session { id: row.id.clone(), head: row.head.clone(), version: row.version }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_runner::every_error;

    #[test]
    fn store_errors_appear_only_in_the_log() {
        let place = "/var/lib/toolgate".to_owned();
        for (fault, words) in
            [(StoreError::Unavailable(place.clone()), "not available"), (StoreError::Full(place), "is full")]
        {
            for error in [ServiceError::from(&fault), ServiceError::from(RunnerError::Drive(fault.clone().into()))] {
                assert_eq!(error.code, ErrorCode::StoreUnavailable);
                assert!(error.detail.contains(words) && !error.detail.contains("/var/lib"), "{error:?}");
                assert_eq!(error.cause, Some(fault.to_string()));
            }
        }
    }

    #[test]
    fn a_lasting_conflict_is_not_retryable() {
        let of = |error| {
            let error = ServiceError::from(error);
            (error.code, error.retryable)
        };
        let settled = RunnerError::Refused(vec![ResumeError::AlreadySettled { call_id: "call_1".into() }]);
        assert_eq!(of(settled), (ErrorCode::Conflict, false));
        let elsewhere = RunnerError::DrivenElsewhere { run: "run_1".into(), node: "node_1".into() };
        assert_eq!(of(elsewhere), (ErrorCode::Conflict, true));
    }

    #[test]
    fn an_error_is_retryable_exactly_if_that_of_the_runner_is() {
        for error in every_error() {
            let of_service = ServiceError::from(error.clone());
            assert_eq!(of_service.retryable, error.is_retryable(), "{error:?}");
            assert!(of_service.retryable || of_service.retry_after.is_none(), "{error:?}");
        }
    }

    #[test]
    fn no_error_names_a_command_or_its_flags() {
        for error in every_error() {
            let ServiceError { detail, errors, .. } = ServiceError::from(error);
            for text in errors.iter().map(|error| &error.detail).chain([&detail]) {
                assert!(!text.contains("`toolgate") && !text.contains("--"), "{text}");
            }
        }
    }

    #[test]
    fn an_unknown_position_is_reported_at_its_field() {
        let error = RunnerError::NoSuchPosition { run: "run_1".into(), length: 3, at: 7 };
        let error = ServiceError::from(error);
        let pointers: Vec<&str> = error.errors.iter().map(|error| error.pointer.as_str()).collect();
        assert_eq!((error.code, pointers), (ErrorCode::Validation, vec!["/at"]));
    }
}
