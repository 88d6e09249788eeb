//! Attempts at the model call of a turn.

use std::collections::BTreeMap;

use super::ToolAccess;
use crate::id::ModelName;

/// The attempts at the model call of one turn.
#[derive(Clone, Debug)]
pub(super) struct Attempts {
    /// Whether the model may call tools.
    pub(super) tool_access: ToolAccess,
    /// The number of attempts so far, at any model.
    pub(super) count: u32,
    /// The model of the latest attempt.
    pub(super) model: ModelName,
    /// The position of this execution's first attempt at that model.
    pub(super) first: u64,
    /// The position of the latest attempt.
    pub(super) latest: u64,
    /// The number of consecutive attempts so far whose outcome is unknown.
    pub(super) unanswered: u32,
    /// Whether a failed attempt used tokens or money.
    pub(super) was_charged: bool,
    pub(super) tried: BTreeMap<ModelName, ModelAttempts>,
}

/// The attempts at one model in this turn.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ModelAttempts {
    pub(super) attempts: u32,
    /// Whether no further attempt is possible.
    pub(super) is_exhausted: bool,
}
