//! Invalid events: the reasons why an event cannot be the next one of a journal.

use crate::id::CallId;

/// An event that the fold refuses. A refused event changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEvent {
    /// A journal begins with `execution.started`, and has only one.
    #[error("`{event}` cannot be event {seq}: a journal begins with `execution.started`, once")]
    NotTheBeginning {
        /// The event.
        event: &'static str,
        /// Its position.
        seq: u64,
    },
    /// Nothing follows the ending.
    #[error("`{event}` cannot follow the ending of the run")]
    AfterTheEnding {
        /// The event.
        event: &'static str,
    },
    /// The event does not match what the run is doing.
    #[error("`{event}` cannot happen while the run is {phase}")]
    OutOfPlace {
        /// The event.
        event: &'static str,
        /// The phase of the run.
        phase: &'static str,
    },
    /// The event names a call that the open turn does not have.
    #[error("`{event}` names call `{call}`, which is not a call of this turn")]
    NoSuchCall {
        /// The event.
        event: &'static str,
        /// The call.
        call: CallId,
    },
    /// The event does not match the state of the call it names.
    #[error("`{event}` cannot happen to call `{call}`, which is {state}")]
    WrongCallState {
        /// The event.
        event: &'static str,
        /// The call.
        call: CallId,
        /// The state of the call.
        state: &'static str,
    },
    /// The event contradicts the journal before it.
    #[error("`{event}` contradicts the journal: {why}")]
    Contradiction {
        /// The event.
        event: &'static str,
        /// The contradiction.
        why: &'static str,
    },
}
