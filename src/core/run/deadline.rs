//! Until when something is owed, and what becomes of it afterwards. Facts have no clock; the journal tells the fold the
//! time of each, and everything here is derived from that.
//!
//! The time for an answer begins when the run first waits for it. As long as other calls of the turn are at work, nobody
//! may have been shown what is owed, and nobody can be late.

use std::time::Duration;

use jiff::Timestamp;

use super::state::Phase;
use super::turn::Call;
use super::{Channel, Event, Owes, Refusal, Run, Step};
use crate::core::id::CallId;

/// What somebody outside has to answer, and by when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Term {
    /// The position of the fact that asks for it.
    pub event: u64,
    /// Since when the run waits for it, once it does, if the time of the facts is known.
    pub since: Option<Timestamp>,
    /// How many seconds there are for it.
    pub within_s: Option<u64>,
    /// Until when somebody extended it.
    pub extended: Option<Timestamp>,
}

impl Term {
    /// Time for an answer that was asked for by that fact.
    pub(super) fn new(event: u64, within_s: Option<u64>) -> Self {
        Self { event, since: None, within_s, extended: None }
    }

    /// Until when it is owed; `None` for as long as the run lives, or as long as its time has not begun. An extension never
    /// takes time away.
    pub fn until(&self) -> Option<Timestamp> {
        let ends = self.since?.checked_add(Duration::from_secs(self.within_s?)).ok()?;
        Some(self.extended.map_or(ends, |extended| extended.max(ends)))
    }
}

impl Run {
    /// Lets the time begin for everything that the run waits for as of now.
    pub(super) fn begin_terms(&mut self) {
        let has_no_time = |call: &Call| call.is_awaited() && call.term.since.is_none();
        let is_new = matches!(&self.phase, Phase::Working { turn, .. } if turn.calls.iter().any(has_no_time));
        if !is_new || !matches!(self.next(), Step::Wait(_)) {
            return;
        }
        let now = self.clock;
        let Phase::Working { turn, .. } = &mut self.phase else { return };
        turn.calls.iter_mut().filter(|call| has_no_time(call)).for_each(|call| call.term.since = now);
    }

    /// What was not answered in time, as facts. Whoever drives a run on writes them down first.
    pub fn overdue(&self, now: Timestamp) -> Vec<Event> {
        let Phase::Working { turn, .. } = &self.phase else { return Vec::new() };
        let late = |call: &&Call| call.is_awaited() && call.term.until().is_some_and(|until| until <= now);
        turn.calls.iter().filter(late).map(|call| Event::Expired { call: call.asked.id.clone() }).collect()
    }

    /// More time for something that is owed. Giving the same time twice is giving it once.
    pub(super) fn accept_extension(
        &self,
        id: &CallId,
        until: Timestamp,
        by: &str,
        via: Channel,
    ) -> Result<Vec<Event>, Vec<Refusal>> {
        let call_id = id.clone();
        if self.ending().is_some() {
            return Err(vec![self.over()]);
        }
        if self.is_late(id) {
            return Err(vec![Refusal::TooLate { call_id }]);
        }
        let Some(call) = self.call(id).filter(|call| Self::debt(call).is_some()) else {
            return Err(vec![Refusal::UnknownCall { call_id }]);
        };
        if !call.is_awaited() || call.term.within_s.is_none() {
            return Err(vec![Refusal::NoDeadline { call_id }]);
        }
        if let Some(refusal) = self.unusable_extension(id, by) {
            return Err(vec![refusal]);
        }
        match call.term.until().max(call.term.extended) {
            Some(now) if now == until => Ok(Vec::new()),
            Some(now) if now > until => Err(vec![Refusal::NotLater { call_id, until: now }]),
            Some(_) | None => Ok(vec![Event::Extended { call: call_id, until, by: by.to_owned(), via }]),
        }
    }

    /// What it is owed while it waits, of a run that began then. It has a time of its own, which runs out like that of what is
    /// owed.
    pub fn owes(&self, began: Timestamp) -> Owes {
        let pending = self.pending();
        if pending.is_empty() {
            // A run at work waits for nothing but the answers to calls that are held open.
            return Owes::of(&self.open_items());
        }
        let owes = Owes::of(&pending);
        Owes { due_at: owes.due_at.into_iter().chain(self.ends_by(began)).min(), ..owes }
    }

    /// Until when a run that began then is to be over, if its limits say so.
    pub fn ends_by(&self, began: Timestamp) -> Option<Timestamp> {
        let deadline = Duration::from_secs(self.started.spec.limits.deadline_s?);
        began.checked_add(deadline).ok()
    }

    /// When the first of the things that are owed becomes overdue.
    pub fn due_at(&self) -> Option<Timestamp> {
        let Phase::Working { turn, .. } = &self.phase else { return None };
        turn.calls.iter().filter(|call| call.is_awaited()).filter_map(|call| call.term.until()).min()
    }
}
