//! An answer as it is kept, and as it is given again.

use axum::body::{Body, HttpBody as _, to_bytes};
use axum::http::header::{CONTENT_TYPE, ETAG, LOCATION};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;

use super::Confidential;
use crate::core::error::ErrorCode;
use crate::core::id::RunId;
use crate::gateway::answer::is_stream;
use crate::gateway::approvals::Place;
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
pub(super) async fn kept(response: Response, asked: &Asked, path: &str) -> (Response, Outcome) {
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
    if is_stream(response.headers()) || response.extensions().get::<Confidential>().is_some() {
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
    let run = quoted(path, parts.headers.get(LOCATION).and_then(|place| place.to_str().ok()));
    let reply = Reply { status: parts.status.as_u16(), run, headers, body: bytes.to_vec() };
    (Response::from_parts(parts, Body::from(bytes)), Outcome::Settled(Fate::Answered(reply)))
}

/// The run that an answer quotes: the one that was made, or else the one that was asked about.
fn quoted(path: &str, made: Option<&str>) -> Option<RunId> {
    let in_folder = |text: &str, folder: &str| {
        let (_, rest) = text.split_once(folder)?;
        rest.split('/').next().map(str::to_owned)
    };
    let run = |text: &str| in_folder(text, "/v1/runs/").map(RunId::from);
    let of_approval = || Some(Place::parse(&in_folder(path, "/v1/approvals/")?)?.run);
    made.and_then(run).or_else(|| run(path)).or_else(of_approval)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_quotes_the_run_that_was_made_or_asked_about() {
        let of = |path, made| quoted(path, made).map(|run| run.to_string());
        assert_eq!(of("/v1/runs", Some("https://x.test/v1/runs/run_2")).as_deref(), Some("run_2"));
        assert_eq!(of("/v1/runs/run_1/fork", Some("/v1/runs/run_2")).as_deref(), Some("run_2"));
        assert_eq!(of("/v1/runs/run_1/resume", None).as_deref(), Some("run_1"));
        assert_eq!(of("/v1/tools/mcp_files_read/call", Some("/v1/runs/run_3")).as_deref(), Some("run_3"));
        assert_eq!(of("/v1/approvals/appr_1_7/decision", None).as_deref(), Some("run_1"));
        assert_eq!(of("/v1/webhook-endpoints", Some("/v1/webhook-endpoints/we_1")), None);
    }
}
