//! Request ids: every request has one, in the log, in its problem and in the `x-request-id` header of its response.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use uuid::Uuid;

use super::redact::without_keys;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest request id that is accepted from a client.
const LONGEST_ID: usize = 128;

/// The id of a request; in its extensions while it is handled.
#[derive(Clone, Debug)]
pub(super) struct RequestId(pub(super) String);

/// Assigns an id to a request, and adds it to the response.
pub(super) async fn assign(mut request: Request, next: Next) -> Response {
    let id = RequestId::from_headers(request.headers());
    request.extensions_mut().insert(id.clone());
    let mut response = next.run(request).await;
    if let Ok(id) = HeaderValue::from_str(&id.0) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

impl RequestId {
    /// The id that the client sent, if it can appear in a log, or else a new one.
    fn from_headers(headers: &HeaderMap) -> Self {
        let brought = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
        let is_fit = |id: &&str| {
            (1..=LONGEST_ID).contains(&id.len())
                && without_keys(id) == **id
                && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte))
        };
        Self(brought.filter(is_fit).map_or_else(|| format!("req_{}", Uuid::now_v7().simple()), str::to_owned))
    }
}
