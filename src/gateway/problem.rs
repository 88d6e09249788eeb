//! Problems: the response to a request that is refused, as in RFC 9457, with one of a closed set of codes.
//!
//! A handler returns a [`Problem`]; it travels as an extension of an empty response.
//! [`super::problem_body::write_problem`] writes the body, because only that layer has the request's id and the address
//! of the error pages. The cause, which is only for operators, travels along to the log.

use std::time::Duration;

use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use toolgate_core::error::ErrorCode;
use toolgate_core::id::{RunId, SessionId};
use toolgate_ports::{QuotaExceeded, QuotaOwner, QuotaUnit, StoreError};
use toolgate_runner::RunnerError;
use toolgate_service::{CurrentState, ErrorReason, FieldError, ServiceError};
use utoipa::ToSchema;

use super::closed_sets::ErrorCodeView;
use super::redact::without_keys;
use super::runs::failure::FailureContextView;
use super::runs::view::StatusView;
use super::sessions::view::SessionStatusView;

/// The pages about codes, published.
const PAGES: &str = "https://github.com/toolgate/toolgate/blob/main/docs/errors";

const SECONDS_OF_A_DAY: u64 = 24 * 60 * 60;

/// The reason for refusing a request: an error of the service, and headers of the response. Keys in its texts are
/// masked.
#[derive(Clone, Debug)]
pub struct Problem(Box<Refusal>);

#[derive(Clone, Debug)]
struct Refusal {
    error: ServiceError,
    headers: HeaderMap,
}

/// An error response (RFC 9457, `application/problem+json`).
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(super) struct ProblemView {
    /// The address of the page about the code.
    #[schema(example = "https://toolgate.example.com/errors/not_found")]
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
    #[schema(value_type = ErrorCodeView)]
    code: ErrorCode,
    /// Why, where the code alone does not tell a program what to do; stable too.
    reason: Option<ErrorReason>,
    /// The id of this request, as in the log and in the `x-request-id` header.
    request_id: String,
    /// Whether the same request may succeed later.
    retryable: bool,
    /// How long to wait before a retry, in milliseconds.
    retry_after_ms: Option<u64>,
    /// The errors at single places of the request.
    errors: Vec<FieldError>,
    /// The state of the run or session that the request is about, with `conflict` and `precondition_failed`.
    current: Option<CurrentStateView>,
    /// The run whose failure this is.
    context: Option<FailureContextView>,
}

/// The state of a run or session when a request about it was refused.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "object", rename_all = "snake_case")]
#[schema(as = CurrentState)]
enum CurrentStateView {
    /// A run.
    Run {
        /// The run's id.
        #[schema(value_type = String)]
        id: RunId,
        /// The run's status.
        status: StatusView,
        /// The length of the run's journal; also the `ETag` of this response.
        version: u64,
    },
    /// A session.
    Session {
        /// The session's id.
        #[schema(value_type = String)]
        id: SessionId,
        /// The session's status.
        status: SessionStatusView,
        /// The session's version, which is also in the `ETag` of this response.
        version: u64,
    },
}

impl CurrentStateView {
    fn new(current: &CurrentState) -> Self {
        match current {
            CurrentState::Run { id, status, version } => {
                Self::Run { id: id.clone(), status: (*status).into(), version: *version }
            }
            CurrentState::Session { id, head, version } => {
                Self::Session { id: id.clone(), status: SessionStatusView::new(head.as_ref()), version: *version }
            }
        }
    }
}

impl Problem {
    /// A problem, retryable by default if its code is. `detail` describes the error and its remedy.
    pub fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        ServiceError::new(code, detail).into()
    }

    /// A resource that does not exist, or belongs to another tenant: the caller does not learn which.
    pub(super) fn not_found(what: &str, id: &str) -> Self {
        ServiceError::not_found(what, id).into()
    }

    /// The body has the wrong form at one place.
    pub(super) fn field(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        let error = FieldError { pointer: pointer.into(), detail: detail.into() };
        ServiceError::new(ErrorCode::InvalidRequest, error.detail.clone()).and(error).into()
    }

    /// The body is well formed, but its value at one place is not valid.
    pub(super) fn invalid(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        ServiceError::invalid(pointer, detail).into()
    }

    /// Adds a header to the response.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.insert(name, value);
        self
    }

    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        self.0.error.code
    }

    /// The description for people.
    pub fn detail(&self) -> &str {
        &self.0.error.detail
    }

    /// The cause that is logged.
    pub(super) fn cause(&self) -> Option<&str> {
        self.0.error.cause.as_deref()
    }

    /// The state of the run or session that the request is about, if that is why the request is refused.
    pub(super) fn current(&self) -> Option<&CurrentState> {
        self.0.error.current.as_deref()
    }

    /// The body of the response.
    pub(super) fn view(&self, public_url: &str, instance: String, request_id: String) -> ProblemView {
        let ServiceError { code, reason, detail, errors, retryable, retry_after, current, context, .. } = &self.0.error;
        ProblemView {
            r#type: page(public_url, *code),
            title: title(*code),
            status: self.status().as_u16(),
            detail: detail.clone(),
            instance: without_keys(&instance).into_owned(),
            code: *code,
            reason: *reason,
            request_id,
            retryable: *retryable,
            retry_after_ms: retry_after.map(|delay| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)),
            errors: errors.clone(),
            current: current.as_deref().map(CurrentStateView::new),
            context: context.as_deref().cloned().map(FailureContextView::new),
        }
    }

    /// The HTTP status. Codes of runs that reached a limit have 200, because such a run is not a failed request; as a
    /// problem they are a conflict.
    pub(super) fn status(&self) -> StatusCode {
        match self.code().http_status() {
            200 => StatusCode::CONFLICT,
            status => StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }
}

/// The address of the page about a code: that of this server, if it knows its own address. It does not depend on the
/// request, because programs compare it.
fn page(public_url: &str, code: ErrorCode) -> String {
    match public_url {
        "" => format!("{PAGES}/{code}.md"),
        public_url => format!("{public_url}/errors/{code}"),
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.headers_mut().extend(self.0.headers.clone());
        if let Some(delay) = self.0.error.retry_after {
            response.headers_mut().insert(RETRY_AFTER, whole_seconds(delay).into());
        }
        if let Some([policy, left]) = self.0.error.quota.as_deref().and_then(quota_headers) {
            response.headers_mut().extend([
                (HeaderName::from_static("ratelimit-policy"), policy),
                (HeaderName::from_static("ratelimit"), left),
            ]);
        }
        response.extensions_mut().insert(self);
        response
    }
}

impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Self {
        let clean = |text: &str| without_keys(text).into_owned();
        let field = |FieldError { pointer, detail }| FieldError { pointer, detail: clean(&detail) };
        let error = ServiceError {
            detail: clean(&error.detail),
            cause: error.cause.as_deref().map(clean),
            errors: error.errors.into_iter().map(field).collect(),
            ..error
        };
        Self(Box::new(Refusal { error, headers: HeaderMap::new() }))
    }
}

impl From<RunnerError> for Problem {
    fn from(error: RunnerError) -> Self {
        ServiceError::from(error).into()
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        ServiceError::from(error).into()
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

/// `RateLimit-Policy` and `RateLimit` of a daily quota. Their numbers are integers, so a quota of costs has none.
fn quota_headers(over: &QuotaExceeded) -> Option<[HeaderValue; 2]> {
    let owner = match over.owner {
        QuotaOwner::Caller => "key",
        QuotaOwner::Tenant => "tenant",
    };
    let unit = match over.unit {
        QuotaUnit::Runs => "runs",
        QuotaUnit::Tokens => "tokens",
        QuotaUnit::CostUsd => return None,
    };
    let (limit, day, wait) = (&over.limit, SECONDS_OF_A_DAY, whole_seconds(over.retry_after));
    let policy = format!(r#""{unit}-per-day-of-{owner}";q={limit};w={day}"#);
    let left = format!(r#""{unit}-per-day-of-{owner}";r=0;t={wait}"#);
    Some([policy.parse().ok()?, left.parse().ok()?])
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
        ErrorCode::BudgetExhausted => "Session limit used up",
        ErrorCode::DeadlineExceeded => "Deadline exceeded",
        ErrorCode::Expired => "Expired",
        ErrorCode::Cancelled => "Cancelled",
        ErrorCode::StoreUnavailable => "Store unavailable",
        ErrorCode::JournalCorrupt => "Journal unreadable",
        ErrorCode::Internal => "Internal error",
    }
}
