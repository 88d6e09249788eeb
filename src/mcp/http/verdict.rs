//! Conclusions about a server from a transport error.

use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

type Failure = StreamableHttpError<reqwest::Error>;

/// Whether a server at the address may answer another question better: every error except a connection that could not
/// be opened and a refusal of access.
pub(crate) fn was_answered(error: &DynamicTransportError) -> bool {
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

/// The size limit of the JSON, if the answer exceeded it.
pub(crate) fn was_too_long(error: &DynamicTransportError) -> Option<usize> {
    match error.error.downcast_ref::<Failure>() {
        Some(StreamableHttpError::ResponseBodyTooLarge { max_size }) => Some(*max_size),
        _ => None,
    }
}

/// Whether the server rejected a request because it does not know the session, so that a new handshake is due and the
/// request was certainly not executed.
pub(crate) fn session_is_over(error: &DynamicTransportError) -> bool {
    matches!(error.error.downcast_ref::<Failure>(), Some(StreamableHttpError::SessionExpired))
}
