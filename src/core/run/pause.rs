//! Pause: a run stops between two steps until it is continued. `pause_fold` has its effects on a run.

use jiff::Timestamp;

use super::{Channel, TighterLimits};

/// The pause of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The person or program that paused the run.
    pub by: String,
    pub via: Channel,
    pub reason: Option<String>,
    /// The position of the event.
    pub event: u64,
    /// When the run was paused, if the time of the events is known.
    pub since: Option<Timestamp>,
}

/// The end of a pause, as part of a resume.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Unpause {
    /// The person or program that continues the run.
    pub by: String,
    /// The channel they use.
    pub via: Channel,
    /// Other limits from now on. They may be higher than the agent's.
    pub limits: TighterLimits,
}

/// The pauses of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Pauses {
    /// The pause in force.
    pub(super) current: Option<Pause>,
    /// Whether an earlier pause ended.
    pub(super) has_ended: bool,
    /// The position of the latest intent: a model call or tool calls.
    pub(super) intent: u64,
}
