//! The API description of an event, and its frame on a stream.

use axum::response::sse;
use serde::Serialize;
use toolgate_core::error::ErrorCode;
use toolgate_core::timestamp::optional_millis;
use toolgate_service::{RunEvent, StreamItem};
use utoipa::ToSchema;

use crate::problem::Problem;

/// An event of a run. Besides these fields it has those of its type.
#[derive(Serialize, ToSchema)]
#[schema(as = Event)]
#[allow(dead_code)] // the lifecycle writes it; this describes what it writes
pub(crate) struct EventDescription {
    /// The event's place in the run's journal, for `Last-Event-ID` and `after`. Fragments, and `execution.pending`,
    /// have none.
    #[schema(example = "14")]
    id: Option<String>,
    /// The position of the event's journal entry; several events may share one.
    seq: Option<u64>,
    /// The run's id.
    run_id: String,
    /// When the event happened; fragments have no time.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(serialize_with = "optional_millis")]
    at: Option<jiff::Timestamp>,
    /// The number of model turns that have begun.
    iteration: u32,
    /// The type of the event: `execution.started`, `llm.call.completed`, `tool.mcp.completed`, …
    r#type: String,
}

/// A server-sent event of the stream. Ignore events of unknown types.
#[derive(ToSchema)]
#[schema(as = EventFrame)]
#[allow(dead_code)] // axum writes it; this describes what it writes
pub(crate) struct FrameDescription {
    /// The id to send as `Last-Event-ID` after a disconnection.
    #[schema(example = "14")]
    id: Option<String>,
    /// The `type` of the event.
    event: String,
    /// The event, as the JSON of an `Event`; for `server.draining`, which is not an event of a run, only its `type`.
    data: String,
}

/// An item of a stream as a server-sent event.
pub(crate) fn item_frame(item: &StreamItem) -> Result<sse::Event, Problem> {
    match item {
        StreamItem::Event(event) => frame(event),
        StreamItem::Draining => {
            Ok(sse::Event::default().event("server.draining").data(r#"{"type":"server.draining"}"#))
        }
    }
}

fn frame(event: &RunEvent) -> Result<sse::Event, Problem> {
    let frame = sse::Event::default().event(event.name());
    let frame = event.id.iter().fold(frame, |frame, id| frame.id(id.to_string()));
    frame.json_data(event).map_err(|error| Problem::new(ErrorCode::Internal, error.to_string()))
}
