//! A request's body arrives whole, in time, and no larger than is taken, before anybody works on it: whoever sends a byte a
//! minute holds a connection and nothing else.

use std::error::Error;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;

use crate::core::error::ErrorCode;
use crate::gateway::problem::Problem;
use crate::gateway::state::Gateway;

pub(super) async fn arrived(State(gateway): State<Gateway>, request: Request, next: Next) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let settings = gateway.settings();
    let whole = tokio::time::timeout(settings.body_timeout, to_bytes(body, settings.body_bytes)).await;
    let bytes = whole.map_err(|_| late(settings.body_timeout.as_secs_f64()))?.map_err(|error| {
        match error.source().is_some_and(|source| source.to_string().contains("length limit")) {
            true => too_large(settings.body_bytes),
            false => Problem::new(ErrorCode::InvalidRequest, "the body did not arrive whole"),
        }
    })?;
    Ok(next.run(Request::from_parts(parts, Body::from(bytes))).await)
}

fn late(seconds: f64) -> Problem {
    Problem::new(ErrorCode::RequestTimeout, format!("the body did not arrive within {seconds} s"))
}

fn too_large(bytes: usize) -> Problem {
    Problem::new(ErrorCode::PayloadTooLarge, format!("the body is larger than the {bytes} bytes this server takes"))
}
