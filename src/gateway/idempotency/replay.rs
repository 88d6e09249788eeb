//! An answer as it is kept, and as it is given again.

use axum::body::{Body, HttpBody as _, to_bytes};
use axum::http::header::{CONTENT_TYPE, ETAG, LOCATION};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;

use super::Confidential;
use crate::core::error::ErrorCode;
use crate::gateway::problem::Problem;
use crate::ports::{Asked, Fate, MAX_REPLY_BYTES, Reply};

/// What belongs to what is answered, and not to this one answer.
const KEPT: [HeaderName; 3] = [CONTENT_TYPE, ETAG, LOCATION];

const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// What is to be noted of an answer.
pub(super) enum Outcome {
    /// It was handled.
    Settled(Fate),
    /// It was refused, and changed nothing.
    NothingDone,
}

/// The answer, and what is to be noted of it.
pub(super) async fn kept(response: Response, asked: &Asked) -> (Response, Outcome) {
    if let Some(problem) = response.extensions().get::<Problem>() {
        // A conflict about a fresh run is one with the same request in another process.
        let may_have_started = !problem.status().is_client_error() || problem.code() == ErrorCode::Conflict;
        let outcome = match &asked.run {
            // The run says itself what became of it.
            Some(_) if may_have_started => Outcome::Settled(Fate::UnderWay { held_until: Timestamp::UNIX_EPOCH }),
            Some(_) | None => Outcome::NothingDone,
        };
        return (response, outcome);
    }
    if is_stream(&response) || response.extensions().get::<Confidential>().is_some() {
        return (response, Outcome::Settled(Fate::Unkept));
    }
    let (parts, body) = response.into_parts();
    // Only what says that it is small enough is read: a body that was begun cannot be given back.
    let is_small = body.size_hint().upper().is_some_and(|bytes| bytes <= MAX_REPLY_BYTES as u64);
    if !is_small {
        return (Response::from_parts(parts, body), Outcome::Settled(Fate::Unkept));
    }
    let Ok(bytes) = to_bytes(body, MAX_REPLY_BYTES).await else {
        let problem = Problem::new(ErrorCode::Internal, "the answer could not be made");
        return (problem.into_response(), Outcome::Settled(Fate::Unkept));
    };
    let header = |name: &HeaderName| Some((name.to_string(), parts.headers.get(name)?.to_str().ok()?.to_owned()));
    let headers = KEPT.iter().filter_map(header).collect();
    let reply = Reply { status: parts.status.as_u16(), headers, body: bytes.to_vec() };
    (Response::from_parts(parts, Body::from(bytes)), Outcome::Settled(Fate::Answered(reply)))
}

fn is_stream(response: &Response) -> bool {
    let media_type = response.headers().get(CONTENT_TYPE);
    media_type.is_some_and(|media_type| media_type.as_bytes().starts_with(b"text/event-stream"))
}

/// The answer that was given before.
pub(super) fn replayed(reply: Reply) -> Response {
    let mut response = Response::new(Body::from(reply.body));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::OK);
    for (name, value) in reply.headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(&value)) {
            response.headers_mut().insert(name, value);
        }
    }
    marked(response)
}

/// The answer, marked as one to a request that was handled before.
pub(super) fn marked(mut response: Response) -> Response {
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    response
}
