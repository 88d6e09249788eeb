//! `GET /v1/runs/{run}/events`

mod kinds;
mod members;
mod view;

use std::convert::Infallible;
use std::future::ready;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::{Stream, StreamExt as _, stream};
use serde::Deserialize;
use utoipa::IntoParams;

pub(crate) use self::members::RunLimitsView;
pub(crate) use self::view::{EventDescription, FrameDescription, MessageDescription, item_frame};
use toolgate_core::error::ErrorCode;
use toolgate_core::lifecycle::Content;
use toolgate_runner::Watch;
use toolgate_service::{EventId, Tail, TenantRun, TenantRunner, Until};

use crate::access::StreamPermit;
use crate::body::{Path, Query};
use crate::negotiation::Form;
use crate::pagination::{Page, limit};
use crate::problem::Problem;
use crate::state::Gateway;

const LAST_EVENT_ID: &str = "last-event-id";

/// The reconnection delay that a stream asks its client for.
const RETRY: Duration = Duration::from_secs(2);

/// Filters of the events.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct EventParams {
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
/// of the model's text, and `execution.pending`, which lists the pending items, are sent live and have no id. A stream
/// that begins while a model replies first sends the text so far as one fragment: a fragment with `index` 0 begins the
/// text again. The stream closes when the run ends, or with `until=idle` when the run is pending; it then answers 204 to a
/// reconnection. A server that stops closes the stream with `server.draining`.
///
/// With `Accept: application/json` the response is a page of the events so far.
#[utoipa::path(
    get, path = "/v1/runs/{run}/events", tag = "runs", operation_id = "watchRun",
    params(
        ("Last-Event-ID" = Option<String>, Header, pattern = r"^([0-9]{1,19}(\.[1-9][0-9]{0,8})?)?$", description = "The id of the last event that you received"),
        EventParams,
    ),
    security(("key" = []), ("ticket" = [])),
    responses(
        (status = 200, description = "The events", content((Page<EventDescription> = "application/json"), (FrameDescription = "text/event-stream"))),
        (status = 204, description = "There are no events after the one you have: the run has ended, or with `until=idle` it is pending"),
    ),
)]
pub(super) async fn events(
    State(gateway): State<Gateway>,
    runner: TenantRunner,
    headers: HeaderMap,
    Path(run): Path<String>,
    Query(which): Query<EventParams>,
    _permit: StreamPermit,
) -> Result<Response, Problem> {
    let form = Form::wanted(&headers, &[Form::Stream, Form::Json])?;
    let most = limit(which.limit)?;
    let run = runner.run(&run).await?;
    let (content, seen) = (Include::content(which.include), last_event_id(&headers)?.or(which.after));
    if form == Form::Json {
        let events = run.events_so_far(content, seen, most).await?;
        let page =
            Page::new(events, most, |event| event.id.map(|id| id.to_string()).unwrap_or_default(), |event| event);
        return Ok(Json(page).into_response());
    }
    let mut tail = run.events(content, seen, which.until, gateway.follow())?;
    if tail.is_over(run.row.status).await? {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(of_run(&gateway, tail))
}

/// A stream of all events of a run, until it is pending or has ended.
pub(super) fn whole(gateway: &Gateway, run: &TenantRun, content: Content) -> Result<Response, Problem> {
    Ok(of_run(gateway, run.events(content, None, Until::Idle, gateway.follow())?))
}

/// A stream of an execution's events, from the fact that began it until the run is pending or has ended.
pub(super) async fn execution(
    gateway: &Gateway,
    run: &TenantRun,
    content: Content,
    watch: Watch,
) -> Result<Response, Problem> {
    Ok(of_run(gateway, run.events_of_execution(content, watch, gateway.follow()).await?))
}

/// The response with an event stream, which ends at the first error. `beginning` is its first frame, to which the
/// reconnection delay is added.
pub(crate) fn streamed(
    gateway: &Gateway,
    beginning: Event,
    frames: impl Stream<Item = Result<Event, Problem>> + Send + 'static,
) -> Response {
    let beginning = stream::once(async { Ok(beginning.retry(RETRY)) });
    // After an error the connection closes, and the client resumes after the last event it received.
    let frames = frames.scan((), |(), frame: Result<Event, Problem>| {
        let frame = frame.inspect_err(|problem| tracing::warn!(detail = problem.detail(), "event stream aborted"));
        ready(frame.ok().map(Ok::<_, Infallible>))
    });
    let frames = beginning.chain(frames);
    let alive = KeepAlive::new().interval(gateway.settings().heartbeat).text("ping");
    let sse = Sse::new(frames).keep_alive(alive);
    // A proxy that buffers responses would delay the events.
    let unbuffered = (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    ([unbuffered], sse).into_response()
}

/// The stream of a run.
fn of_run(gateway: &Gateway, tail: Tail) -> Response {
    // Boxed, because the future of each step holds it twice: as it came and as it is used.
    let frames = stream::unfold(Box::new(tail), |mut tail| async move {
        let item = tail.next().await.transpose()?;
        Some((item.map_err(Problem::from).and_then(|item| item_frame(&item)), tail))
    });
    streamed(gateway, Event::default(), frames)
}

/// The `Last-Event-ID` of a request, if it has one.
pub(crate) fn last_event_id(headers: &HeaderMap) -> Result<Option<EventId>, Problem> {
    let Some(last) = headers.get(LAST_EVENT_ID).filter(|last| !last.is_empty()) else { return Ok(None) };
    let text = last.to_str().unwrap_or_default();
    text.parse().map(Some).map_err(|detail: String| Problem::new(ErrorCode::InvalidRequest, detail))
}

impl Include {
    pub(super) fn content(include: Option<Self>) -> Content {
        match include {
            Some(Self::Content) => Content::Include,
            None => Content::Omit,
        }
    }
}
