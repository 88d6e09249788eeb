//! Request bodies: each arrives whole, in time, not compressed and within the size limit before its handler begins. A
//! client that sends a byte a minute holds a connection and a concurrency permit until the body times out, and nothing
//! else.

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, FromRequest as _, MatchedPath, Request, State};
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH};
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::Response;
use tokio::time::timeout;
use toolgate_core::error::ErrorCode;
use toolgate_service::FileConfig;

use super::authenticate::Authenticated;
use crate::files::UPLOADS;
use crate::problem::Problem;
use crate::state::Gateway;

/// What a form has besides its file: the boundaries and the heads of its parts.
const FORM_BYTES: usize = 64 * 1024;

/// Receives the whole body before the handler begins.
pub(crate) async fn receive_body(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let settings = gateway.settings();
    let upload = gateway.service().file_config().filter(|_| is_upload(&request)).map(FileConfig::limits);
    let (most, body_timeout) = match upload {
        Some(limits) => {
            let file = usize::try_from(limits.max_bytes).unwrap_or(usize::MAX);
            (file.saturating_add(FORM_BYTES), settings.upload_timeout)
        }
        None => (settings.body_bytes, settings.body_timeout),
    };
    check(request.headers(), most)?;
    let _permit = match upload {
        Some(_) => Some(gateway.access().limiter.upload(caller.tenant).await?),
        None => None,
    };
    // Extractors of axum read no further.
    DefaultBodyLimit::max(most).apply(&mut request);
    let (parts, body) = request.into_parts();
    let arriving = Bytes::from_request(Request::from_parts(parts.clone(), body), &());
    let bytes = timeout(body_timeout, arriving).await.map_err(|_| {
        let detail = format!("the body did not arrive within {} s", body_timeout.as_secs_f64());
        Problem::new(ErrorCode::RequestTimeout, detail)
    })??;
    Ok(next.run(Request::from_parts(parts, Body::from(bytes))).await)
}

/// Whether this is an upload of a file, whose body may be larger and take longer.
fn is_upload(request: &Request) -> bool {
    let route = request.extensions().get::<MatchedPath>();
    request.method() == Method::POST && route.is_some_and(|route| route.as_str().ends_with(UPLOADS))
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
