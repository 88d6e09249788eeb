//! Event of a run with its id, the same in a page and on a stream.

use serde::Serialize;
use toolgate_core::lifecycle::LifecycleEvent;

use super::id::EventId;

/// An event of a run. Besides these fields it has those of its type.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunEvent {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(flatten)]
    event: LifecycleEvent,
}

impl RunEvent {
    pub(super) fn of(id: EventId, event: LifecycleEvent) -> Self {
        Self { id: Some(id.to_string()), event }
    }

    /// An event without an id, which is sent only live.
    pub(super) fn unnamed(event: LifecycleEvent) -> Self {
        Self { id: None, event }
    }

    /// The event's id, if it can be read again.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The type of the event.
    pub fn name(&self) -> &'static str {
        self.event.name()
    }
}
