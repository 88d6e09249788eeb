//! Event encoder: journal entries in, events with ids out. The part of a stream that does no I/O.

use std::collections::VecDeque;

use toolgate_core::id::{CallId, RunId};
use toolgate_core::lifecycle::{Content, Delta, FragmentPosition, Lifecycle};
use toolgate_core::run::{Event, JournalEntry};
use toolgate_core::tool::Progress;

use super::RunEvent;
use super::id::EventId;

/// Produces the events of a run's journal from its beginning, and skips those that the client has.
pub(super) struct EventEncoder {
    run: RunId,
    content: Content,
    /// The run up to the last entry; `None` before the first one.
    lifecycle: Option<Box<Lifecycle>>,
    seen: Option<EventId>,
    /// The position of the next entry.
    next: u64,
    has_ended: bool,
}

impl EventEncoder {
    /// For a client that has everything up to that event, or nothing.
    pub(super) fn new(run: RunId, content: Content, seen: Option<EventId>) -> Self {
        Self { run, content, lifecycle: None, seen, next: 0, has_ended: false }
    }

    /// Releases the memory of the run, which is built again from the first entry: the client has every event so far, so
    /// that no event is sent twice.
    pub(super) fn release(&mut self) {
        self.seen = self.next.checked_sub(1).map(EventId::whole).or(self.seen);
        (self.lifecycle, self.next) = (None, 0);
    }

    /// The position of the next entry.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Whether the client has every event of the entry at that position.
    pub(super) fn has_sent(&self, seq: u64) -> bool {
        seq < self.next || self.seen.is_some_and(|seen| !EventId::whole(seq).is_after(seen))
    }

    /// Whether the ending was sent.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The events of the next entry that the client does not have. An earlier entry has no such events.
    pub(super) fn project(&mut self, recorded: &JournalEntry) -> VecDeque<RunEvent> {
        if recorded.seq != self.next {
            return VecDeque::new();
        }
        self.next += 1;
        self.has_ended |= matches!(recorded.event, Event::Ended { .. });
        let lifecycle = self.lifecycle.get_or_insert_with(|| Lifecycle::new(self.run.clone(), self.content).into());
        let events = lifecycle.observe(recorded);
        let count = events.len();
        let named =
            events.into_iter().enumerate().map(|(index, event)| (EventId::new(recorded.seq, index, count), event));
        RunEvent::unseen(named, self.seen).collect()
    }

    /// The model call whose reply is in progress, by the position of its `llm.call.started`, if the client may read the
    /// reply.
    pub(super) fn streamed_call(&self) -> Option<u64> {
        self.lifecycle.as_ref().filter(|_| self.content == Content::Include)?.model_call_in_flight()
    }

    /// A fragment of that reply, which is the next one for the client. It has no id.
    pub(super) fn fragment(&self, delta: Delta, position: FragmentPosition) -> Option<RunEvent> {
        let lifecycle = self.lifecycle.as_ref()?;
        Some(RunEvent { id: None, event: lifecycle.delta(delta, Some(position)) })
    }

    /// The progress of a call that is in flight, as far as the client may read it: it has no id, and is never sent again.
    pub(super) fn progress(&self, call: CallId, progress: Progress) -> Option<RunEvent> {
        let lifecycle = self.lifecycle.as_ref().filter(|lifecycle| lifecycle.is_in_flight(&call))?;
        let progress = match self.content {
            Content::Include => progress,
            Content::Omit => Progress { message: None, ..progress },
        };
        Some(RunEvent { id: None, event: lifecycle.delta(Delta::Progress { call, progress }, None) })
    }

    /// The event that the run is pending, if it is. It is not a journal entry, so it has no id.
    pub(super) fn rest(&self, at: jiff::Timestamp) -> Option<RunEvent> {
        self.lifecycle.as_ref()?.pending(at).map(|event| RunEvent { id: None, event })
    }
}

#[cfg(test)]
mod tests;
