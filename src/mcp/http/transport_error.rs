//! Errors of HTTP connections, in words. Addresses are left out: they may contain credentials.

use std::error::Error;
use std::io::ErrorKind;

use http::StatusCode;
use rmcp::transport::DynamicTransportError;
use rmcp::transport::auth::AuthError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::client::Failure;
use super::non_mcp_response::{self, NonMcpResponse};
use crate::fault::{Fault, refusal};

/// The cause of a transport error. The words state it, with a remedy where there is one.
enum TransportError {
    /// The connection could not be opened.
    Unreachable(String),
    /// The server refuses access until an operator or a user changes something.
    Locked(String),
    /// Access could not be obtained this time.
    NoAccess(String),
    /// The answer is not MCP.
    NoMcp(NonMcpResponse),
    /// The answer is missing or incomplete.
    Broken(String),
}

impl TransportError {
    fn from_dynamic(error: &DynamicTransportError) -> Self {
        match error.error.downcast_ref::<Failure>() {
            Some(failure) => Self::of_failure(failure),
            None => Self::Broken(root_cause(error.error.as_ref())),
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "an open enum of the SDK; the others explain themselves")]
    fn of_failure(failure: &Failure) -> Self {
        match failure {
            StreamableHttpError::Client(client) if client.is_connect() => Self::Unreachable(undialled(client)),
            StreamableHttpError::Client(client) => Self::Broken(broken(client)),
            StreamableHttpError::HttpStatus(error) => {
                Self::NoMcp(NonMcpResponse::status(error.status, "", error.retry_after.as_deref()))
            }
            StreamableHttpError::AuthRequired(_) => Self::Locked(non_mcp_response::UNAUTHORIZED.into()),
            StreamableHttpError::InsufficientScope(_) => Self::Locked(non_mcp_response::FORBIDDEN.into()),
            StreamableHttpError::Auth(AuthError::AuthorizationFailed(why)) => Self::Locked(why.clone()),
            StreamableHttpError::Auth(AuthError::OAuthError(why)) => Self::NoAccess(why.clone()),
            StreamableHttpError::Auth(other) => Self::NoAccess(other.to_string()),
            StreamableHttpError::UnexpectedContentType(kind) => Self::NoMcp(NonMcpResponse::content(kind.as_deref())),
            StreamableHttpError::UnexpectedServerResponse(text) => match NonMcpResponse::read(text) {
                NonMcpResponse::Status { status: 401, .. } => Self::Locked(non_mcp_response::UNAUTHORIZED.into()),
                answer => Self::NoMcp(answer),
            },
            StreamableHttpError::Io(error) => {
                match error.get_ref().and_then(|inner| inner.downcast_ref::<NonMcpResponse>()) {
                    Some(answer) => Self::NoMcp(answer.clone()),
                    None => Self::Broken(error.to_string()),
                }
            }
            StreamableHttpError::SessionExpired => {
                Self::Broken("it does not know the session any more (HTTP 404)".into())
            }
            StreamableHttpError::ReinitializationFailed(error) => {
                Self::Broken(format!("it refused a new one: {}", refusal(&error.message, error.code.0)))
            }
            StreamableHttpError::ServerDoesNotSupportSse => {
                Self::NoMcp(NonMcpResponse::status(StatusCode::METHOD_NOT_ALLOWED.as_u16(), "", None))
            }
            // The task is one of the SDK's. Its error says that it was cancelled, also when it panicked or ended.
            StreamableHttpError::TokioJoinError(_) | StreamableHttpError::TransportChannelClosed => {
                Self::Broken("the connection was already closed".into())
            }
            other => Self::Broken(other.to_string()),
        }
    }
}

/// The cause, for a sentence about a server that could not be reached.
pub(crate) fn explain(error: &DynamicTransportError) -> String {
    words(TransportError::from_dynamic(error))
}

/// The same for an error that the SDK has not wrapped.
pub(super) fn explain_failure(failure: &Failure) -> String {
    words(TransportError::of_failure(failure))
}

/// The same without the remedy, where that of an HTTP status does not fit.
pub(crate) fn without_remedy(error: &DynamicTransportError) -> String {
    match TransportError::from_dynamic(error) {
        TransportError::NoMcp(answer) => format!("it answered with {}", answer.described()),
        other @ (TransportError::Unreachable(_)
        | TransportError::Locked(_)
        | TransportError::NoAccess(_)
        | TransportError::Broken(_)) => words(other),
    }
}

fn words(error: TransportError) -> String {
    match error {
        TransportError::Unreachable(cause)
        | TransportError::Locked(cause)
        | TransportError::NoAccess(cause)
        | TransportError::Broken(cause) => cause,
        TransportError::NoMcp(answer) => format!("it answered with {answer}"),
    }
}

/// The answer that is not MCP, if there was an answer, for a sentence "it answered with ...".
pub(crate) fn answered_without_mcp(error: &DynamicTransportError) -> Option<String> {
    match TransportError::from_dynamic(error) {
        TransportError::NoMcp(answer) => Some(answer.to_string()),
        TransportError::Unreachable(_)
        | TransportError::Locked(_)
        | TransportError::NoAccess(_)
        | TransportError::Broken(_) => None,
    }
}

/// Whether the answer is JSON, but no message of MCP.
pub(crate) fn is_json_without_mcp(error: &DynamicTransportError) -> bool {
    matches!(TransportError::from_dynamic(error), TransportError::NoMcp(NonMcpResponse::Json(_)))
}

/// Whether the server refuses access until an operator or a user changes something, so that automatic retries are of
/// no use.
pub(crate) fn is_locked(error: &DynamicTransportError) -> bool {
    matches!(TransportError::from_dynamic(error), TransportError::Locked(_))
}

/// Whether the connection could not be opened.
pub(crate) fn is_unreachable(error: &DynamicTransportError) -> bool {
    matches!(TransportError::from_dynamic(error), TransportError::Unreachable(_))
}

/// Whether a connection was opened and ended before the answer.
pub(crate) fn is_broken_off(error: &DynamicTransportError) -> bool {
    matches!(TransportError::from_dynamic(error), TransportError::Broken(_))
}

/// The error of a request that could not be sent, or whose answer is invalid. Only a connection that could not be
/// opened, and a refusal of access, prove that the server did nothing.
pub(crate) fn send_fault(error: &DynamicTransportError) -> Fault {
    match TransportError::from_dynamic(error) {
        TransportError::Unreachable(cause) => Fault::NotSent(format!("could not be reached: {cause}")),
        TransportError::Locked(cause) | TransportError::NoAccess(cause) => {
            Fault::NotSent(format!("could not be used: {cause}"))
        }
        TransportError::NoMcp(answer) if answer.is_a_refusal() => Fault::Rejected(answer.to_string()),
        TransportError::NoMcp(answer) => Fault::NoMcp(answer.to_string()),
        TransportError::Broken(cause) => Fault::Disconnected(cause),
    }
}

/// Why the connection could not be opened. The messages of the libraries name neither the setting nor the likely
/// mistake.
fn undialled(client: &reqwest::Error) -> String {
    if let Some(refused) = toolgate_egress::rejection(client) {
        return refused.to_string();
    }
    let cause = root_cause(client);
    if cause.contains("InvalidContentType") {
        return "what listens there does not speak TLS; does the server's `url` begin with `http://`?".into();
    }
    if let Some(why) = cause.strip_prefix("invalid peer certificate: ") {
        // `Other(OtherError(X))` is the library's format for X.
        let why =
            if why.starts_with("Other(") { why.rsplit('(').next().unwrap_or(why).trim_end_matches(')') } else { why };
        let remedy = "correct it, or have this machine trust its issuer";
        return format!("its TLS certificate is not accepted ({why}); {remedy}");
    }
    if let Some((_, why)) = cause.split_once("failed to lookup address information: ") {
        return format!("the name of its host cannot be resolved ({why}); is the server's `url` right?");
    }
    format!("{cause}; is it running, and is the server's `url` right?")
}

/// How an open connection ended.
fn broken(client: &reqwest::Error) -> String {
    let cause = root_cause(client);
    match cause.as_str() {
        "connection closed before message completed" => "it was closed before the answer was complete".into(),
        _ => cause,
    }
}

fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let text = cause.to_string();
    let kind = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    match kind {
        Some(ErrorKind::ConnectionRefused) => "no process listens there (connection refused)".into(),
        Some(ErrorKind::ConnectionReset) => "it was reset by the other side".into(),
        // The error number does not help a reader of the message.
        Some(_) => text.split(" (os error ").next().unwrap_or(&text).to_owned(),
        None => text,
    }
}
