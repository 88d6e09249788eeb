//! A request's body arrives whole, in time, and no larger than is taken, before anybody works on it: whoever sends a byte a
//! minute holds a connection and a seat for as long as a body may take, and nothing else.

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest as _, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use tokio::time::timeout;

use crate::core::error::ErrorCode;
use crate::gateway::problem::Problem;
use crate::gateway::state::Gateway;

pub(super) async fn arrived(State(gateway): State<Gateway>, request: Request, next: Next) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let patience = gateway.settings().body_timeout;
    let arriving = Bytes::from_request(Request::from_parts(parts.clone(), body), &());
    let bytes = timeout(patience, arriving).await.map_err(|_| {
        let detail = format!("the body did not arrive within {} s", patience.as_secs_f64());
        Problem::new(ErrorCode::RequestTimeout, detail)
    })??;
    Ok(next.run(Request::from_parts(parts, Body::from(bytes))).await)
}
