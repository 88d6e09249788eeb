//! The API description of an event, and its frame on a stream.

use axum::response::sse;
use toolgate_core::error::ErrorCode;
use toolgate_service::{RunEvent, StreamItem};
use utoipa::ToSchema;
use utoipa::openapi::Ref;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

use super::kinds::KindView;
use crate::problem::Problem;

/// An event of a run. Ignore events of unknown types: later versions may add some.
#[derive(ToSchema)]
#[schema(as = Event)]
#[allow(dead_code)] // the lifecycle writes it; this describes what it writes
pub(crate) struct EventDescription {
    #[serde(flatten)]
    common: CommonMembers,
    #[serde(flatten)]
    kind: KindView,
}

/// The members of every event.
#[derive(ToSchema)]
#[allow(dead_code)] // the lifecycle writes it; this describes what it writes
struct CommonMembers {
    /// For `Last-Event-ID` and `after`: in the stream of a run the event's place in the journal, which fragments and
    /// `execution.pending` do not have; in the stream of all runs its place among the events of all runs.
    #[schema(example = "14")]
    id: Option<String>,
    /// The position of the event's journal entry; several events may share one.
    seq: Option<u64>,
    /// The run's id.
    run_id: String,
    /// When the event happened; fragments have no time.
    #[schema(format = DateTime)]
    at: Option<String>,
    /// The number of model turns that have begun.
    iteration: u32,
}

/// A message of a stream: an event, or how far the stream is.
#[derive(ToSchema)]
#[schema(as = StreamEvent)]
#[serde(untagged)]
#[allow(dead_code)] // this describes what streams write
pub(crate) enum MessageDescription {
    Event(Box<EventDescription>),
    Stream(StreamMessage),
}

/// A message of a stream that is no event of a run.
#[derive(ToSchema)]
#[schema(as = StreamMessage)]
#[serde(tag = "type")]
#[allow(dead_code)] // this describes what streams write
pub(crate) enum StreamMessage {
    /// The server is about to stop: reconnect.
    #[serde(rename = "server.draining")]
    Draining,
    /// How far a stream of all runs is: you have received every event up to this `id`.
    #[serde(rename = "stream.position")]
    Position {
        /// A value for `Last-Event-ID` and `after`.
        id: String,
    },
}

/// A server-sent event of the stream. Ignore events of unknown types.
#[derive(ToSchema)]
#[schema(as = EventFrame)]
#[allow(dead_code)] // axum writes it; this describes what it writes
pub(crate) struct FrameDescription {
    /// The id to send as `Last-Event-ID` after a disconnection.
    #[schema(example = "14", nullable = false)]
    id: Option<String>,
    /// The `type` of the message.
    event: String,
    #[schema(schema_with = data)]
    data: String,
}

/// The schema of `data`: a text, whose JSON is a [`MessageDescription`].
fn data() -> Object {
    let message = Ref::from_schema_name(MessageDescription::name());
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some("The JSON of a `StreamEvent`."))
        .content_media_type("application/json")
        .content_schema(Some(message))
        .build()
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
