//! What is answered to a request that is refused: an RFC 9457 problem with one of the closed codes.
//!
//! A handler returns a [`Problem`]; it travels as an extension of an empty response, and [`super::answer::finish`] writes it
//! out with what only that place knows: the request's id, and where the pages about codes are.

use std::time::Duration;

use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::core::error::{ErrorCode, Failure};
use crate::core::run::Refusal;
use crate::ports::StoreError;
use crate::runner::RunnerError;

/// Why a request is refused.
#[derive(Clone, Debug)]
pub struct Problem(Box<Told>);

#[derive(Clone, Debug)]
struct Told {
    code: ErrorCode,
    detail: String,
    errors: Vec<FieldProblem>,
    retryable: bool,
    retry_after: Option<Duration>,
    headers: HeaderMap,
}

/// What is wrong with one place of the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FieldProblem {
    /// Where in the body, as a JSON Pointer (RFC 6901); empty for all of it.
    pub pointer: String,
    /// What is wrong there.
    pub detail: String,
}

/// A problem as it is sent (RFC 9457, `application/problem+json`).
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(super) struct ProblemView {
    /// Where the code is explained.
    #[schema(example = "/errors/not_found")]
    r#type: String,
    /// The code in words.
    title: &'static str,
    /// The HTTP status.
    #[schema(example = 404)]
    status: u16,
    /// What happened and what to do, for people.
    detail: String,
    /// The path that was asked.
    instance: String,
    /// The stable code.
    #[schema(value_type = String, example = "not_found")]
    code: ErrorCode,
    /// The id of this request, as in the log and in the `x-request-id` header.
    request_id: String,
    /// Whether the same request may succeed later.
    retryable: bool,
    /// How long to wait before, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    /// What is wrong with single places of the request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<FieldProblem>,
}

impl Problem {
    /// A problem that is retryable as its code is by nature. `detail` says what happened and what to do.
    pub fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self(Box::new(Told {
            code,
            detail: detail.into(),
            errors: Vec::new(),
            retryable: code.is_retryable(),
            retry_after: None,
            headers: HeaderMap::new(),
        }))
    }

    /// There is no such thing, or it is somebody else's: nobody is told which.
    pub(super) fn not_found(what: &str, id: &str) -> Self {
        Self::new(ErrorCode::NotFound, format!("there is no {what} `{id}`"))
    }

    /// The body cannot be read as what it should be, at one place.
    pub(super) fn field(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        let error = FieldProblem { pointer: pointer.into(), detail: detail.into() };
        Self::new(ErrorCode::InvalidRequest, error.detail.clone()).and(error)
    }

    /// The body can be read, and what it says at one place cannot be meant.
    pub(super) fn invalid(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        let error = FieldProblem { pointer: pointer.into(), detail: detail.into() };
        Self::new(ErrorCode::Validation, error.detail.clone()).and(error)
    }

    /// The same about a name that a field of the body gives: the address is right, and what is asked there cannot be meant.
    pub(super) fn of_field(self, pointer: &str) -> Self {
        Self::invalid(pointer, self.0.detail)
    }

    /// The same about a name that a parameter of the query gives.
    pub(super) fn of_parameter(self, name: &str) -> Self {
        Self::new(ErrorCode::Validation, format!("`{name}`: {}", self.0.detail))
    }

    /// The same with what is wrong at one more place.
    #[must_use]
    pub fn and(mut self, error: FieldProblem) -> Self {
        self.0.errors.push(error);
        self
    }

    /// The same, to be tried again after a while.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.0.retryable = true;
        self.0.retry_after = Some(delay);
        self
    }

    /// Whether the same request may succeed later, where the code alone says something else.
    pub(super) fn set_retryable(&mut self, retryable: bool) {
        self.0.retryable = retryable;
    }

    /// The same with a header of the answer.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.insert(name, value);
        self
    }

    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// What happened, for people.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// As it is sent.
    pub(super) fn view(&self, base: &str, instance: String, request_id: String) -> ProblemView {
        let Told { code, detail, errors, retryable, retry_after, .. } = &*self.0;
        ProblemView {
            r#type: format!("{base}/errors/{code}"),
            title: title(*code),
            status: self.status().as_u16(),
            detail: detail.clone(),
            instance,
            code: *code,
            request_id,
            retryable: *retryable,
            retry_after_ms: retry_after.map(|delay| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)),
            errors: errors.clone(),
        }
    }

    /// The HTTP status. That a run ended at its limit is no error of a request; that one cannot be made for it is a conflict.
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
            // Whole seconds, and never fewer than are wanted.
            let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
            response.headers_mut().insert(axum::http::header::RETRY_AFTER, seconds.into());
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

impl Problem {
    /// What the runner refused, with the places of the request that it was refused for.
    pub(super) fn placed(error: RunnerError, place: impl Fn(&Refusal) -> String) -> Self {
        if error == RunnerError::Closed {
            let detail = "this server is being stopped and takes up no more runs";
            return Self::new(ErrorCode::Unavailable, detail).after(Duration::from_secs(1));
        }
        let detail = error.to_string();
        if let Some(pointer) = field_of(&error) {
            return Self::invalid(pointer, detail);
        }
        let refusals = error.refusals().iter();
        let refused = refusals.map(|refusal| FieldProblem { pointer: place(refusal), detail: refusal.to_string() });
        let problem = refused.fold(Self::new(error.code(), detail), Self::and);
        if matches!(error, RunnerError::StillDriven(_)) {
            return problem.after(Duration::from_secs(1));
        }
        if error == RunnerError::Busy { problem.after(Duration::from_secs(5)) } else { problem }
    }
}

/// The field of a new run that the runner did not take.
fn field_of(error: &RunnerError) -> Option<String> {
    if let RunnerError::WiderLimit { limit, .. } = error {
        return Some(format!("/limits/{}", limit.name));
    }
    if let RunnerError::UnusableTool { place, .. } = error {
        return Some(format!("/external_tools/{place}"));
    }
    let known = [
        (matches!(error, RunnerError::NoSuchAgent { .. }), "/agent"),
        (matches!(error, RunnerError::NoSuchServer { .. }), "/servers"),
        (matches!(error, RunnerError::DuplicateTool(_)), "/external_tools"),
        (matches!(error, RunnerError::EmptyMessage), "/input"),
        (matches!(error, RunnerError::UnusableOutputSchema(_)), "/output_schema"),
    ];
    known.into_iter().find(|(is_it, _)| *is_it).map(|(_, pointer)| pointer.to_owned())
}

/// What something is kept in does not answer, or answers nonsense.
impl From<&StoreError> for Problem {
    fn from(error: &StoreError) -> Self {
        let code = match error {
            StoreError::Unavailable(_) => ErrorCode::StoreUnavailable,
            StoreError::Corrupt(_) => ErrorCode::JournalCorrupt,
        };
        Self::new(code, error.to_string())
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
                Self::new(ErrorCode::PayloadTooLarge, "the body is larger than this server takes")
            }
            _ => Self::new(ErrorCode::InvalidRequest, "the body did not arrive whole"),
        }
    }
}

/// The code in words.
fn title(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::Validation => "Invalid input",
        ErrorCode::InvalidRequest => "Malformed request",
        ErrorCode::Configuration => "Wrong configuration",
        ErrorCode::Unauthorized => "Not let in",
        ErrorCode::Forbidden => "Not allowed",
        ErrorCode::NotFound => "Not found",
        ErrorCode::MethodNotAllowed => "Method not allowed",
        ErrorCode::NotAcceptable => "Not acceptable",
        ErrorCode::RequestTimeout => "Request timed out",
        ErrorCode::Conflict => "Conflict",
        ErrorCode::Gone => "Gone",
        ErrorCode::PreconditionFailed => "Changed since",
        ErrorCode::PayloadTooLarge => "Body too large",
        ErrorCode::UnsupportedMediaType => "Unsupported media type",
        ErrorCode::RateLimited => "Too many requests",
        ErrorCode::Unavailable => "Not taking anything new",
        ErrorCode::ToolDenied => "Tool call denied",
        ErrorCode::ToolFailed => "Tool call failed",
        ErrorCode::ToolUnavailable => "Tool unavailable",
        ErrorCode::ProviderAuth => "Provider refused the credentials",
        ErrorCode::ProviderBilling => "Provider wants to be paid",
        ErrorCode::ProviderRateLimit => "Provider limits the rate",
        ErrorCode::ProviderUnavailable => "Provider unavailable",
        ErrorCode::ProviderTimeout => "Provider timed out",
        ErrorCode::ProviderRejected => "Provider refused the request",
        ErrorCode::ProviderInvalidResponse => "Provider's answer unreadable",
        ErrorCode::ContextWindow => "Conversation too long",
        ErrorCode::ContentFilter => "Answer withheld",
        ErrorCode::ModelRefused => "Model refused",
        ErrorCode::OutputTruncated => "Answer cut off",
        ErrorCode::TurnLimit => "Limit reached",
        ErrorCode::DeadlineExceeded => "Deadline exceeded",
        ErrorCode::Expired => "Expired",
        ErrorCode::Cancelled => "Cancelled",
        ErrorCode::StoreUnavailable => "Store unavailable",
        ErrorCode::JournalCorrupt => "Journal unreadable",
        ErrorCode::Internal => "Internal fault",
    }
}
