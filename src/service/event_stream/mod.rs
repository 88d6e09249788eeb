//! Event stream of a run: replay of the journal's events, then a live tail, with ids that any process understands.

mod encoder;
mod id;
mod open;
mod run_watch;
mod sent_reply;
mod settled;
mod tail;

pub use id::EventId;
pub use open::{FollowSettings, events_of};
use serde::{Serialize, Serializer};
pub use tail::{StreamItem, Tail, Until};
use toolgate_core::lifecycle::LifecycleEvent;

/// An event of a run. Besides these fields it has those of its type.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunEvent {
    /// The event's id; `None` if the event is sent only live and cannot be read again.
    #[serde(serialize_with = "as_text")]
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
