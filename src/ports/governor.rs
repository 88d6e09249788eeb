//! Governors: decide before each model call whether it is made.

use async_trait::async_trait;
use toolgate_core::id::{ModelName, RunId, SessionId, Tenant};
use toolgate_core::run::{Budget, CallEstimate};

/// A model call that is about to be made.
#[derive(Clone, Copy, Debug)]
pub struct PlannedCall<'a> {
    pub run: &'a RunId,
    pub tenant: &'a Tenant,
    pub session: &'a SessionId,
    pub model: &'a ModelName,
    /// The number of the attempt at this turn, from 1.
    pub attempt: u32,
    /// The usage of the run so far, and its limits.
    pub budget: &'a Budget,
    /// The worst case of the call.
    pub estimate: CallEstimate,
}

/// Decides whether a model call is made, for example by a budget of several runs. The verdict is journaled: a refused call
/// is a hard limit of its run, with the effect that the agent's `on_exceed` names. It is not asked about the last answer
/// at a limit.
#[async_trait]
pub trait Governor: Send + Sync {
    /// Whether the call is made. The error is the reason to refuse it, for people. A governor that gives no verdict within
    /// seconds refuses the call.
    async fn admit(&self, call: PlannedCall<'_>) -> Result<(), String>;
}
