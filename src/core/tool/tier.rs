//! Tiers: of the calls in one reply, only those of the highest priority run.

use serde::{Deserialize, Serialize};

use crate::core::id::CallId;

/// What happens to the calls below the highest tier of a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TierMode {
    /// They are answered "deferred, ask again"; the reply stays as the model wrote it.
    #[default]
    Defer,
    /// They vanish from the transcript (source 002's literal behaviour).
    Elide,
    /// They run after the higher tier, before the model is asked again.
    Drain,
}

/// The calls of a turn that share the highest priority, and the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tier {
    /// The shared priority.
    pub priority: i32,
    /// The calls that run now, in the model's order.
    pub run: Vec<CallId>,
    /// The calls of lower priority, in the model's order.
    pub deferred: Vec<CallId>,
}

/// Splits calls into the highest tier and the rest. `None` when there are no calls.
pub fn top_tier(calls: &[(CallId, i32)]) -> Option<Tier> {
    let priority = calls.iter().map(|(_, priority)| *priority).max()?;
    let ids =
        |wanted: bool| calls.iter().filter(|(_, p)| (*p == priority) == wanted).map(|(id, _)| id.clone()).collect();
    Some(Tier { priority, run: ids(true), deferred: ids(false) })
}
