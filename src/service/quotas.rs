//! Daily quotas of a caller: what it and its tenant may use, and what they used today.

use jiff::Timestamp;
use toolgate_ports::{DayUsage, Quota, end_of_day, quota_day};

use super::authorize::Caller;
use super::error::ServiceError;
use super::service::Service;

/// The quotas that apply to a caller today, and the usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaState {
    /// When the next UTC day begins.
    pub resets_at: Timestamp,
    /// The quota of the caller, if it has one, and what its runs used.
    pub caller: Option<(Quota, DayUsage)>,
    /// The quota of the tenant, if it has one, and what the runs of all its callers used.
    pub tenant: Option<(Quota, DayUsage)>,
}

impl Service {
    /// The quotas of a caller; `None` if there are none for it.
    pub async fn quotas_of(&self, caller: &Caller) -> Result<Option<QuotaState>, ServiceError> {
        let Some(counters) = self.usage_counters() else { return Ok(None) };
        let quotas = counters.quotas();
        let (own, of_tenant) = (quotas.of_caller(&caller.name).copied(), quotas.of_tenant(&caller.tenant).copied());
        if own.is_none() && of_tenant.is_none() {
            return Ok(None);
        }
        let now = self.runner().now();
        let used = counters.used(&caller.tenant, &caller.name, quota_day(now)).await?;
        Ok(Some(QuotaState {
            resets_at: end_of_day(now),
            caller: own.map(|quota| (quota, used.caller)),
            tenant: of_tenant.map(|quota| (quota, used.tenant)),
        }))
    }
}
