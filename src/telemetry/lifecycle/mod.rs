//! Public lifecycle stream: the events that a viewer, an SSE client or a log reads while a run is active.

mod call;
mod event;
mod projector;

pub use call::{CallRef, Owed, ToolRef};
pub use event::{LifecycleEvent, LifecycleKind};
pub use projector::Lifecycle;
pub(in crate::telemetry) use projector::error_word;

/// Whether events carry content: tool arguments, results, answers, and messages that may quote them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// Without content. For every event that leaves the machine.
    #[default]
    Omit,
    /// With content. For the user at the terminal.
    Include,
}
