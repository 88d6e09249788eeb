//! Invalid events: the reasons why an event cannot be the next one of a journal.

use crate::id::CallId;

/// An event that the fold refuses. A refused event changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEvent {
    /// A journal begins with `execution.started`, and has only one.
    #[error("`{event}` cannot be event {seq}: a journal begins with `execution.started`, once")]
    NotTheBeginning { event: &'static str, seq: u64 },
    /// Nothing follows the ending.
    #[error("`{event}` cannot follow the ending of the run")]
    AfterTheEnding { event: &'static str },
    /// The event does not match what the run is doing.
    #[error("`{event}` cannot happen while the run is {phase}")]
    OutOfPlace { event: &'static str, phase: &'static str },
    /// The event names a call that the open turn does not have.
    #[error("`{event}` names call `{call}`, which is not a call of this turn")]
    NoSuchCall { event: &'static str, call: CallId },
    /// The event does not match the state of the call it names.
    #[error("`{event}` cannot happen to call `{call}`, which is {state}")]
    WrongCallState { event: &'static str, call: CallId, state: &'static str },
    /// The event contradicts the journal before it.
    #[error("`{event}` contradicts the journal: {why}")]
    Contradiction { event: &'static str, why: &'static str },
}
