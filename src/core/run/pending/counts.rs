//! Pending counts: the index entry of a suspended run.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::PendingItem;

/// Pending counts of a suspended run: enough to count and sort runs without reading their journals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingCounts {
    /// Calls that require approval.
    pub approvals: u32,
    /// Results that the caller has to return.
    #[serde(default)]
    pub results: u32,
    /// Questions to a person: the model's, and those of servers. A pause counts here too.
    #[serde(default)]
    pub answers: u32,
    /// Calls that run as tasks at their servers.
    #[serde(default)]
    pub tasks: u32,
    /// When the oldest of them began to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<Timestamp>,
    /// The earliest deadline: of a pending item of any kind, or of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
}

impl PendingCounts {
    /// Whether nothing is pending and nothing expires.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Counts these items.
    pub fn from_items(items: &[PendingItem]) -> Self {
        let due_at = items.iter().filter_map(PendingItem::expires_at).min();
        let mut counts = Self { due_at, ..Self::default() };
        items.iter().for_each(|item| item.definition().count(&mut counts));
        counts
    }

    /// Whether an item may wait for a person. A row without any count is older than the counts.
    pub fn may_wait_for_people(&self) -> bool {
        let waits_for_programs = self.results > 0 || self.tasks > 0;
        self.approvals > 0 || self.answers > 0 || !waits_for_programs
    }
}
