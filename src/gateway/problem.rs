//! Problems: the response to a request that is refused, as in RFC 9457, with one of a closed set of codes.
//!
//! A handler returns a [`Problem`]; it travels as an extension of an empty response. [`super::request_id::finish`] writes
//! the body, because only that layer has the request's id and the address of the error pages. The cause, which is only
//! for operators, travels along to the log.

use std::time::Duration;

use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::redact::without_keys;
use crate::core::error::{ErrorCode, Failure};
use crate::core::run::ResumeError;
use crate::ports::StoreError;
use crate::runner::RunnerError;

/// The reason for refusing a request.
#[derive(Clone, Debug)]
pub struct Problem(Box<Told>);

#[derive(Clone, Debug)]
struct Told {
    code: ErrorCode,
    detail: String,
    /// The cause, which appears only in the log.
    cause: Option<String>,
    errors: Vec<FieldProblem>,
    retryable: bool,
    retry_after: Option<Duration>,
    headers: HeaderMap,
}

/// An error at one place of the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FieldProblem {
    /// The place in the body, as a JSON Pointer (RFC 6901); empty for the whole body.
    pub pointer: String,
    /// The error.
    pub detail: String,
}

/// An error response (RFC 9457, `application/problem+json`).
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(super) struct ProblemView {
    /// The address of the page about the code.
    #[schema(example = "/errors/not_found")]
    r#type: String,
    /// A short description of the code.
    title: &'static str,
    /// The HTTP status.
    #[schema(example = 404)]
    status: u16,
    /// A description of the error and its remedy, for people.
    detail: String,
    /// The path of the request.
    instance: String,
    /// The error code, which is stable.
    #[schema(value_type = String, example = "not_found")]
    code: ErrorCode,
    /// The id of this request, as in the log and in the `x-request-id` header.
    request_id: String,
    /// Whether the same request may succeed later.
    retryable: bool,
    /// How long to wait before a retry, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    /// The errors at single places of the request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<FieldProblem>,
}

impl Problem {
    /// A problem, retryable by default if its code is. `detail` describes the error and its remedy.
    pub fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self(Box::new(Told {
            code,
            detail: without_keys(&detail.into()).into_owned(),
            cause: None,
            errors: Vec::new(),
            retryable: code.is_retryable(),
            retry_after: None,
            headers: HeaderMap::new(),
        }))
    }

    /// A conflict with a state that does not change: a retry is refused again.
    pub(super) fn lasting_conflict(detail: impl Into<String>) -> Self {
        let mut problem = Self::new(ErrorCode::Conflict, detail);
        problem.set_retryable(false);
        problem
    }

    /// A resource that does not exist, or belongs to another tenant: the caller does not learn which.
    pub(super) fn not_found(what: &str, id: &str) -> Self {
        Self::new(ErrorCode::NotFound, format!("there is no {what} `{id}`"))
    }

    /// The body has the wrong form at one place.
    pub(super) fn field(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        let error = FieldProblem { pointer: pointer.into(), detail: detail.into() };
        Self::new(ErrorCode::InvalidRequest, error.detail.clone()).and(error)
    }

    /// The body is well formed, but its value at one place is not valid.
    pub(super) fn invalid(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        let error = FieldProblem { pointer: pointer.into(), detail: detail.into() };
        Self::new(ErrorCode::Validation, error.detail.clone()).and(error)
    }

    /// Reports a name that a field of the body gives: the address exists, but the field is not valid.
    pub(super) fn of_field(self, pointer: &str) -> Self {
        Self::invalid(pointer, self.0.detail)
    }

    /// Reports a name that a query parameter gives.
    pub(super) fn of_parameter(self, name: &str) -> Self {
        Self::new(ErrorCode::Validation, format!("`{name}`: {}", self.0.detail))
    }

    /// Adds an error at one more place.
    #[must_use]
    pub fn and(mut self, error: FieldProblem) -> Self {
        self.0.errors.push(FieldProblem { detail: without_keys(&error.detail).into_owned(), ..error });
        self
    }

    /// Adds the cause, which is only logged: paths, advice for operators, the text of a panic.
    #[must_use]
    pub(super) fn because(mut self, cause: impl Into<String>) -> Self {
        self.0.cause = Some(without_keys(&cause.into()).into_owned());
        self
    }

    /// Adds a delay after which to retry.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.0.retryable = true;
        self.0.retry_after = Some(delay);
        self
    }

    /// Overrides whether a retry may succeed, which otherwise follows from the code.
    pub(super) fn set_retryable(&mut self, retryable: bool) {
        self.0.retryable = retryable;
    }

    /// Adds a header to the response.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.insert(name, value);
        self
    }

    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// The description for people.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// The cause that is logged.
    pub(super) fn cause(&self) -> Option<&str> {
        self.0.cause.as_deref()
    }

    /// The body of the response.
    pub(super) fn view(&self, base: &str, instance: String, request_id: String) -> ProblemView {
        let Told { code, detail, errors, retryable, retry_after, .. } = &*self.0;
        ProblemView {
            r#type: format!("{base}/errors/{code}"),
            title: title(*code),
            status: self.status().as_u16(),
            detail: detail.clone(),
            instance: without_keys(&instance).into_owned(),
            code: *code,
            request_id,
            retryable: *retryable,
            retry_after_ms: retry_after.map(|delay| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)),
            errors: errors.clone(),
        }
    }

    /// A problem from an error of the runner, with the places of the request that caused it.
    pub(super) fn placed(error: RunnerError, place: impl Fn(&ResumeError) -> String) -> Self {
        if let Some(fault) = error.store_fault() {
            return Self::from(fault);
        }
        let (code, detail, is_retryable) = (error.code(), error.to_string(), error.is_retryable());
        let soon = |seconds| Duration::from_secs(seconds);
        let mut problem = match error {
            RunnerError::Closed => Self::new(code, "this server is stopping and accepts no more runs").after(soon(1)),
            RunnerError::StillDriven(_) => Self::new(code, detail).after(soon(1)),
            RunnerError::Busy => Self::new(code, detail).after(soon(5)),
            RunnerError::Refused(refusals) => {
                let refused = refusals.iter();
                let refused =
                    refused.map(|refusal| FieldProblem { pointer: place(refusal), detail: refusal.to_string() });
                refused.fold(Self::new(code, detail), Self::and)
            }
            // The caller who asks about an existing run cannot bring its agent back.
            RunnerError::NoSuchAgent { name, .. } => {
                let detail = format!("the agent of this run, `{name}`, is no longer configured on this server");
                Self::new(ErrorCode::Configuration, detail)
            }
            RunnerError::WiderLimit { limit, .. } => Self::invalid(format!("/limits/{}", limit.name), detail),
            RunnerError::NoSuchServer { .. } => Self::invalid("/servers", detail),
            RunnerError::DuplicateTool(_) => Self::invalid("/external_tools", detail),
            RunnerError::UnusableTool { place, .. } => Self::invalid(format!("/external_tools/{place}"), detail),
            RunnerError::UnusableOutputSchema(_) => Self::invalid("/output_schema", detail),
            RunnerError::EmptyMessage => Self::invalid("/input", detail),
            RunnerError::NoSuchPosition { .. } | RunnerError::ForkEnds { .. } => Self::invalid("/at", detail),
            RunnerError::Incomplete(_)
            | RunnerError::ModelTwice { .. }
            | RunnerError::NoSuchTool { .. }
            | RunnerError::NotOfAServer(_)
            | RunnerError::InvalidArguments { .. }
            | RunnerError::InjectionMissing { .. }
            | RunnerError::ServerMissing { .. }
            | RunnerError::ServerTwice(_)
            | RunnerError::NoSuchRun(_)
            | RunnerError::Purged { .. }
            | RunnerError::NotOver { .. }
            | RunnerError::DrivenElsewhere { .. }
            | RunnerError::Released(_)
            | RunnerError::Drive(_)
            | RunnerError::Lost(_) => Self::new(code, detail),
            #[cfg(feature = "envelope")]
            RunnerError::Envelope(_) => Self::new(code, detail),
        };
        problem.0.retryable = is_retryable;
        problem
    }

    /// A problem for a request that names the agent itself: its name is wrong, not the configuration.
    pub(super) fn of_named_agent(error: RunnerError) -> Self {
        let detail = error.to_string();
        if matches!(error, RunnerError::NoSuchAgent { .. }) {
            Self::invalid("/agent", detail)
        } else {
            Self::from(error)
        }
    }

    /// The HTTP status. Codes of runs that reached a limit have 200, because such a run is not a failed request; as a
    /// problem they are a conflict.
    pub(super) fn status(&self) -> StatusCode {
        match self.0.code.http_status() {
            200 => StatusCode::CONFLICT,
            status => StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.headers_mut().extend(self.0.headers.clone());
        if let Some(delay) = self.0.retry_after {
            response.headers_mut().insert(RETRY_AFTER, whole_seconds(delay).into());
        }
        response.extensions_mut().insert(self);
        response
    }
}

impl From<RunnerError> for Problem {
    fn from(error: RunnerError) -> Self {
        Self::placed(error, |_| String::new())
    }
}

/// The store does not answer, or returns invalid data. Its location and the remedy are only logged.
impl From<&StoreError> for Problem {
    fn from(error: &StoreError) -> Self {
        let problem = match error {
            StoreError::Unavailable(_) => {
                Self::new(ErrorCode::StoreUnavailable, "the store is not available; this server's log says why")
            }
            StoreError::Corrupt(_) => {
                let detail = "the store holds data that this server cannot read; its log says which";
                Self::new(ErrorCode::JournalCorrupt, detail)
            }
        };
        problem.because(error.to_string())
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::from(&error)
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        let mut problem = Self::new(failure.code, failure.message);
        problem.0.retryable = failure.retryable;
        problem.0.retry_after = failure.retry_after_ms.map(Duration::from_millis);
        problem
    }
}

impl From<PathRejection> for Problem {
    fn from(rejection: PathRejection) -> Self {
        Self::new(ErrorCode::InvalidRequest, rejection.body_text())
    }
}

impl From<BytesRejection> for Problem {
    fn from(rejection: BytesRejection) -> Self {
        match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => {
                Self::new(ErrorCode::PayloadTooLarge, "the body is larger than this server accepts")
            }
            _ => Self::new(ErrorCode::InvalidRequest, "the body is incomplete"),
        }
    }
}

/// Whole seconds, rounded up, for headers and texts.
pub(super) fn whole_seconds(delay: Duration) -> u64 {
    delay.as_secs() + u64::from(delay.subsec_nanos() > 0)
}

/// A short description of the code.
fn title(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::Validation => "Invalid input",
        ErrorCode::InvalidRequest => "Malformed request",
        ErrorCode::Configuration => "Wrong configuration",
        ErrorCode::Unauthorized => "Not authenticated",
        ErrorCode::Forbidden => "Not allowed",
        ErrorCode::NotFound => "Not found",
        ErrorCode::MethodNotAllowed => "Method not allowed",
        ErrorCode::NotAcceptable => "Not acceptable",
        ErrorCode::RequestTimeout => "Request timed out",
        ErrorCode::Conflict => "Conflict",
        ErrorCode::Gone => "Gone",
        ErrorCode::PreconditionFailed => "Precondition failed",
        ErrorCode::PayloadTooLarge => "Body too large",
        ErrorCode::UnsupportedMediaType => "Unsupported media type",
        ErrorCode::RateLimited => "Too many requests",
        ErrorCode::Unavailable => "Unavailable",
        ErrorCode::ToolDenied => "Tool call denied",
        ErrorCode::ToolFailed => "Tool call failed",
        ErrorCode::ToolUnavailable => "Tool unavailable",
        ErrorCode::ProviderAuth => "Provider refused the credentials",
        ErrorCode::ProviderBilling => "Provider requires payment",
        ErrorCode::ProviderRateLimit => "Provider rate limit reached",
        ErrorCode::ProviderUnavailable => "Provider unavailable",
        ErrorCode::ProviderTimeout => "Provider timed out",
        ErrorCode::ProviderRejected => "Provider refused the request",
        ErrorCode::ProviderInvalidResponse => "Provider's response unreadable",
        ErrorCode::ContextWindow => "Conversation too long",
        ErrorCode::ContentFilter => "Answer filtered",
        ErrorCode::ModelRefused => "Model refused",
        ErrorCode::OutputTruncated => "Answer cut off",
        ErrorCode::TurnLimit => "Limit reached",
        ErrorCode::DeadlineExceeded => "Deadline exceeded",
        ErrorCode::Expired => "Expired",
        ErrorCode::Cancelled => "Cancelled",
        ErrorCode::StoreUnavailable => "Store unavailable",
        ErrorCode::JournalCorrupt => "Journal unreadable",
        ErrorCode::Internal => "Internal error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::every_error;

    #[test]
    fn store_errors_appear_only_in_the_log() {
        let fault = StoreError::Unavailable("/var/lib/toolgate: the disk is full".into());
        for problem in [Problem::from(&fault), Problem::from(RunnerError::Drive(fault.clone().into()))] {
            assert_eq!(problem.code(), ErrorCode::StoreUnavailable);
            assert!(!problem.detail().contains("/var/lib"), "{problem:?}");
            assert_eq!(problem.cause(), Some(fault.to_string().as_str()));
        }
    }

    #[test]
    fn a_lasting_conflict_is_not_retryable() {
        let of = |error| {
            let view = Problem::from(error).view("", String::new(), String::new());
            (view.code, view.retryable)
        };
        let settled = RunnerError::Refused(vec![ResumeError::AlreadySettled { call_id: "call_1".into() }]);
        assert_eq!(of(settled), (ErrorCode::Conflict, false));
        let elsewhere = RunnerError::DrivenElsewhere { run: "run_1".into(), node: "node_1".into() };
        assert_eq!(of(elsewhere), (ErrorCode::Conflict, true));
    }

    #[test]
    fn a_problem_is_retryable_exactly_if_its_error_is() {
        for error in every_error() {
            let view = Problem::from(error.clone()).view("", String::new(), String::new());
            assert_eq!(view.retryable, error.is_retryable(), "{error:?}");
            assert!(view.retryable || view.retry_after_ms.is_none(), "{error:?}");
        }
    }

    #[test]
    fn an_unknown_position_is_reported_at_its_field() {
        let error = RunnerError::NoSuchPosition { run: "run_1".into(), length: 3, at: 7 };
        let view = Problem::from(error).view("", String::new(), String::new());
        let pointers: Vec<&str> = view.errors.iter().map(|error| error.pointer.as_str()).collect();
        assert_eq!((view.code, pointers), (ErrorCode::Validation, vec!["/at"]));
    }
}
