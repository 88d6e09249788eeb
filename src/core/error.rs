//! The closed set of error codes. Everything that ends a run or refuses a request has a code; errors that the model can
//! correct are feedback and have no code. Classified by kind and status, never by message text.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::{AgentName, ModelName, RunId};

macro_rules! error_codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $status:literal, $exit:literal, $retryable:literal;)*) => {
        /// A stable code, its HTTP status, its exit code, and whether a retry may help.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum ErrorCode {
            $($(#[$doc])* #[serde(rename = $text)] $name,)*
        }

        impl ErrorCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The code as text.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The HTTP status of a response with this code.
            pub fn http_status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }

            /// The exit code of the command line.
            pub fn exit_code(self) -> u8 {
                match self { $(Self::$name => $exit,)* }
            }

            /// Whether the same request may succeed later. A failure that knows better overrides this.
            pub fn is_retryable(self) -> bool {
                match self { $(Self::$name => $retryable,)* }
            }
        }
    };
}

error_codes! {
    /// Invalid input: an unknown agent, tools wider than the agent's, an answer that never validated.
    Validation = "validation", 422, 1, false;
    /// The request is malformed.
    InvalidRequest = "invalid_request", 400, 2, false;
    /// The configuration is wrong.
    Configuration = "configuration", 500, 2, false;
    /// The credentials are missing or invalid.
    Unauthorized = "unauthorized", 401, 2, false;
    /// The caller is not allowed to do this.
    Forbidden = "forbidden", 403, 2, false;
    /// There is no such run, call, agent or server.
    NotFound = "not_found", 404, 2, false;
    /// The address does not support this method.
    MethodNotAllowed = "method_not_allowed", 405, 2, false;
    /// No available format is acceptable to the request.
    NotAcceptable = "not_acceptable", 406, 2, false;
    /// The request did not arrive in time.
    RequestTimeout = "request_timeout", 408, 1, true;
    /// The run is not in a state that allows this, or another writer was first.
    Conflict = "conflict", 409, 1, true;
    /// The resource existed and is no longer available.
    Gone = "gone", 410, 2, false;
    /// The resource changed after the request was prepared.
    PreconditionFailed = "precondition_failed", 412, 1, false;
    /// The body of the request is too large.
    PayloadTooLarge = "payload_too_large", 413, 2, false;
    /// The body of the request has an unsupported media type.
    UnsupportedMediaType = "unsupported_media_type", 415, 2, false;
    /// The caller sends too many requests, or too many at once.
    RateLimited = "rate_limited", 429, 1, true;
    /// This server accepts no new work at the moment.
    Unavailable = "unavailable", 503, 1, true;
    /// A tool call was denied and the agent says that this ends the run.
    ToolDenied = "tool_denied", 403, 1, false;
    /// The model used up its corrections on calls that cannot be run, or a call failed and the agent says that this ends
    /// the run.
    ToolFailed = "tool_failed", 502, 1, true;
    /// A server that the request or the run needs is not available.
    ToolUnavailable = "tool_unavailable", 503, 1, true;
    /// The provider refused the credentials.
    ProviderAuth = "provider_auth", 502, 1, false;
    /// The provider requires payment.
    ProviderBilling = "provider_billing", 502, 1, false;
    /// The provider's rate limit was reached.
    ProviderRateLimit = "provider_rate_limit", 429, 1, true;
    /// The provider is down, overloaded, or cannot be reached.
    ProviderUnavailable = "provider_unavailable", 503, 1, true;
    /// The provider took too long.
    ProviderTimeout = "provider_timeout", 504, 1, true;
    /// The provider refused the request as malformed.
    ProviderRejected = "provider_rejected", 502, 1, false;
    /// The provider's answer could not be read, or was cut off.
    ProviderInvalidResponse = "provider_invalid_response", 502, 1, true;
    /// The conversation no longer fits the model.
    ContextWindow = "context_window", 422, 1, false;
    /// The provider's content filter withheld the answer.
    ContentFilter = "content_filter", 422, 1, false;
    /// The model refused to answer.
    ModelRefused = "model_refused", 422, 1, false;
    /// The answer was cut off at the model's output limit.
    OutputTruncated = "output_truncated", 422, 1, false;
    /// The run reached its hard limit of turns, tokens or cost.
    TurnLimit = "turn_limit", 200, 1, false;
    /// The session has used up one of its limits.
    BudgetExhausted = "budget_exhausted", 409, 1, false;
    /// The run's wall-clock deadline passed.
    DeadlineExceeded = "deadline_exceeded", 504, 1, false;
    /// The input that the run was waiting for did not arrive in time.
    Expired = "expired", 410, 1, false;
    /// The run was cancelled.
    Cancelled = "cancelled", 409, 130, false;
    /// The store cannot be read or written.
    StoreUnavailable = "store_unavailable", 503, 1, true;
    /// The journal holds an event that this version does not understand, or an impossible one.
    JournalCorrupt = "journal_corrupt", 500, 1, false;
    /// A bug in toolgate.
    Internal = "internal", 500, 1, false;
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A failure with its code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Failure {
    /// The stable code.
    pub code: ErrorCode,
    /// The cause and the remedy, in words for people. Contains no secret.
    pub message: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// The delay that the other side asks for, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The step of the turn that failed, where the code does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<FailedStep>,
    /// The run that it ended. Journals do not repeat it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Box<FailureContext>>,
    /// The reply that could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<MalformedReply>>,
}

/// A reply of a provider that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MalformedReply {
    /// The beginning of the text that was received; at most 2 KiB in a journal.
    pub raw: String,
    /// The expected form, in words.
    pub expected: String,
}

/// The most bytes of a malformed reply in a journal.
const RAW_BYTES: usize = 2048;

impl MalformedReply {
    /// The reply with these bytes. Enough of them is kept for a later replacement of secrets, which may shorten the text.
    pub fn new(raw: &[u8], expected: impl Into<String>) -> Self {
        let raw = raw.get(..2 * RAW_BYTES).unwrap_or(raw);
        Self { raw: String::from_utf8_lossy(raw).into_owned(), expected: expected.into() }
    }

    /// The reply with its text replaced, cut to the length that a journal has.
    pub(crate) fn replace(&mut self, text: String) {
        self.raw = text;
        if self.raw.len() > RAW_BYTES {
            self.raw.truncate(self.raw.floor_char_boundary(RAW_BYTES - '…'.len_utf8()));
            self.raw.push('…');
        }
    }
}

/// The run that a failure ended, and the attempt at a model that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureContext {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    pub agent: AgentName,
    /// The model of the failed attempt, by its configured name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
    /// The number of the failed attempt in its turn, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
}

/// A step of a turn that is not journaled by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailedStep {
    /// The context builder failed before the model was called.
    ContextBuild,
}

impl Failure {
    /// A failure that is retryable if its code is.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            retryable: code.is_retryable(),
            retry_after_ms: None,
            step: None,
            context: None,
            details: None,
        }
    }

    /// The same failure with an explicit `retryable`, regardless of its code.
    pub fn retryable(self, retryable: bool) -> Self {
        Self { retryable, ..self }
    }

    /// The same failure with the step that failed.
    pub fn in_step(self, step: FailedStep) -> Self {
        Self { step: Some(step), ..self }
    }

    /// The same failure with the reply that could not be read.
    #[must_use]
    pub fn with_reply(self, raw: &[u8], expected: impl Into<String>) -> Self {
        Self { details: Some(Box::new(MalformedReply::new(raw, expected))), ..self }
    }

    /// The same failure with the run that it ended.
    #[must_use]
    pub fn of_run(mut self, run: &RunId) -> Self {
        if let Some(context) = &mut self.context {
            context.run_id = Some(run.clone());
        }
        self
    }

    /// The same failure with the delay the other side asks for.
    pub fn after_ms(self, delay: Option<u64>) -> Self {
        Self { retry_after_ms: delay, ..self }
    }
}
