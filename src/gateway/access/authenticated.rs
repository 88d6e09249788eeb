//! The authenticated caller as a parameter of handlers.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use toolgate_core::error::ErrorCode;
use toolgate_service::Caller;

use crate::problem::Problem;

/// The caller of a request. It is always there: no request reaches a handler without authentication.
pub(crate) struct Authenticated(pub(crate) Caller);

impl<S: Sync> FromRequestParts<S> for Authenticated {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get().cloned().map(Self);
        caller.ok_or_else(|| Problem::new(ErrorCode::Internal, "the request was not authenticated"))
    }
}
