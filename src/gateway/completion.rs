//! Cancellation safety: a request that may change something is handled in a task of the gateway, and its connection only
//! waits for the answer. HTTP drops a handler when its client closes the connection, at any point where it waits: between
//! the revocation of a key and the cache that has to forget it, between an answer and its idempotency record, or before
//! the handler began, while the store looks up the credentials. A request whose body does not arrive whole ends where it
//! is read, and changes nothing.
//!
//! The layer covers every route and looks at the method alone, so that a new route cannot forget it.

use std::panic::resume_unwind;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::Extensions;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use tokio_util::sync::CancellationToken;
use toolgate_core::error::ErrorCode;
use tracing::Instrument as _;

use super::problem::Problem;
use super::state::Gateway;

/// Whether the client of a request is still connected. A handler need not wait for a run after its client has
/// disconnected.
#[derive(Clone, Debug, Default)]
pub(super) struct ClientGone(CancellationToken);

impl ClientGone {
    /// The signal of a request that is handled to completion; for any other request it never fires.
    pub(super) fn from_extensions(extensions: &Extensions) -> Self {
        extensions.get().cloned().unwrap_or_default()
    }

    /// Returns when the client closes its connection.
    pub(super) async fn closed(&self) {
        self.0.cancelled().await;
    }
}

/// Handles a request with an unsafe method (RFC 9110, section 9.2.1) to its end, whether or not its client waits for it.
pub(super) async fn complete(State(gateway): State<Gateway>, mut request: Request, next: Next) -> Response {
    if request.method().is_safe() {
        return next.run(request).await;
    }
    let gone = CancellationToken::new();
    request.extensions_mut().insert(ClientGone(gone.clone()));
    // Dropped with this future when the client disconnects first.
    let _connected = gone.drop_guard();
    match gateway.requests().spawn(next.run(request).in_current_span()).await {
        Ok(response) => response,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(_) => Problem::new(ErrorCode::Internal, "the request was not handled to its end").into_response(),
        },
    }
}

impl<S: Sync> FromRequestParts<S> for ClientGone {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        Ok(Self::from_extensions(&parts.extensions))
    }
}
