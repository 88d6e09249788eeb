//! Asking again is not doing again: a POST with an `Idempotency-Key` is handled once, and a repeat is answered as the first
//! one was.
//!
//! A request is noted before it is handled, with the id that its run is to have, and its answer before it is sent. It is
//! handled to its end even if its client goes away (`gateway/completion.rs`). A refusal changed nothing and is not kept: a repeat is judged anew.
//! Neither are streams, secrets and what is too large: a repeat of those is answered with the run that was started, or with
//! a conflict, and never handled a second time. A request that failed on the way may have changed something: its repeat is
//! told that nobody knows, and not handled a second time either.

pub(super) mod key;
mod replay;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{FromRequestParts, RawPathParams, Request, State};
use axum::http::Method;
use axum::http::request::Parts;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponseParts, Response, ResponseParts};
use jiff::Timestamp;

use self::replay::{kept, replayed, run_named};
use super::access::Caller;
use super::completion::ClientGone;
use super::problem::Problem;
use super::runs;
use super::state::Gateway;
use crate::core::error::ErrorCode;
use crate::core::id::RunId;
use crate::ports::{Asked, Begun, Fate, Replies};

/// How long an answer is remembered.
const REMEMBERED: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a request counts as being worked on after whoever works on it was last heard of.
const HELD: Duration = Duration::from_secs(15);
/// How often they say that they are.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// Where runs are started: a repeat can be told from the run what became of it.
const CREATING: &str = "/v1/runs";

/// The id that the run is to have which this request starts, if it is known beforehand.
#[derive(Clone, Debug, Default)]
pub(super) struct RunToBe(pub(super) Option<RunId>);

/// Marks an answer that holds a secret: it is not kept, and the request cannot be repeated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Confidential;

/// What stands before every route: requests with a key are handled once.
pub(super) fn once(router: Router<Gateway>, gateway: &Gateway) -> Router<Gateway> {
    router.layer(from_fn_with_state(gateway.clone(), handled_once))
}

async fn handled_once(
    State(gateway): State<Gateway>,
    caller: Caller,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let key = match request.method() {
        &Method::POST => key::of(request.headers())?,
        _ => None,
    };
    let Some(key) = key else { return Ok(next.run(request).await) };
    let Some(replies) = gateway.replies().cloned() else {
        let detail = "this server keeps no answers, so it cannot promise to handle a request once; leave \
                      `Idempotency-Key` away";
        return Err(Problem::new(ErrorCode::InvalidRequest, detail));
    };
    let (mut parts, body) = request.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.map_err(|error| {
        Problem::new(ErrorCode::Internal, "the body that had arrived is not there").because(error.to_string())
    })?;
    let about = RawPathParams::from_request_parts(&mut parts, &gateway).await.ok().and_then(|path| run_named(&path));
    let now = Timestamp::now();
    let is_creating = parts.uri.path() == CREATING;
    let asked = Asked {
        tenant: caller.tenant.clone(),
        caller: caller.name.as_ref().to_owned(),
        key,
        fingerprint: key::fingerprint(&caller, &parts, &bytes),
        run: is_creating.then(|| gateway.runner().fresh_id()),
        held_until: after(now, HELD),
        expires_at: after(now, REMEMBERED),
    };
    let begun = replies.begin(&asked, now).await?;
    let asked = match begun {
        None => asked,
        Some(begun) => match known(&gateway, &caller, &parts, &asked, about.as_ref(), begun, now).await? {
            Known::Answer(response) => return Ok(response),
            // Of two that find it so at once, one goes on.
            Known::NeverStarted(_) if !replies.take_over(&asked, now).await? => return Err(under_way()),
            Known::NeverStarted(run) => Asked { run: Some(run), ..asked },
        },
    };
    let mut request = Request::from_parts(parts, Body::from(bytes));
    request.extensions_mut().insert(RunToBe(asked.run.clone()));
    // A repeat is given the answer that the first request waited for, also if the client of the first one is gone.
    request.extensions_mut().remove::<ClientGone>();
    handle(replies, asked, about, request, next).await
}

/// What is known of a repeated request.
enum Known {
    /// Its answer.
    Answer(Response),
    /// Its run was to have this id and was never started, so that nothing was done.
    NeverStarted(RunId),
}

async fn known(
    gateway: &Gateway,
    caller: &Caller,
    parts: &Parts,
    asked: &Asked,
    about: Option<&RunId>,
    begun: Begun,
    now: Timestamp,
) -> Result<Known, Problem> {
    if begun.fingerprint != asked.fingerprint {
        let detail = "this `Idempotency-Key` was used for another request, or by credentials that may do something else; use \
                      a fresh one for each";
        return Err(Problem::new(ErrorCode::Validation, detail));
    }
    match begun.fate {
        Fate::Answered(reply) => {
            // An answer quotes its run, and goes with it.
            if let Some(run) = &reply.run {
                gateway.runner_of(caller).run(run.as_str()).await?;
            }
            return Ok(Known::Answer(replayed(reply)));
        }
        Fate::UnderWay { held_until } if now < held_until => return Err(under_way()),
        Fate::UnderWay { .. } | Fate::Unkept => {}
    }
    let Some(run) = begun.run else {
        // What was asked of a run that was deleted since has gone with it.
        if let Some(run) = about {
            gateway.runner_of(caller).run(run.as_str()).await?;
        }
        return Err(outcome_unknown(&begun.fate));
    };
    match runs::current(gateway, caller, parts, &run).await {
        Ok(response) => Ok(Known::Answer(replay::marked(response))),
        Err(problem) if problem.code() == ErrorCode::NotFound => match begun.fate {
            Fate::UnderWay { .. } => Ok(Known::NeverStarted(run)),
            Fate::Unkept | Fate::Answered(_) => Err(outcome_unknown(&begun.fate)),
        },
        Err(problem) => Err(problem),
    }
}

fn under_way() -> Problem {
    let detail = "the same request is being handled; ask again in a moment";
    Problem::new(ErrorCode::Conflict, detail).after(Duration::from_secs(1))
}

fn outcome_unknown(fate: &Fate) -> Problem {
    let detail = match fate {
        Fate::Unkept => {
            "the same request was handled, and its answer is not kept; look at what it changed, and use a fresh \
             `Idempotency-Key` to do it again"
        }
        Fate::UnderWay { .. } | Fate::Answered(_) => {
            "the same request was begun, and failed on the way or was cut off with the server: its outcome is unknown; look \
             at what it changed, and use a fresh `Idempotency-Key` to do it again"
        }
    };
    Problem::lasting_conflict(detail)
}

/// Handles a request that was noted, and notes what became of it.
async fn handle(
    replies: Arc<dyn Replies>,
    asked: Asked,
    about: Option<RunId>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let mut handled = pin!(next.run(request));
    let response = loop {
        tokio::select! {
            response = &mut handled => break response,
            () = tokio::time::sleep(HEARTBEAT) => {
                if let Err(error) = replies.prolong(&asked, after(Timestamp::now(), HELD)).await {
                    tracing::warn!(%error, "it could not be noted that a request is being handled");
                }
            }
        }
    };
    let (response, outcome) = kept(response, &asked, about).await;
    let noted = match &outcome {
        replay::Outcome::Settled(fate) => replies.settle(&asked, fate).await,
        replay::Outcome::NothingDone => replies.forget(&asked).await,
    };
    if let Err(error) = noted {
        // The answer is true all the same. A repeat is told that the outcome is unknown, or shown the run.
        tracing::warn!(%error, "what became of a request could not be noted");
    }
    Ok(response)
}

fn after(now: Timestamp, duration: Duration) -> Timestamp {
    now.checked_add(duration).unwrap_or(Timestamp::MAX)
}

impl<S: Sync> FromRequestParts<S> for RunToBe {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_default())
    }
}

impl IntoResponseParts for Confidential {
    type Error = std::convert::Infallible;

    fn into_response_parts(self, mut response: ResponseParts) -> Result<ResponseParts, Self::Error> {
        response.extensions_mut().insert(self);
        Ok(response)
    }
}
