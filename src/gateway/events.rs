//! `/v1/events`: the events of all runs of a tenant, and `/v1/approvals/events`, those of the approvals inbox.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use futures::{Stream, stream};
use serde::Deserialize;
use serde_json::json;
use toolgate_core::id::{AgentName, SessionId};
use toolgate_service::{EventId, EventSelection, EventTopic, RunEvent, TenantRunner, TenantStreamItem, TenantTail};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::runs::events::{EventDescription, FrameDescription, item_frame, last_event_id, streamed};
use crate::body::Query;
use crate::closed_sets::EventTypeView;
use crate::negotiation::Form;
use crate::pagination::{Page, invalid_parameter, limit};
use crate::problem::Problem;
use crate::state::Gateway;

pub(super) fn routes() -> OpenApiRouter<Gateway> {
    OpenApiRouter::new().routes(routes!(of_runs)).routes(routes!(of_approvals))
}

/// Filters of the events.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct EventParams {
    /// Only events of these types, separated by commas. Fragments and progress are in no stream of a tenant.
    #[param(value_type = Vec<EventTypeView>, required = false, style = Form, explode = false, example = "execution.pending,execution.failed")]
    r#type: Option<String>,
    /// Only events of runs of this agent.
    #[param(value_type = Option<String>)]
    agent: Option<AgentName>,
    /// Only events of runs of this session.
    #[param(value_type = Option<String>)]
    session_id: Option<SessionId>,
    /// A cursor: events after this one. Default: events from now on. A `Last-Event-ID` header takes precedence.
    #[param(value_type = Option<String>, pattern = r"^[0-9]{1,19}(\.[1-9][0-9]{0,8})?$")]
    after: Option<EventId>,
    /// Pages only. The number of events to return: 1 to 100. Default: 20.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
}

/// Stream the events of all runs
///
/// A stream of server-sent events: those of every run of the tenant, in the order in which they were recorded, whichever
/// server recorded them, and without content. The `id` of an event is its place in this order. A client that reconnects with
/// `Last-Event-ID`, to this server or another one, continues with the very next event. Without it, the stream begins with
/// the next event that is recorded. A `stream.position`, which is no event of a run, has the `id` of
/// how far the stream is: first of all, and after many events that the filters exclude.
///
/// With `Accept: application/json` the response is a page of the events so far. Its `last_id` is the cursor of the next
/// page, also if the page is empty.
#[utoipa::path(
    get, path = "/v1/events", tag = "events", operation_id = "watchEvents",
    params(
        ("Last-Event-ID" = Option<String>, Header, pattern = r"^([0-9]{1,19}(\.[1-9][0-9]{0,8})?)?$", description = "The id of the last event that you received"),
        EventParams,
    ),
    security(("key" = []), ("ticket" = [])),
    responses(
        (status = 200, description = "The events", content((Page<EventDescription> = "application/json"), (FrameDescription = "text/event-stream"))),
    ),
)]
async fn of_runs(
    State(gateway): State<Gateway>,
    runner: TenantRunner,
    headers: HeaderMap,
    Query(which): Query<EventParams>,
) -> Result<Response, Problem> {
    respond(&gateway, &runner, &headers, which, EventTopic::Runs).await
}

/// Stream the events of the approvals inbox
///
/// The events of `GET /v1/events` that change the list of pending approvals: `approval.requested`, `approval.decided`,
/// `approval.expired`, and those that extend or withdraw approvals (`pending.extended`, `compensation.started`, the end of a
/// run) if their run had pending approvals. Ids, cursors and pages are the same.
#[utoipa::path(
    get, path = "/v1/approvals/events", tag = "approvals", operation_id = "watchApprovals",
    params(
        ("Last-Event-ID" = Option<String>, Header, pattern = r"^([0-9]{1,19}(\.[1-9][0-9]{0,8})?)?$", description = "The id of the last event that you received"),
        EventParams,
    ),
    security(("key" = []), ("ticket" = [])),
    responses(
        (status = 200, description = "The events", content((Page<EventDescription> = "application/json"), (FrameDescription = "text/event-stream"))),
    ),
)]
async fn of_approvals(
    State(gateway): State<Gateway>,
    runner: TenantRunner,
    headers: HeaderMap,
    Query(which): Query<EventParams>,
) -> Result<Response, Problem> {
    respond(&gateway, &runner, &headers, which, EventTopic::Approvals).await
}

async fn respond(
    gateway: &Gateway,
    runner: &TenantRunner,
    headers: &HeaderMap,
    which: EventParams,
    topic: EventTopic,
) -> Result<Response, Problem> {
    let form = Form::wanted(headers, &[Form::Stream, Form::Json])?;
    let most = limit(which.limit)?;
    let seen = last_event_id(headers)?.or(which.after);
    let types = which.r#type.as_deref().map(EventSelection::parse_types).transpose();
    let types = types.map_err(|unknown| invalid_parameter("type", format!("has the unknown type `{unknown}`")))?;
    let selection =
        EventSelection { agent: which.agent, session: which.session_id, types: types.unwrap_or_default(), topic };
    let tail = runner.events(selection, seen, gateway.access().limiter.turns(), gateway.follow()).await?;
    if form == Form::Json {
        let page = tail.page(most).await?;
        let id = |event: &RunEvent| event.id.map(|id| id.to_string()).unwrap_or_default();
        let events = Page::new(page.events, most, id, |event| event).until(page.last.to_string(), page.has_more);
        return Ok(Json(events).into_response());
    }
    // A client that is disconnected before the first event resumes where its stream began.
    let beginning = position_frame(tail.beginning());
    Ok(streamed(gateway, beginning, frames(tail)))
}

fn frames(tail: TenantTail) -> impl Stream<Item = Result<Event, Problem>> {
    // Boxed, because the future of each step holds it twice: as it came and as it is used.
    stream::unfold(Box::new(tail), |mut tail| async move {
        let frame = match tail.next().await.transpose()? {
            Ok(TenantStreamItem::Item(item)) => item_frame(&item),
            Ok(TenantStreamItem::Position(id)) => Ok(position_frame(id)),
            Err(error) => Err(error.into()),
        };
        Some((frame, tail))
    })
}

/// How far the stream is, for a client that received no event since.
fn position_frame(id: EventId) -> Event {
    let id = id.to_string();
    Event::default().event("stream.position").data(json!({"type": "stream.position", "id": id}).to_string()).id(id)
}
