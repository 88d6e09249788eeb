//! Resuming an event stream: the pace of the attempts, and refusals that no further attempt changes.

use http::StatusCode;
use rmcp::model::RequestId;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use tokio::time::sleep;

use super::client::{Events, Failure};
use super::non_mcp_response::NonMcpResponse;
use super::seen::Seen;
use super::transport_error::explain_failure;
use crate::transport::ResponseFinding;

/// Opens the stream of a session with `get`, or the rest of a stream that ended after this event.
pub(super) async fn open(
    seen: &Seen,
    last_event: Option<&str>,
    get: impl Future<Output = Result<Events, Failure>>,
) -> Result<Events, Failure> {
    let request = last_event.and_then(|last_event| seen.resumable.request(last_event));
    match seen.resumable.attempt(request.as_ref()) {
        Some(pause) => sleep(pause).await,
        None => {
            let words = "its event stream ended again and again without the answer, however often it was resumed";
            return Err(give_up(seen, request, words.into()));
        }
    }
    get.await.map_err(|failure| match &request {
        Some(_) if is_final(&failure) => {
            let words =
                format!("its event stream ended before the answer, and was not resumed: {}", explain_failure(&failure));
            give_up(seen, request, words)
        }
        Some(_) | None => failure,
    })
}

/// Ends the attempts: the SDK makes no more of them after this error, and fails the request.
fn give_up(seen: &Seen, request: Option<RequestId>, words: String) -> Failure {
    if let Some(request) = request {
        seen.resumable.moved(Some(&request));
        seen.requests.add_finding(request, ResponseFinding::Unanswered(Some(words)));
    }
    StreamableHttpError::ServerDoesNotSupportSse
}

/// Whether the server would answer another attempt in the same way.
#[expect(clippy::wildcard_enum_match_arm, reason = "an open enum of the SDK; anything else may pass")]
fn is_final(failure: &Failure) -> bool {
    match failure {
        StreamableHttpError::ServerDoesNotSupportSse
        | StreamableHttpError::SessionExpired
        | StreamableHttpError::AuthRequired(_)
        | StreamableHttpError::InsufficientScope(_)
        | StreamableHttpError::Auth(_)
        | StreamableHttpError::ResponseBodyTooLarge { .. }
        | StreamableHttpError::UnexpectedContentType(_) => true,
        StreamableHttpError::Io(error) => {
            match error.get_ref().and_then(|inner| inner.downcast_ref::<NonMcpResponse>()) {
                Some(NonMcpResponse::Status { status, .. }) => is_final_status(*status),
                Some(
                    NonMcpResponse::Content(_)
                    | NonMcpResponse::Json(_)
                    | NonMcpResponse::NotJson(_)
                    | NonMcpResponse::Other(_),
                ) => true,
                None => false,
            }
        }
        _ => false,
    }
}

fn is_final_status(status: u16) -> bool {
    let may_pass = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_EARLY, StatusCode::TOO_MANY_REQUESTS];
    status < 500 && !may_pass.iter().any(|passing| passing.as_u16() == status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_final_unless_it_says_that_it_passes() {
        for (status, expected) in [(400, true), (404, true), (204, true), (408, false), (429, false), (503, false)] {
            assert_eq!(is_final_status(status), expected, "{status}");
        }
    }
}
