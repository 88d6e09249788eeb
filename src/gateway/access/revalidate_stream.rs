//! Revalidation of open streams: a stream can outlast the credentials that opened it. They are checked again while it
//! is open, and it ends when they are no longer valid.

use axum::body::Body;
use axum::extract::OriginalUri;
use axum::http::HeaderValue;
use axum::http::request::Parts;
use axum::response::Response;
use futures::StreamExt as _;
use toolgate_core::error::ErrorCode;

use crate::state::Gateway;

/// The response, which ends when its credentials become invalid.
pub(super) fn while_they_hold(gateway: Gateway, shown: Parts, response: Response) -> Response {
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(refused(gateway, shown))))
}

/// A copy of a request's head that does not share the buffer it was read into: a stream would keep that buffer from
/// being reused.
pub(super) fn copied(shown: &Parts) -> Parts {
    let mut copy = shown.clone();
    copy.headers.values_mut().for_each(|value| {
        let is_sensitive = value.is_sensitive();
        if let Ok(own) = HeaderValue::from_bytes(value.as_bytes()) {
            *value = own;
            value.set_sensitive(is_sensitive);
        }
    });
    let original = copy.extensions.get_mut().map(|OriginalUri(uri)| uri);
    for uri in [&mut copy.uri].into_iter().chain(original) {
        if let Ok(own) = uri.to_string().parse() {
            *uri = own;
        }
    }
    copy
}

/// Returns when the credentials are refused. It goes on waiting while they cannot be checked.
async fn refused(gateway: Gateway, shown: Parts) {
    loop {
        tokio::time::sleep(gateway.settings().recheck).await;
        if gateway.access().caller(&shown).await.is_err_and(|problem| problem.code() == ErrorCode::Unauthorized) {
            tracing::info!("stream closed: its credentials are no longer valid");
            return;
        }
    }
}
