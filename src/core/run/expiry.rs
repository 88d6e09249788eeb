//! Deadlines of pending items: when they expire, and the events that follow. Events have no clock; the journal passes
//! the time of each event to the fold, and everything here is derived from that.
//!
//! The time for an answer begins when the run starts to wait for it. While other calls of the turn are running, pending
//! items may not have been shown to a person yet, and no answer can be late.

use std::time::Duration;

use jiff::Timestamp;

use super::turn::Call;
use super::{CallState, Channel, Decision, Event, PendingCounts, PendingItem, ResumeError, Run};
use crate::id::CallId;

impl Run {
    /// Starts the time of everything that the run waits for as of now.
    pub(super) fn start_deadlines(&mut self) {
        let has_no_time = |call: &Call| call.is_awaited() && call.deadline.since.is_none();
        let is_new = self.phase.calls().iter().any(has_no_time);
        if !is_new || !self.waits() {
            return;
        }
        let now = self.clock;
        let Some(turn) = self.phase.turn_mut() else { return };
        turn.calls.iter_mut().filter(|call| has_no_time(call)).for_each(|call| call.deadline.since = now);
    }

    /// Expiry events for everything that was not answered in time, or the decisions that policies make in this case. A
    /// driver that resumes a run records them first.
    pub fn overdue(&self, now: Timestamp) -> Vec<Event> {
        let late = |call: &&Call| call.is_awaited() && call.deadline.until().is_some_and(|until| until <= now);
        self.phase.calls().iter().filter(late).map(Call::expiry).collect()
    }

    /// Extends the deadline of a pending item. Repeating an extension has no further effect.
    pub(super) fn accept_extension(
        &self,
        id: &CallId,
        until: Timestamp,
        by: &str,
        via: Channel,
    ) -> Result<Vec<Event>, Vec<ResumeError>> {
        let call_id = id.clone();
        if self.ending().is_some() {
            return Err(vec![self.over()]);
        }
        if self.is_late(id) {
            return Err(vec![ResumeError::TooLate { call_id }]);
        }
        let Some(call) = self.call(id).filter(|call| PendingItem::new(call).is_some()) else {
            return Err(vec![ResumeError::UnknownCall { call_id }]);
        };
        if !call.is_awaited() || call.deadline.answer_timeout_s.is_none() {
            return Err(vec![ResumeError::NoDeadline { call_id }]);
        }
        if let Some(refusal) = self.unusable_extension(id, by) {
            return Err(vec![refusal]);
        }
        match call.deadline.until().max(call.deadline.extended) {
            Some(now) if now == until => Ok(Vec::new()),
            Some(now) if now > until => Err(vec![ResumeError::NotLater { call_id, until: now }]),
            Some(_) | None => Ok(vec![Event::Extended { call: call_id, until, by: by.to_owned(), via }]),
        }
    }

    /// Pending counts of a waiting run that began then. The run's own deadline counts like the deadlines of its items.
    pub fn pending_counts(&self, began: Timestamp) -> PendingCounts {
        let pending = self.pending();
        if pending.is_empty() {
            // A running run waits only for answers to calls that are held open.
            return PendingCounts::from_items(&self.open_items());
        }
        let pending_counts = PendingCounts::from_items(&pending);
        PendingCounts { due_at: pending_counts.due_at.into_iter().chain(self.ends_by(began)).min(), ..pending_counts }
    }

    /// The deadline of a run that began then, if its limits have one. It is over once the ending is decided.
    pub fn ends_by(&self, began: Timestamp) -> Option<Timestamp> {
        let limit = self.started.spec.limits.deadline_s.filter(|_| !self.is_compensating());
        let deadline = Duration::from_secs(limit?);
        began.checked_add(deadline).ok()
    }

    /// The earliest deadline of the pending items.
    pub fn due_at(&self) -> Option<Timestamp> {
        self.phase.calls().iter().filter(|call| call.is_awaited()).filter_map(|call| call.deadline.until()).min()
    }
}

impl Call {
    /// The event for a call whose time for an answer has passed.
    fn expiry(&self) -> Event {
        let call = self.requested.id.clone();
        let decided = match &self.state {
            CallState::Asked { on_timeout, .. } => Decision::on_timeout(*on_timeout),
            CallState::New
            | CallState::Selected
            | CallState::Authorized
            | CallState::Started
            | CallState::NeedsInput(_)
            | CallState::Task(_)
            | CallState::Settled(_) => None,
        };
        match decided {
            Some(decision) => {
                let binding = PendingItem::new(self).and_then(|item| item.binding()).map(Box::new);
                Event::ApprovalDecided { call, decision: Decision { binding, ..decision } }
            }
            None => Event::Expired { call },
        }
    }
}
