//! A stream lasts longer than the credentials it was opened with may hold: they are looked at again while it is open, and it
//! ends when they let nobody in any more.

use axum::body::Body;
use axum::extract::OriginalUri;
use axum::http::HeaderValue;
use axum::http::request::Parts;
use axum::response::Response;
use futures::StreamExt as _;

use crate::core::error::ErrorCode;
use crate::gateway::state::Gateway;

/// The answer, which ends when these credentials do.
pub(super) fn while_they_hold(gateway: Gateway, shown: Parts, response: Response) -> Response {
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(refused(gateway, shown))))
}

/// The head of a request, without a share of the buffer that it was read into: a stream would keep those bytes from being used
/// again.
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

/// Returns when whoever showed these credentials would not be let in again. That nobody can say is no reason.
async fn refused(gateway: Gateway, shown: Parts) {
    loop {
        tokio::time::sleep(gateway.settings().recheck).await;
        if gateway.access().caller(&shown).await.is_err_and(|problem| problem.code() == ErrorCode::Unauthorized) {
            tracing::info!("a stream ends with the credentials it was opened with");
            return;
        }
    }
}
