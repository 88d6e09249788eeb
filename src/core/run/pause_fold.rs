//! Effects of a pause on a run.
//!
//! A pause is recorded beside the driver, like a cancellation. It interrupts no step that is in flight: the run is
//! pending once that step has settled. While a run is paused, no model and no tool is called, whichever process
//! executes it. Answers and messages are accepted, and deadlines continue.

use super::pause::{Pause, Pauses};
use super::state::Phase;
use super::turn::Call;
use super::{Channel, Event, InvalidEvent, ResumeError, Run};
use crate::tool::result::shortened;

impl Run {
    /// The pause in force.
    pub fn pause(&self) -> Option<&Pause> {
        self.pauses.current.as_ref()
    }

    pub(super) fn admit_pause(&self) -> Result<(), InvalidEvent> {
        match self.pause() {
            None => Ok(()),
            Some(_) => Err(InvalidEvent::Contradiction { event: "execution.paused", why: "the run is paused" }),
        }
    }

    pub(super) fn admit_unpause(&self) -> Result<(), InvalidEvent> {
        match self.pause() {
            Some(_) => Ok(()),
            None => Err(InvalidEvent::Contradiction { event: "execution.unpaused", why: "the run is not paused" }),
        }
    }

    /// Whether the event begins a step that the pause prevents.
    pub(super) fn is_prevented_by_pause(&self, event: &Event) -> bool {
        // Refused by the fold, so that the append of a driver that has not heard of the pause conflicts (decision
        // 0040).
        self.pause().is_some() && event.is_intent()
    }

    pub(super) fn paused(&mut self, by: &str, via: Channel, reason: Option<&String>) {
        let (event, since) = (self.length, self.clock);
        self.pauses.current = Some(Pause { by: by.to_owned(), via, reason: reason.cloned(), event, since });
    }

    pub(super) fn unpaused(&mut self) {
        self.pauses.current = None;
        self.pauses.has_ended = true;
    }

    /// Removes the pause of a source: it is no pause of its fork.
    pub(super) fn begin_unpaused(&mut self) {
        self.pauses = Pauses::default();
    }

    /// Notes the position of an intent, before the event is counted.
    pub(super) fn note_intent(&mut self, event: &Event) {
        if event.is_intent() {
            self.pauses.intent = self.length;
        }
    }

    /// Whether a paused run has to wait for a step that the current execution began. Without a pause, a run with such
    /// a step never waits.
    pub(super) fn is_pause_delayed(&self) -> bool {
        let is_begun = matches!(self.phase, Phase::Asking(_) | Phase::Compacting(_))
            || self.phase.calls().iter().any(Call::is_in_doubt);
        self.pause().is_some() && is_begun && self.pauses.intent > self.execution.0
    }

    /// The event of a pause. Pausing a paused run changes nothing.
    pub(super) fn accept_pause(
        &self,
        by: &str,
        via: Channel,
        reason: Option<&String>,
        expected_version: Option<u64>,
    ) -> Result<Vec<Event>, Vec<ResumeError>> {
        if self.ending().is_some() {
            return Err(vec![self.version_conflict(expected_version).unwrap_or_else(|| self.over())]);
        }
        if self.pause().is_some() {
            return Ok(Vec::new());
        }
        if let Some(stale) = self.version_conflict(expected_version) {
            return Err(vec![stale]);
        }
        // A long name or reason must not prevent a pause.
        let most = self.started.spec.limits.result_bytes();
        let reason = reason.map(|reason| shortened(reason, most));
        Ok(vec![Event::Paused { by: shortened(by, most), via, reason }])
    }

    /// Whether a resume that continues the run ends a pause, repeats the end of one, or has no pause to end.
    pub(super) fn admits_unpause(&self) -> Result<bool, ResumeError> {
        match self.pause() {
            Some(_) if self.ending().is_some() => Err(self.over()),
            Some(_) => Ok(true),
            None if self.pauses.has_ended => Ok(false),
            None if self.ending().is_some() => Err(self.over()),
            None => Err(ResumeError::NotPaused),
        }
    }
}

impl Event {
    /// Whether the event is an intent: the step that it begins leaves the process.
    fn is_intent(&self) -> bool {
        matches!(self, Self::ModelCalled { .. } | Self::CompactionStarted { .. } | Self::CallsStarted { .. })
    }
}
