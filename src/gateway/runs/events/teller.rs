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
    lifecycle: Lifecycle,
    content: Content,
    seen: Option<EventId>,
    /// The position of the fact that is told next.
    next: u64,
    has_ended: bool,
}

impl Teller {
    /// For somebody who has seen everything up to that event, or nothing.
    pub(super) fn new(run: RunId, content: Content, seen: Option<EventId>) -> Self {
        Self { lifecycle: Lifecycle::new(run, content), content, seen, next: 0, has_ended: false }
    }

    /// The position of the fact that is told next.
    pub(super) fn next(&self) -> u64 {
        self.next
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
        let events = self.lifecycle.observe(recorded);
        let count = events.len();
        let named =
            events.into_iter().enumerate().map(|(index, event)| (EventId::new(recorded.seq, index, count), event));
        let unseen = named.filter(|(id, _)| self.seen.is_none_or(|seen| id.is_after(seen)));
        unseen.map(|(id, event)| EventView::of(id, event)).collect()
    }

    /// A fragment, as far as its listener may read it: it has no id, and is never told again.
    pub(super) fn fragment(&self, delta: Delta) -> Option<EventView> {
        let delta = match (delta, self.content) {
            (delta, Content::Include) => delta,
            (Delta::Text { .. } | Delta::Reasoning { .. }, Content::Omit) => return None,
            (Delta::Progress { call, progress }, Content::Omit) => {
                Delta::Progress { call, progress: Progress { message: None, ..progress } }
            }
        };
        Some(EventView::unnamed(self.lifecycle.delta(&delta)))
    }

    /// That the run waits, if it does. It is no fact, so it has no id.
    pub(super) fn rest(&self, at: jiff::Timestamp) -> Option<EventView> {
        self.lifecycle.pending(at).map(EventView::unnamed)
    }
}

#[cfg(test)]
mod tests;
