//! A handler that panics refuses its request; the connection, and everybody else's, lives on.

use std::any::Any;

use axum::response::{IntoResponse as _, Response};

use crate::core::error::ErrorCode;
use crate::gateway::problem::Problem;

/// What is answered instead. What the panic says stays in the log: it may quote anything.
pub(in crate::gateway) fn caught(_said: Box<dyn Any + Send>) -> Response {
    let detail = "this is a fault of toolgate; its log says more under the id of this request";
    Problem::new(ErrorCode::Internal, detail).into_response()
}
