//! Idempotent requests: a POST with an `Idempotency-Key` is handled once, and a repeat receives the stored response.
//!
//! A request is recorded before it is handled, with the id of the run that it will start, and its response before it is
//! sent. It is handled to its end even if its client disconnects (`gateway/completion.rs`). A refusal changed nothing
//! and is not stored: a repeat is handled like a first request. Streams, secrets and large responses are not stored
//! either: a repeat of such a request returns the run that was started, or a conflict, and is never handled a second
//! time. Only a stream ticket is created again, because the first one expires by itself. A request that failed halfway
//! may have changed something: its repeat reports an unknown outcome, and is not handled a second time either.

mod extensions;
pub(super) mod key;
mod replay;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{FromRequestParts, MatchedPath, RawPathParams, Request, State};
use axum::http::Method;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use futures::future::BoxFuture;
use jiff::Timestamp;
use toolgate_core::error::ErrorCode;
use toolgate_core::id::RunId;
use toolgate_ports::{IdempotencyRecord, IdempotencyStore, IdempotentRequest, RequestState};
use toolgate_service::{Caller, ErrorReason, ServiceError};

use self::replay::{recorded_outcome, replayed, run_named};
use super::completion::ClientGone;
use crate::access::Authenticated;
use crate::problem::Problem;
use crate::runs::read::current;
use crate::state::Gateway;

pub(super) use extensions::{Confidential, PlannedRunId, QuotedFile, QuotedSession, Repeatable};

/// How long a response is stored.
const RESPONSE_TTL: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a request counts as being handled after the last heartbeat of its process.
const HOLD: Duration = Duration::from_secs(15);
/// The interval of those heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// Handles requests with a key once.
pub(super) async fn handle_once(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let key = match request.method() {
        &Method::POST => key::from_headers(request.headers())?,
        _ => None,
    };
    let Some(key) = key else { return Ok(next.run(request).await) };
    let Some(replies) = gateway.idempotency().cloned() else {
        let detail = "this server stores no responses, so it cannot handle a request only once; leave out \
                      `Idempotency-Key`";
        return Err(Problem::new(ErrorCode::InvalidRequest, detail));
    };
    let (mut parts, body) = request.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.map_err(|error| {
        ServiceError::new(ErrorCode::Internal, "the body was received, but cannot be read").because(error.to_string())
    })?;
    let about = RawPathParams::from_request_parts(&mut parts, &gateway).await.ok().and_then(|path| run_named(&path));
    let now = Timestamp::now();
    let requested = IdempotentRequest {
        tenant: caller.tenant.clone(),
        caller: caller.name.as_ref().to_owned(),
        key,
        fingerprint: key::fingerprint(&caller, &parts, &bytes),
        // Known before the run begins: a repeat can tell a crash before the start from one after it (decision 0013).
        run: run_start(&parts).map(|_| gateway.service().runner().fresh_id()),
        held_until: after(now, HOLD),
        expires_at: after(now, RESPONSE_TTL),
    };
    let record = replies.begin(&requested, now).await?;
    let requested = match record {
        None => requested,
        Some(record) => {
            match answer_repeat(&gateway, &caller, &parts, &requested, about.as_ref(), record, now).await? {
                RepeatedRequest::Answer(response) => return Ok(response),
                // If two repeats find this at once, one of them continues.
                RepeatedRequest::NeverStarted(_) if !replies.take_over(&requested, now).await? => {
                    return Err(under_way());
                }
                RepeatedRequest::NeverStarted(run) => IdempotentRequest { run: Some(run), ..requested },
            }
        }
    };
    let mut request = Request::from_parts(parts, Body::from(bytes));
    request.extensions_mut().insert(PlannedRunId(requested.run.clone()));
    // A repeat receives the response that the first request waited for, even if the first client has disconnected.
    request.extensions_mut().remove::<ClientGone>();
    handle(replies, requested, about, request, next).await
}

/// The state of a repeated request.
enum RepeatedRequest {
    Answer(Response),
    /// Its run was to have this id and was never started, so that nothing was done.
    NeverStarted(RunId),
}

async fn answer_repeat(
    gateway: &Gateway,
    caller: &Caller,
    parts: &Parts,
    requested: &IdempotentRequest,
    about: Option<&RunId>,
    record: IdempotencyRecord,
    now: Timestamp,
) -> Result<RepeatedRequest, Problem> {
    if record.fingerprint != requested.fingerprint {
        let detail = "this `Idempotency-Key` was used for another request, or with other permissions; use \
                      a new one for each";
        return Err(ServiceError::new(ErrorCode::Validation, detail).with(ErrorReason::KeyReused).into());
    }
    match record.state {
        RequestState::Answered(reply) => {
            // A response quotes its run, and is deleted with it.
            if let Some(run) = &reply.run {
                gateway.runner_of(caller).run(run.as_str()).await?;
            }
            if let Some(session) = &reply.session {
                gateway.runner_of(caller).require_not_deleted(session).await?;
            }
            return Ok(RepeatedRequest::Answer(replayed(reply)));
        }
        RequestState::UnderWay { held_until } if now < held_until => return Err(under_way()),
        RequestState::UnderWay { .. } | RequestState::NotStored => {}
    }
    let (Some(run), Some(start)) = (record.run, run_start(parts)) else {
        // The run of this request was deleted since, and its outcome with it.
        if let Some(run) = about {
            gateway.runner_of(caller).run(run.as_str()).await?;
        }
        return Err(outcome_unknown(&record.state));
    };
    match (start.respond)(gateway, caller, parts, &run).await {
        Ok(response) => Ok(RepeatedRequest::Answer(replay::marked(response))),
        Err(problem) if problem.code() == ErrorCode::NotFound => match record.state {
            RequestState::UnderWay { .. } => Ok(RepeatedRequest::NeverStarted(run)),
            RequestState::NotStored | RequestState::Answered(_) => Err(outcome_unknown(&record.state)),
        },
        Err(problem) => Err(problem),
    }
}

fn under_way() -> Problem {
    let detail = "the same request is being handled; retry in a moment";
    let error = ServiceError::new(ErrorCode::Conflict, detail).with(ErrorReason::IdempotencyInFlight);
    error.after(Duration::from_secs(1)).into()
}

fn outcome_unknown(state: &RequestState) -> Problem {
    let detail = match state {
        RequestState::NotStored => {
            "the same request was handled, and its response is not stored; look at what it changed, and use a new \
             `Idempotency-Key` to do it again"
        }
        RequestState::UnderWay { .. } | RequestState::Answered(_) => {
            "the same request failed halfway, or its server stopped meanwhile: its outcome is unknown; look \
             at what it changed, and use a fresh `Idempotency-Key` to do it again"
        }
    };
    ServiceError::lasting_conflict(detail).with(ErrorReason::OutcomeUnknown).into()
}

/// Handles a request that was recorded, and records its outcome.
async fn handle(
    replies: Arc<dyn IdempotencyStore>,
    requested: IdempotentRequest,
    about: Option<RunId>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let mut handled = pin!(next.run(request));
    let response = loop {
        tokio::select! {
            response = &mut handled => break response,
            () = tokio::time::sleep(HEARTBEAT) => {
                if let Err(error) = replies.prolong(&requested, after(Timestamp::now(), HOLD)).await {
                    tracing::warn!(%error, "failed to extend hold on idempotent request");
                }
            }
        }
    };
    let (response, outcome) = recorded_outcome(response, &requested, about).await;
    let noted = match &outcome {
        replay::Outcome::Settled(state) => replies.settle(&requested, state).await,
        replay::Outcome::NothingDone => replies.forget(&requested).await,
    };
    if let Err(error) = noted {
        // The response is correct all the same. A repeat reports an unknown outcome, or returns the run.
        tracing::warn!(%error, "failed to record outcome of idempotent request");
    }
    Ok(response)
}

fn after(now: Timestamp, duration: Duration) -> Timestamp {
    now.checked_add(duration).unwrap_or(Timestamp::MAX)
}

/// An endpoint that starts a run with the id of its [`super::PlannedRunId`].
pub(super) struct RunStart {
    route: &'static str,
    /// The response to a repeat: the run as it is now.
    pub(super) respond: Respond,
}

type Respond = for<'a> fn(&'a Gateway, &'a Caller, &'a Parts, &'a RunId) -> BoxFuture<'a, Result<Response, Problem>>;

/// All of them. A surface that starts runs adds its endpoint, with a response in its own form.
const RUN_STARTS: [RunStart; 5] = [
    started_at("/v1/runs"),
    started_at("/v1/sessions/{session}/runs"),
    started_at("/v1/sessions/{session}/compact"),
    started_at("/v1/runs/{run}/fork"),
    started_at("/v1/runs/{run}/retry"),
];

const fn started_at(route: &'static str) -> RunStart {
    RunStart { route, respond: |gateway, caller, parts, run| Box::pin(current(gateway, caller, parts, run)) }
}

/// The endpoint of a request, if it starts runs. The route may be nested in another application's path.
pub(super) fn run_start(parts: &Parts) -> Option<&'static RunStart> {
    let route = parts.extensions.get::<MatchedPath>()?.as_str();
    RUN_STARTS.iter().find(|start| route.ends_with(start.route))
}
