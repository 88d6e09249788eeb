//! A handler that panics refuses its request; the connection, and everybody else's, lives on.

use std::any::Any;

use axum::response::{IntoResponse as _, Response};

use crate::core::error::ErrorCode;
use crate::gateway::problem::Problem;

/// What is answered instead. What the panic says is for the log alone: it may quote anything.
pub(in crate::gateway) fn caught(said: Box<dyn Any + Send>) -> Response {
    let words = said.downcast_ref::<&str>().copied().or_else(|| said.downcast_ref::<String>().map(String::as_str));
    let detail = "this is a fault of toolgate; its log says more under the id of this request";
    let problem = Problem::new(ErrorCode::Internal, detail);
    problem.because(format!("a panic: {}", words.unwrap_or("without words"))).into_response()
}
