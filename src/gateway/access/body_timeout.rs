//! Request bodies: each arrives whole, in time, not compressed and within the size limit before its handler begins. A
//! client that sends a byte a minute holds a connection and a concurrency permit until the body times out, and nothing
//! else.

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest as _, Request, State};
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use tokio::time::timeout;
use toolgate_core::error::ErrorCode;

use crate::problem::Problem;
use crate::state::Gateway;

/// Receives the whole body before the handler begins.
pub(crate) async fn receive_body(
    State(gateway): State<Gateway>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    check(&parts.headers, gateway.settings().body_bytes)?;
    let body_timeout = gateway.settings().body_timeout;
    let arriving = Bytes::from_request(Request::from_parts(parts.clone(), body), &());
    let bytes = timeout(body_timeout, arriving).await.map_err(|_| {
        let detail = format!("the body did not arrive within {} s", body_timeout.as_secs_f64());
        Problem::new(ErrorCode::RequestTimeout, detail)
    })??;
    Ok(next.run(Request::from_parts(parts, Body::from(bytes))).await)
}

/// Refuses a request whose head alone makes it unacceptable, before any of the body is read.
fn check(headers: &HeaderMap, most: usize) -> Result<(), Problem> {
    let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|announced| announced > most as u64) {
        let detail = format!("the body is too large: this server accepts at most {most} bytes");
        return Err(Problem::new(ErrorCode::PayloadTooLarge, detail));
    }
    let is_plain = |encoding: &HeaderValue| encoding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity");
    if !headers.get_all(CONTENT_ENCODING).iter().all(is_plain) {
        let detail = "compressed bodies are not accepted: send the body without `Content-Encoding`";
        let problem = Problem::new(ErrorCode::UnsupportedMediaType, detail);
        return Err(problem.header(ACCEPT_ENCODING, HeaderValue::from_static("identity")));
    }
    Ok(())
}
