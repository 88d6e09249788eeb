//! Public lifecycle stream: the events that a viewer, an SSE client or a log reads while a run is active.
//!
//! [`Lifecycle`] projects them from the journal. Sinks in the terminal, the gateway and telemetry only render them.

mod call;
mod delta;
mod event;
mod kind;
mod projector;
mod wire_forms;

use crate::error::Failure;

pub use call::{CallEnd, CallRef, PendingRef, UndoRef};
pub use delta::{Delta, FragmentPosition, FragmentSource, ModelAttempt};
pub use event::LifecycleEvent;
pub use kind::LifecycleKind;
pub use projector::Lifecycle;
pub use wire_forms::{IncompleteDetails, limits, optional_failure, optional_output, usage, warnings};

/// Whether events carry content: tool arguments, results, answers, and messages that may quote them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// Without content. For every event that leaves the machine.
    #[default]
    Omit,
    /// With content. For the user at the terminal.
    Include,
}

impl Content {
    /// The failure; without content, also without what it quotes of a malformed reply.
    fn failure(self, failure: &Failure) -> Failure {
        match self {
            Self::Include => failure.clone(),
            Self::Omit => Failure { details: None, ..failure.clone() },
        }
    }
}
