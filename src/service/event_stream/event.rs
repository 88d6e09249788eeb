//! Event of a run with its id, the same in a page and on a stream.

use serde::{Serialize, Serializer};
use toolgate_core::lifecycle::LifecycleEvent;

use super::id::EventId;

/// An event of a run. Besides these fields it has those of its type.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunEvent {
    /// The event's id; `None` if the event is sent only live and cannot be read again.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    pub id: Option<EventId>,
    /// The event, without its id.
    #[serde(flatten)]
    pub event: LifecycleEvent,
}

impl RunEvent {
    /// The type of the event.
    pub fn name(&self) -> &'static str {
        self.event.name()
    }
}

fn as_text<S: Serializer>(id: &Option<EventId>, serializer: S) -> Result<S::Ok, S::Error> {
    id.map(|id| id.to_string()).serialize(serializer)
}
