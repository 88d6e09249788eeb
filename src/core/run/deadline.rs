//! Until when something is owed, and what becomes of it afterwards. Facts have no clock; the journal tells the fold the
//! time of each, and everything here is derived from that.

use std::time::Duration;

use jiff::Timestamp;

use super::state::Phase;
use super::turn::Call;
use super::{Event, Run};

/// What somebody outside has to answer, and by when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Term {
    /// The position of the fact since which it is owed.
    pub event: u64,
    /// When that was, if the time of the facts is known.
    pub since: Option<Timestamp>,
    /// How many seconds there are for it.
    pub within_s: Option<u64>,
    /// Until when somebody extended it.
    pub extended: Option<Timestamp>,
}

impl Term {
    /// Until when it is owed; `None` for as long as the run lives.
    pub fn until(&self) -> Option<Timestamp> {
        self.extended.or_else(|| self.since?.checked_add(Duration::from_secs(self.within_s?)).ok())
    }
}

impl Run {
    /// What was not answered in time, as facts. Whoever touches a run writes them down first.
    pub fn overdue(&self, now: Timestamp) -> Vec<Event> {
        let Phase::Working { turn, .. } = &self.phase else { return Vec::new() };
        let late = |call: &&Call| call.is_awaited() && call.term.until().is_some_and(|until| until <= now);
        turn.calls.iter().filter(late).map(|call| Event::Expired { call: call.asked.id.clone() }).collect()
    }

    /// When the first of the things that are owed becomes overdue.
    pub fn due_at(&self) -> Option<Timestamp> {
        let Phase::Working { turn, .. } = &self.phase else { return None };
        turn.calls.iter().filter(|call| call.is_awaited()).filter_map(|call| call.term.until()).min()
    }
}
