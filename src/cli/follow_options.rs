//! Options of a command that follows a run.

use super::interrupt::OnInterrupt;

/// Where a command waits for MCP tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tasks {
    /// Only at a terminal with a person.
    InTerminal,
    /// At a terminal and elsewhere.
    Everywhere,
}

impl Tasks {
    /// Reads the `--wait` flag.
    pub(super) fn waited_for(wait: bool) -> Self {
        if wait { Self::Everywhere } else { Self::InTerminal }
    }
}

/// How a command follows a run.
#[derive(Debug)]
pub(super) struct FollowOptions<'a> {
    /// Where it waits for MCP tasks.
    pub(super) tasks: Tasks,
    /// The effect of the first Ctrl-C.
    pub(super) on_interrupt: OnInterrupt,
    /// Where the messages are added that the person enters during the run. They are sent to it.
    pub(super) messages: Option<&'a mut Vec<String>>,
}

impl FollowOptions<'_> {
    pub(super) fn new(tasks: Tasks, on_interrupt: OnInterrupt) -> Self {
        Self { tasks, on_interrupt, messages: None }
    }
}

impl From<Tasks> for FollowOptions<'_> {
    fn from(tasks: Tasks) -> Self {
        Self::new(tasks, OnInterrupt::default())
    }
}
