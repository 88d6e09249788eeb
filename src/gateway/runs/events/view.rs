//! An event as the API shows it, in a page and on a stream alike.

use axum::response::sse;
use serde::Serialize;
use utoipa::ToSchema;

use super::id::EventId;
use crate::core::error::ErrorCode;
use crate::gateway::problem::Problem;
use crate::telemetry::lifecycle::LifecycleEvent;

/// What happened in a run. Besides these fields it has those of its type.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct EventView {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(flatten)]
    event: LifecycleEvent,
}

/// What happened in a run. Besides these fields it has those of its type.
#[derive(Serialize, ToSchema)]
#[schema(as = Event)]
#[allow(dead_code)] // the lifecycle writes it; this describes what it writes
pub(super) struct EventDescription {
    /// Where it is in the run's journal, as `Last-Event-ID` and `after` take it. Fragments, and `execution.pending`, have none.
    #[schema(example = "14")]
    id: Option<String>,
    /// The position of the fact that it tells; several events may tell one.
    seq: Option<u64>,
    /// The run.
    run_id: String,
    /// When; fragments do not say.
    #[schema(value_type = Option<String>, format = DateTime)]
    at: Option<jiff::Timestamp>,
    /// Turns of the model begun so far.
    iteration: u32,
    /// What happened: `execution.started`, `llm.call.completed`, `tool.mcp.completed`, …
    r#type: String,
}

/// One event of the stream, as server-sent events have it. Pass over events that you do not know.
#[derive(ToSchema)]
#[schema(as = EventFrame)]
#[allow(dead_code)] // axum writes it; this describes what it writes
pub(in crate::gateway::runs) struct FrameDescription {
    /// To be sent as `Last-Event-ID` when the stream broke off.
    #[schema(example = "14")]
    id: Option<String>,
    /// What happened: the `type` of the event.
    event: String,
    /// The event, as the JSON of an `Event`; of `server.draining`, which is no event of a run, only its `type`.
    data: String,
}

impl EventView {
    pub(super) fn of(id: EventId, event: LifecycleEvent) -> Self {
        Self { id: Some(id.to_string()), event }
    }

    /// One that is told once, to whoever listens.
    pub(super) fn unnamed(event: LifecycleEvent) -> Self {
        Self { id: None, event }
    }

    /// What it is called, if it can be asked for again.
    pub(super) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// As a stream has it.
    pub(super) fn frame(&self) -> Result<sse::Event, Problem> {
        let frame = sse::Event::default().event(self.event.name());
        let frame = self.id.iter().fold(frame, |frame, id| frame.id(id));
        frame.json_data(self).map_err(|error| Problem::new(ErrorCode::Internal, error.to_string()))
    }
}
