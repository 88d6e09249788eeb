//! What an error of the transport says about the server behind it.

use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

type Failure = StreamableHttpError<reqwest::Error>;

/// Whether there is somebody at the address who may answer another question better: everything but a connection that
/// did not come about and access that was refused.
pub(in crate::mcp) fn was_answered(error: &DynamicTransportError) -> bool {
    let Some(error) = error.error.downcast_ref::<Failure>() else { return true };
    #[expect(clippy::wildcard_enum_match_arm, reason = "an open enum of the SDK")]
    match error {
        StreamableHttpError::Client(client) => !client.is_connect(),
        StreamableHttpError::AuthRequired(_)
        | StreamableHttpError::InsufficientScope(_)
        | StreamableHttpError::Auth(_) => false,
        _ => true,
    }
}

/// Whether the server turned a request away because it does not know the session, so that a new handshake is due and
/// the request was certainly not carried out.
pub(in crate::mcp) fn session_is_over(error: &DynamicTransportError) -> bool {
    matches!(error.error.downcast_ref::<Failure>(), Some(StreamableHttpError::SessionExpired))
}
