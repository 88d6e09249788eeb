//! `GET /v1/runs/{run}/events`

mod id;
mod tail;
mod teller;
mod view;

use std::convert::Infallible;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::{Stream, StreamExt as _, stream};
use serde::Deserialize;
use utoipa::IntoParams;

use self::id::EventId;
use self::tail::{Tail, Told, Until};
use self::teller::Teller;
pub(super) use self::view::FrameDescription;
use self::view::{EventDescription, EventView};
use crate::core::error::ErrorCode;
use crate::gateway::access::{Authenticated, StreamPermit};
use crate::gateway::body::{Path, Query};
use crate::gateway::negotiation::Form;
use crate::gateway::pagination::{Page, limit};
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::state::Gateway;
use crate::runner::Watch;
use crate::service::{Scope, TenantRun};
use crate::telemetry::lifecycle::Content;

const LAST_EVENT_ID: &str = "last-event-id";

/// The reconnection delay that a stream asks its client for.
const RETRY: Duration = Duration::from_secs(2);

/// Filters of the events.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// A cursor: events after this one. A `Last-Event-ID` header takes precedence.
    #[param(value_type = Option<String>, pattern = r"^[0-9]{1,19}(\.[1-9][0-9]{0,8})?$")]
    after: Option<EventId>,
    /// `content`: include arguments, results, texts and fragments of texts. Without it, events describe the run without
    /// its content.
    #[param(inline)]
    include: Option<Include>,
    /// Streams only. Whether the stream continues until the run ends, which is the default, or closes when the run is
    /// pending.
    #[serde(default)]
    #[param(inline)]
    until: Until,
    /// Pages only. The number of events to return: 1 to 100. Default: 20.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
}

/// Optional content of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Include {
    /// Arguments, results and texts.
    Content,
}

/// Stream the events of a run
///
/// A stream of server-sent events: first those so far, then new ones as they happen. Each event has an `id`. A client
/// that reconnects with `Last-Event-ID`, to this server or another one, continues with the very next event. Fragments
/// of the model's text, and `execution.pending`, which lists the pending items, are sent live and have no id. The
/// stream closes when the run ends, or with `until=idle` when the run is pending; it then answers 204 to a
/// reconnection. A server that stops closes the stream with `server.draining`.
///
/// With `Accept: application/json` the response is a page of the events so far.
#[utoipa::path(
    get, path = "/v1/runs/{run}/events", tag = "runs", operation_id = "watchRun",
    params(
        ("run" = String, Path, description = "The run's id"),
        ("Last-Event-ID" = Option<String>, Header, pattern = r"^([0-9]{1,19}(\.[1-9][0-9]{0,8})?)?$", description = "The id of the last event that you received"),
        Which,
    ),
    responses(
        (status = 200, description = "The events", content((Page<EventDescription> = "application/json"), (FrameDescription = "text/event-stream"))),
        (status = 204, description = "There are no events after the one you have: the run has ended, or with `until=idle` it is pending"),
        (status = "default", description = "The request was refused", body = ProblemView, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn events(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    Path(run): Path<String>,
    Query(which): Query<Which>,
    _permit: StreamPermit,
) -> Result<Response, Problem> {
    caller.require(Scope::RunsRead)?;
    let form = Form::wanted(&headers, &[Form::Stream, Form::Json])?;
    let most = limit(which.limit)?;
    let run = gateway.runner_of(&caller).run(&run).await?;
    // Watch first, then read.
    let watch = run.subscription().watch();
    let seen = which.seen(&headers)?;
    if let Some(seen) = seen.filter(|seen| seen.seq >= run.row.version) {
        let detail = format!("run `{}` has no event `{seen}`; its journal has {} entries", run.id(), run.row.version);
        return Err(Problem::new(ErrorCode::Validation, detail));
    }
    let teller = Teller::new(run.id().clone(), Include::content(which.include), seen);
    if form == Form::Json {
        return Ok(Json(page(&run, teller, most).await?).into_response());
    }
    let mut tail = tail(&gateway, &run, teller, which.until, watch);
    if tail.is_over(run.row.status).await? {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(streamed(&gateway, tail))
}

/// A stream of all events of a run, until it is pending or has ended.
pub(super) fn whole(gateway: &Gateway, run: TenantRun, content: Content) -> Response {
    let (watch, teller) = (run.subscription().watch(), Teller::new(run.id().clone(), content, None));
    streamed(gateway, tail(gateway, &run, teller, Until::Idle, watch))
}

/// A stream of an execution's events, from the fact that began it until the run is pending or has ended.
pub(super) async fn execution(
    gateway: &Gateway,
    run: TenantRun,
    content: Content,
    watch: Watch,
) -> Result<Response, Problem> {
    let (begun, _) = run.load().await?.execution();
    let seen = begun.checked_sub(1).map(EventId::whole);
    let teller = Teller::new(run.id().clone(), content, seen);
    Ok(streamed(gateway, tail(gateway, &run, teller, Until::Idle, watch)))
}

fn tail(gateway: &Gateway, run: &TenantRun, teller: Teller, until: Until, watch: Watch) -> Tail {
    Tail::new(run.subscription(), teller, until, gateway.settings().poll, gateway.stopping().clone(), watch)
}

async fn page(run: &TenantRun, mut teller: Teller, limit: usize) -> Result<Page<EventView>, Problem> {
    let mut events = Vec::new();
    for fact in run.facts().await? {
        events.extend(teller.tell(&fact));
        if events.len() > limit {
            break;
        }
    }
    Ok(Page::of(events, limit, |event| event.id().unwrap_or_default().to_owned(), |event| event))
}

fn streamed(gateway: &Gateway, tail: Tail) -> Response {
    let beginning = stream::once(async { Ok(Event::default().retry(RETRY)) });
    let alive = KeepAlive::new().interval(gateway.settings().heartbeat).text("ping");
    let sse = Sse::new(beginning.chain(frames(tail))).keep_alive(alive);
    // A proxy that buffers responses would delay the events.
    let unbuffered = (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    ([unbuffered], sse).into_response()
}

fn frames(tail: Tail) -> impl Stream<Item = Result<Event, Infallible>> {
    // Boxed, because the future of each step holds it twice: as it came and as it is used.
    stream::unfold(Some(Box::new(tail)), |tail| async move {
        let mut tail = tail?;
        let told = match tail.next().await {
            Ok(Some(Told::Event(event))) => event.frame().map(|frame| (Ok(frame), Some(tail))),
            Ok(Some(Told::Draining)) => {
                let frame = Event::default().event("server.draining").data(r#"{"type":"server.draining"}"#);
                Ok((Ok(frame), None))
            }
            Ok(None) => return None,
            Err(problem) => Err(problem),
        };
        // The connection closes, and the client resumes after the last event it received.
        told.inspect_err(|problem| tracing::warn!(detail = problem.detail(), "event stream aborted")).ok()
    })
}

impl Which {
    fn seen(&self, headers: &HeaderMap) -> Result<Option<EventId>, Problem> {
        let Some(last) = headers.get(LAST_EVENT_ID).filter(|last| !last.is_empty()) else { return Ok(self.after) };
        let text = last.to_str().unwrap_or_default();
        let id = text.parse().map_err(|detail: String| Problem::new(ErrorCode::InvalidRequest, detail))?;
        Ok(Some(id))
    }
}

impl Include {
    pub(super) fn content(include: Option<Self>) -> Content {
        match include {
            Some(Self::Content) => Content::Include,
            None => Content::Omit,
        }
    }
}
