//! The closed set of error codes. Everything that ends a run or refuses a request has one of these; everything a model
//! can mend is feedback and has none. Classified by kind and status, never by message text.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! error_codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $status:literal, $exit:literal, $retryable:literal;)*) => {
        /// A stable code, its HTTP status, its exit code, and whether trying again may help.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum ErrorCode {
            $($(#[$doc])* #[serde(rename = $text)] $name,)*
        }

        impl ErrorCode {
            /// Every code there is.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The code as text.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The HTTP status it is answered with.
            pub fn http_status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }

            /// The exit code of the command line.
            pub fn exit_code(self) -> u8 {
                match self { $(Self::$name => $exit,)* }
            }

            /// Whether the same request may succeed later. A failure that knows better says so itself.
            pub fn is_retryable(self) -> bool {
                match self { $(Self::$name => $retryable,)* }
            }
        }
    };
}

error_codes! {
    /// Input that is wrong in itself: an unknown agent, tools wider than the agent's, an answer that never validated.
    Validation = "validation", 422, 1, false;
    /// The request is malformed.
    InvalidRequest = "invalid_request", 400, 2, false;
    /// The configuration is wrong.
    Configuration = "configuration", 500, 2, false;
    /// Nobody showed who they are, or what they showed does not hold.
    Unauthorized = "unauthorized", 401, 2, false;
    /// Whoever asks may not do this.
    Forbidden = "forbidden", 403, 2, false;
    /// There is no such run, call, agent or server.
    NotFound = "not_found", 404, 2, false;
    /// The address takes no such method.
    MethodNotAllowed = "method_not_allowed", 405, 2, false;
    /// There is nothing in a form that the request accepts.
    NotAcceptable = "not_acceptable", 406, 2, false;
    /// The request did not arrive in time.
    RequestTimeout = "request_timeout", 408, 1, true;
    /// The run is not in a state that allows this, or somebody else was first.
    Conflict = "conflict", 409, 1, true;
    /// It was there, and is not any more.
    Gone = "gone", 410, 2, false;
    /// What the request was made for has changed since.
    PreconditionFailed = "precondition_failed", 412, 1, false;
    /// The request has a larger body than is taken.
    PayloadTooLarge = "payload_too_large", 413, 2, false;
    /// The request's body is in a form that is not taken.
    UnsupportedMediaType = "unsupported_media_type", 415, 2, false;
    /// Whoever asks does so too often, or too much at once.
    RateLimited = "rate_limited", 429, 1, true;
    /// This server takes nothing new at the moment.
    Unavailable = "unavailable", 503, 1, true;
    /// A tool call was denied and the agent says that this ends the run.
    ToolDenied = "tool_denied", 403, 1, false;
    /// The model used up its corrections on calls that cannot be run.
    ToolFailed = "tool_failed", 502, 1, true;
    /// A server that a request needs is not there.
    ToolUnavailable = "tool_unavailable", 503, 1, true;
    /// The provider refused the credentials.
    ProviderAuth = "provider_auth", 502, 1, false;
    /// The provider wants to be paid.
    ProviderBilling = "provider_billing", 502, 1, false;
    /// The provider limits the rate.
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
    /// The provider's filter withheld the answer.
    ContentFilter = "content_filter", 422, 1, false;
    /// The model declined to answer.
    ModelRefused = "model_refused", 422, 1, false;
    /// The answer was cut off at the model's output limit.
    OutputTruncated = "output_truncated", 422, 1, false;
    /// The run reached its hard limit of turns, tokens or cost.
    TurnLimit = "turn_limit", 200, 1, false;
    /// The run's wall-clock deadline passed.
    DeadlineExceeded = "deadline_exceeded", 504, 1, false;
    /// What the run was waiting for did not come in time.
    Expired = "expired", 410, 1, false;
    /// Somebody cancelled the run.
    Cancelled = "cancelled", 409, 130, false;
    /// The store cannot be read or written.
    StoreUnavailable = "store_unavailable", 503, 1, true;
    /// The journal holds something this version does not understand, or that cannot have happened.
    JournalCorrupt = "journal_corrupt", 500, 1, false;
    /// A fault of toolgate.
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
    /// What happened and what to do, for people. Holds no secret.
    pub message: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// How long the other side asks us to wait, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

impl Failure {
    /// A failure that is retryable as its code is by nature.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retryable: code.is_retryable(), retry_after_ms: None }
    }

    /// The same failure, to be retried or not regardless of its code.
    pub fn retryable(self, retryable: bool) -> Self {
        Self { retryable, ..self }
    }

    /// The same failure with the delay the other side asks for.
    pub fn after_ms(self, delay: Option<u64>) -> Self {
        Self { retry_after_ms: delay, ..self }
    }
}
