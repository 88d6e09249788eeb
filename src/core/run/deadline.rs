//! Deadline of an answer from outside.

use std::time::Duration;

use jiff::Timestamp;

/// The deadline of an answer from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deadline {
    /// The position of the event that asks for it.
    pub event: u64,
    /// When the run began to wait for it, if it waits and the time of the events is known.
    pub since: Option<Timestamp>,
    /// The number of seconds there are for it.
    pub answer_timeout_s: Option<u64>,
    pub extended: Option<Timestamp>,
}

impl Deadline {
    /// The deadline of an answer that this event asks for.
    pub(super) fn new(event: u64, answer_timeout_s: Option<u64>) -> Self {
        Self { event, since: None, answer_timeout_s, extended: None }
    }

    /// When it expires; `None` as long as its time has not begun, or if it may take as long as the run lives. An
    /// extension never shortens the time.
    pub fn until(&self) -> Option<Timestamp> {
        let ends = self.since?.checked_add(Duration::from_secs(self.answer_timeout_s?)).ok()?;
        Some(self.extended.map_or(ends, |extended| extended.max(ends)))
    }
}
