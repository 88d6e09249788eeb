//! Priority tiers: of the calls in one reply, only those of the highest priority run.

use serde::{Deserialize, Serialize};

use crate::id::CallId;

/// The treatment of calls below the highest tier of a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TierMode {
    /// They are answered "deferred, ask again"; the reply stays as the model wrote it.
    #[default]
    Defer,
    /// They are dropped from the transcript (source 002's literal behaviour).
    Drop,
    /// They run after the higher tier, before the model is called again.
    Sequential,
}

/// The calls of a turn with the highest priority, and the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tier {
    /// The shared priority.
    pub priority: i32,
    /// The calls that run now, in the model's order.
    pub run: Vec<CallId>,
    /// The calls of lower priority, in the model's order.
    pub deferred: Vec<CallId>,
}

/// Splits calls into the highest tier and the others. `None` without calls.
pub fn top_tier(calls: &[(CallId, i32)]) -> Option<Tier> {
    let priority = calls.iter().map(|(_, priority)| *priority).max()?;
    let ids =
        |wanted: bool| calls.iter().filter(|(_, p)| (*p == priority) == wanted).map(|(id, _)| id.clone()).collect();
    Some(Tier { priority, run: ids(true), deferred: ids(false) })
}
