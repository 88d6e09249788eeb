//! The public lifecycle stream: what a viewer, an SSE client or a log reads while a run goes on.

mod call;
mod event;
mod projector;

pub use call::{CallRef, Owed, ToolRef};
pub use event::{Fact, LifecycleEvent};
pub use projector::Lifecycle;
pub(in crate::telemetry) use projector::error_word;

/// Whether events carry what was said: tool arguments, results, answers, and messages that may quote them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// They do not. For everything that leaves the machine.
    #[default]
    Omit,
    /// They do. For the person at the terminal.
    Include,
}
