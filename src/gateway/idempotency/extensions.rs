//! Marks of requests and responses for the idempotency layer: extensions that handlers read and set.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::{IntoResponseParts, ResponseParts};
use toolgate_core::id::{FileId, RunId, SessionId};

/// The id of the run that this request will start, if it is known beforehand.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlannedRunId(pub(crate) Option<RunId>);

/// Marks a response that holds a secret: it is not stored, and the request cannot be repeated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Confidential;

/// Marks a response that holds a secret and is not stored, of a request that changed nothing lasting: a repeat is
/// handled like a first request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeatable;

/// Marks a response that quotes a session and no run of it.
#[derive(Clone, Debug)]
pub(crate) struct QuotedSession(pub(crate) SessionId);

/// Marks a response that quotes an uploaded file.
#[derive(Clone, Debug)]
pub(crate) struct QuotedFile(pub(crate) FileId);

impl<S: Sync> FromRequestParts<S> for PlannedRunId {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_default())
    }
}

/// Marks that a handler returns with its response.
macro_rules! response_marks {
    ($($mark:ident)*) => { $(
        impl IntoResponseParts for $mark {
            type Error = std::convert::Infallible;

            fn into_response_parts(self, mut response: ResponseParts) -> Result<ResponseParts, Self::Error> {
                response.extensions_mut().insert(self);
                Ok(response)
            }
        }
    )* };
}

response_marks! { Confidential Repeatable QuotedSession QuotedFile }
