//! Stored responses: which are stored, and how they are returned to a repeat.

use axum::body::{Body, HttpBody as _, to_bytes};
use axum::extract::RawPathParams;
use axum::http::header::{CONTENT_TYPE, ETAG, LOCATION};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;
use toolgate_core::error::ErrorCode;
use toolgate_core::id::RunId;
use toolgate_ports::{IdempotentRequest, MAX_REPLY_BYTES, RequestState, StoredResponse};
use toolgate_service::ApprovalId;

use super::extensions::{Confidential, QuotedFile, QuotedSession, Repeatable};
use crate::negotiation::is_stream;
use crate::problem::Problem;

/// The headers that belong to the resource, and not to this one response.
const KEPT: [HeaderName; 3] = [CONTENT_TYPE, ETAG, LOCATION];

const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// The outcome to record for a request.
pub(super) enum Outcome {
    /// The request was handled, or may have been.
    Settled(RequestState),
    /// The request was refused, or changed nothing lasting.
    NothingDone,
}

/// The response, and the outcome to record. `about` is the run that the request names.
pub(super) async fn recorded_outcome(
    response: Response,
    requested: &IdempotentRequest,
    about: Option<RunId>,
) -> (Response, Outcome) {
    if let Some(problem) = response.extensions().get::<Problem>() {
        let outcome = if may_have_done_something(problem, requested) {
            Outcome::Settled(RequestState::UnderWay { held_until: Timestamp::UNIX_EPOCH })
        } else {
            Outcome::NothingDone
        };
        return (response, outcome);
    }
    if response.extensions().get::<Repeatable>().is_some() {
        return (response, Outcome::NothingDone);
    }
    if is_stream(response.headers()) || response.extensions().get::<Confidential>().is_some() {
        return (response, Outcome::Settled(RequestState::NotStored));
    }
    let (parts, body) = response.into_parts();
    // Only a body of a known, small size is read: a body that was begun cannot be returned.
    let is_small = body.size_hint().upper().is_some_and(|bytes| bytes <= MAX_REPLY_BYTES as u64);
    if !is_small {
        return (Response::from_parts(parts, body), Outcome::Settled(RequestState::NotStored));
    }
    let Ok(bytes) = to_bytes(body, MAX_REPLY_BYTES).await else {
        let problem = Problem::new(ErrorCode::Internal, "failed to produce the response");
        return (problem.into_response(), Outcome::Settled(RequestState::NotStored));
    };
    let header = |name: &HeaderName| Some((name.to_string(), parts.headers.get(name)?.to_str().ok()?.to_owned()));
    let headers = KEPT.iter().filter_map(header).collect();
    let run = parts.headers.get(LOCATION).and_then(|place| run_at(place.to_str().ok()?));
    let run = run.or(about).or_else(|| requested.run.clone());
    let session = parts.extensions.get::<QuotedSession>().map(|QuotedSession(session)| session.clone());
    let file = parts.extensions.get::<QuotedFile>().map(|QuotedFile(file)| file.clone());
    let reply = StoredResponse { status: parts.status.as_u16(), run, session, file, headers, body: bytes.to_vec() };
    (Response::from_parts(parts, Body::from(bytes)), Outcome::Settled(RequestState::Answered(reply)))
}

/// Whether a request may have changed something although its response is a problem.
fn may_have_done_something(problem: &Problem, requested: &IdempotentRequest) -> bool {
    match (problem.status().is_client_error(), problem.code()) {
        // It is unknown whether the call of a cancelled run had been sent.
        (true, ErrorCode::Cancelled) => true,
        // A conflict about a new run is one with the same request in another process: the run has the outcome.
        (true, code) => requested.run.is_some() && code == ErrorCode::Conflict,
        // A server refuses new work before it begins any.
        (false, ErrorCode::Unavailable) => requested.run.is_some(),
        (false, _) => true,
    }
}

/// The run that a request names in its path, by itself or by its approval.
pub(super) fn run_named(path: &RawPathParams) -> Option<RunId> {
    path.iter().find_map(|(name, value)| match name {
        "run" => Some(RunId::from(value)),
        "approval" => ApprovalId::parse(value).map(|place| place.run),
        _ => None,
    })
}

/// The run that a `Location` leads to.
fn run_at(location: &str) -> Option<RunId> {
    let (_, run) = location.rsplit_once("/v1/runs/")?;
    Some(RunId::from(run))
}

/// The stored response.
pub(super) fn replayed(reply: StoredResponse) -> Response {
    let mut response = Response::new(Body::from(reply.body));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::OK);
    for (name, value) in reply.headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(&value)) {
            response.headers_mut().insert(name, value);
        }
    }
    marked(response)
}

/// The response, marked as one to a request that was handled before.
pub(super) fn marked(mut response: Response) -> Response {
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_a_run_leads_to_it_and_no_other_does() {
        let of = |location| run_at(location).map(|run| run.to_string());
        assert_eq!(of("https://x.test/v1/runs/run_2").as_deref(), Some("run_2"));
        assert_eq!(of("/v1/runs/run_3").as_deref(), Some("run_3"));
        assert_eq!(of("/v1/webhook-endpoints/we_1"), None);
    }
}
