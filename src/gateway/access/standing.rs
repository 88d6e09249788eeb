//! A stream lasts longer than the credentials it was opened with may hold: they are looked at again while it is open, and it
//! ends when they let nobody in any more.

use axum::body::Body;
use axum::http::request::Parts;
use axum::response::Response;
use futures::StreamExt as _;

use crate::core::error::ErrorCode;
use crate::gateway::state::Gateway;

/// The answer, which ends when these credentials do.
pub(super) fn while_they_hold(gateway: Gateway, shown: Parts, response: Response) -> Response {
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(refused(gateway, shown))))
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
