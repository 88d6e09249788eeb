//! Retention rule: how long ended runs are kept, by tenant and status.

use jiff::SignedDuration;
use toolgate_core::id::Tenant;
use toolgate_core::run::Status;
use toolgate_ports::RunRow;

/// How long ended runs are kept. The first rule that concerns a run counts; a run that none concerns is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionRule {
    /// The tenants whose runs it concerns; all tenants if there are none.
    pub tenants: Vec<Tenant>,
    /// The statuses of the runs that it concerns; all statuses of ended runs if there are none.
    pub statuses: Vec<Status>,
    /// The time since the last activity of the run's session.
    pub keep: SignedDuration,
}

impl RetentionRule {
    /// Whether it concerns a run.
    pub(crate) fn concerns(&self, row: &RunRow) -> bool {
        (self.tenants.is_empty() || self.tenants.contains(&row.tenant))
            && (self.statuses.is_empty() || self.statuses.contains(&row.status))
    }
}
