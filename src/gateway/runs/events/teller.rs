//! Facts in, events with ids out. Everything about a stream that needs no waiting is here.

use std::collections::VecDeque;

use super::id::EventId;
use super::view::EventView;
use crate::core::id::RunId;
use crate::core::run::{Event, Recorded};
use crate::ports::{Delta, Progress};
use crate::telemetry::Lifecycle;
use crate::telemetry::lifecycle::Content;

/// Tells a run's journal from its beginning, and keeps to itself what its listener has seen.
pub(super) struct Teller {
    run: RunId,
    content: Content,
    /// The run as far as it was told; `None` before the first fact.
    lifecycle: Option<Box<Lifecycle>>,
    seen: Option<EventId>,
    /// The position of the fact that is told next.
    next: u64,
    has_ended: bool,
}

impl Teller {
    /// For somebody who has seen everything up to that event, or nothing.
    pub(super) fn new(run: RunId, content: Content, seen: Option<EventId>) -> Self {
        Self { run, content, lifecycle: None, seen, next: 0, has_ended: false }
    }

    /// Releases the memory of the run, which begins again at the first fact: its listener has seen everything that was told, so
    /// that nothing is told twice.
    pub(super) fn release(&mut self) {
        self.seen = self.next.checked_sub(1).map(EventId::whole).or(self.seen);
        (self.lifecycle, self.next) = (None, 0);
    }

    /// The position of the fact that is told next.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Whether the listener has everything about the fact at that position.
    pub(super) fn has_told(&self, seq: u64) -> bool {
        seq < self.next || self.seen.is_some_and(|seen| !EventId::whole(seq).is_after(seen))
    }

    /// Whether the ending was told.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The events of the next fact that its listener has not seen. A fact that was told before is none.
    pub(super) fn tell(&mut self, recorded: &Recorded) -> VecDeque<EventView> {
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
        let unseen = named.filter(|(id, _)| self.seen.is_none_or(|seen| id.is_after(seen)));
        unseen.map(|(id, event)| EventView::of(id, event)).collect()
    }

    /// A fragment, as far as its listener may read it: it has no id, and is never told again. What it belongs to is unknown
    /// before the first fact.
    pub(super) fn fragment(&self, delta: Delta) -> Option<EventView> {
        let lifecycle = self.lifecycle.as_ref()?;
        let delta = match (delta, self.content) {
            (delta, Content::Include) => delta,
            (Delta::Text { .. } | Delta::Reasoning { .. }, Content::Omit) => return None,
            (Delta::Progress { call, progress }, Content::Omit) => {
                Delta::Progress { call, progress: Progress { message: None, ..progress } }
            }
        };
        Some(EventView::unnamed(lifecycle.delta(&delta)))
    }

    /// That the run waits, if it does. It is no fact, so it has no id.
    pub(super) fn rest(&self, at: jiff::Timestamp) -> Option<EventView> {
        self.lifecycle.as_ref()?.pending(at).map(EventView::unnamed)
    }
}

#[cfg(test)]
mod tests;
