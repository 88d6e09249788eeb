//! Event stream of a run: replay of the journal's events, then a live tail, with ids that any process understands.

mod encoder;
mod event;
mod id;
mod open;
mod run_watch;
mod settled;
mod tail;

pub use event::RunEvent;
pub use id::EventId;
pub use open::{FollowSettings, events_of};
pub use tail::{StreamItem, Tail, Until};
