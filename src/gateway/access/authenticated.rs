//! The authenticated caller as a parameter of handlers.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::core::error::ErrorCode;
use crate::gateway::problem::Problem;
use crate::service::Caller;

/// The caller of a request. It is always there: no request reaches a handler without authentication.
pub(in crate::gateway) struct Authenticated(pub(in crate::gateway) Caller);

impl<S: Sync> FromRequestParts<S> for Authenticated {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get().cloned().map(Self);
        caller.ok_or_else(|| Problem::new(ErrorCode::Internal, "the request was not authenticated"))
    }
}
