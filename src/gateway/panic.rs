//! Panic handler: a handler that panics fails only its own request; the connection and all others continue.

use std::any::Any;

use axum::response::{IntoResponse as _, Response};
use toolgate_core::error::ErrorCode;
use toolgate_service::ServiceError;

use crate::problem::Problem;

/// The response to the request. The panic's text is only logged: it may quote anything.
pub(super) fn panic_response(payload: Box<dyn Any + Send>) -> Response {
    let message =
        payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let detail = "this is a bug in toolgate; its log has the details under the id of this request";
    let error = ServiceError::new(ErrorCode::Internal, detail);
    Problem::from(error.because(format!("a panic: {}", message.unwrap_or("without words")))).into_response()
}
