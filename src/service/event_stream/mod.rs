//! Event streams: replay of the journal's events of a run, or of all runs of a tenant, then a live tail, with ids that any
//! process understands.

mod encoder;
mod id;
mod open;
mod projections;
mod run_watch;
mod selection;
mod sent_reply;
mod settled;
mod tail;
mod tenant_tail;

pub use id::EventId;
pub use open::{FollowSettings, events_of};
pub use selection::{EventSelection, EventTopic};
use serde::{Serialize, Serializer};
pub use tail::{StreamItem, Tail, Until};
pub use tenant_tail::{EventPage, TenantStreamItem, TenantTail};
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

    /// Those of the events, with their ids, that come after the one that the client has.
    fn unseen(
        named: impl Iterator<Item = (EventId, LifecycleEvent)>,
        seen: Option<EventId>,
    ) -> impl Iterator<Item = Self> {
        let unseen = named.filter(move |(id, _)| seen.is_none_or(|seen| id.is_after(seen)));
        unseen.map(|(id, event)| Self { id: Some(id), event })
    }
}

fn as_text<S: Serializer>(id: &Option<EventId>, serializer: S) -> Result<S::Ok, S::Error> {
    id.map(|id| id.to_string()).serialize(serializer)
}
