//! Counters of rules: what the rules with a limit have allowed in the present window.

use async_trait::async_trait;
use toolgate_core::id::Tenant;
use toolgate_core::policy::LimitAmount;

use super::StoreError;

/// The counter of a rule in one window.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleCounter {
    pub tenant: Tenant,
    /// The name of the policy.
    pub policy: String,
    /// The id of the rule.
    pub rule: String,
    /// The window, such as `2026-11-28` (`LimitWindow::name_at`).
    pub window: String,
}

/// A use of the limit of a rule by a call.
#[derive(Clone, Debug)]
pub struct CountedUse {
    pub counter: RuleCounter,
    /// The identity of the use: it counts once, however often it is added, with the largest amount.
    pub id: String,
    pub amount: LimitAmount,
    /// The most that the uses of the counter may sum to.
    pub max: LimitAmount,
    /// The store may forget counters of the rule whose windows come before this one.
    pub expired: String,
}

/// The answer to a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountAnswer {
    /// The use is counted, durably.
    Counted,
    /// The use would exceed the maximum and is not counted. Contains the sum of the others.
    Exceeds(LimitAmount),
}

/// The store of counters. A loss would allow more than a rule does, so a counter is as durable as a journal.
#[async_trait]
pub trait RuleCounters: Send + Sync {
    /// Counts a use, unless the sum of the counter would exceed the maximum: one commit, so that no two processes count
    /// beyond it.
    async fn count(&self, used: CountedUse) -> Result<CountAnswer, StoreError>;
}
