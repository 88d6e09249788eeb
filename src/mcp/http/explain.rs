//! What went wrong on the way to an HTTP server, in words. Addresses are left out: they may hold credentials.

use std::error::Error;

use rmcp::transport::DynamicTransportError;
use rmcp::transport::auth::AuthError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::egress;
use crate::mcp::fault::Fault;

/// The cause, for a sentence about a server that could not be reached.
pub(in crate::mcp) fn explain(error: &DynamicTransportError) -> String {
    let Some(error) = error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>() else {
        return root_cause(error.error.as_ref());
    };
    #[expect(clippy::wildcard_enum_match_arm, reason = "an open enum of the SDK; the others explain themselves")]
    match error {
        StreamableHttpError::Client(client) if client.is_connect() => {
            if let Some(refused) = egress::refusal(client) {
                return refused.to_string();
            }
            format!("{}; is it running, and is the server's `url` right?", root_cause(client))
        }
        StreamableHttpError::Client(client) => root_cause(client),
        StreamableHttpError::HttpStatus(status) => {
            let retry = status.retry_after.as_deref().map(|after| format!(", retry after {after}"));
            format!("it answered HTTP {}{}", status.status, retry.unwrap_or_default())
        }
        StreamableHttpError::AuthRequired(_) => {
            "it answered HTTP 401 and wants credentials; give them in the server's `headers`".into()
        }
        StreamableHttpError::InsufficientScope(_) => {
            "it answered HTTP 403, the credentials in the server's `headers` do not suffice".into()
        }
        StreamableHttpError::Auth(AuthError::AuthorizationFailed(why) | AuthError::OAuthError(why)) => why.clone(),
        other => other.to_string(),
    }
}

/// Whether the server lets nobody in until somebody does something about it, so that trying again by itself is of no use.
pub(in crate::mcp) fn is_locked(error: &DynamicTransportError) -> bool {
    matches!(
        error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>(),
        Some(
            StreamableHttpError::AuthRequired(_)
                | StreamableHttpError::InsufficientScope(_)
                | StreamableHttpError::Auth(AuthError::AuthorizationFailed(_))
        )
    )
}

/// The fault of a request that could not be sent. Only where no connection came about is it certain that the server
/// never saw it.
pub(in crate::mcp) fn send_fault(error: &DynamicTransportError) -> Fault {
    let cause = explain(error);
    if is_unreachable(error) {
        return Fault::NotSent(format!("could not be reached: {cause}"));
    }
    // What is refused for want of access is not done.
    if lacks_access(error) {
        return Fault::NotSent(format!("could not be used: {cause}"));
    }
    Fault::Disconnected(cause)
}

/// Whether nobody is there to be dialled.
pub(in crate::mcp) fn is_unreachable(error: &DynamicTransportError) -> bool {
    let error = error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>();
    matches!(error, Some(StreamableHttpError::Client(client)) if client.is_connect())
}

/// Whether it is access that is missing, which somebody has to give.
fn lacks_access(error: &DynamicTransportError) -> bool {
    let error = error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>();
    matches!(
        error,
        Some(
            StreamableHttpError::Auth(_)
                | StreamableHttpError::AuthRequired(_)
                | StreamableHttpError::InsufficientScope(_)
        )
    )
}

fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
