//! Usage by day in memory.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::civil::Date;
use toolgate_core::chat::Usage;
use toolgate_core::id::Tenant;
use toolgate_ports::{
    Append, DayUsage, DayUsages, QuotaExceeded, Quotas, StoreError, UsageCounters, counted_caller, quota_day,
};

use super::MemoryStore;
use super::contents::Contents;

/// The usage that an append adds.
pub(super) struct AddedUsage {
    day: Date,
    tenant: Tenant,
    caller: String,
    added: DayUsage,
}

impl Contents {
    /// What an append adds, if there are quotas; the quota that forbids a new run otherwise.
    pub(super) fn added_usage(&self, append: &Append) -> Result<Option<AddedUsage>, QuotaExceeded> {
        let known = self.runs.get(&append.run);
        let is_counted = !self.quotas.is_empty() && !append.is_import;
        let Some(last) = append.events.last().filter(|_| is_counted) else { return Ok(None) };
        let journal = known.map_or(&append.events, |known| &known.journal);
        let Some(caller) = counted_caller(journal).map(str::to_owned) else { return Ok(None) };
        let before = known.map_or(Usage::default(), |known| known.row.usage);
        let (day, tenant, is_first) = (quota_day(last.at), append.row.tenant.clone(), known.is_none());
        let used = self.used_on(&tenant, &caller, day);
        match self.quotas.exceeded(&tenant, &caller, &used, last.at).filter(|_| is_first) {
            Some(over) => Err(over),
            None => {
                let added = DayUsage::added(is_first, &before, &append.row.usage);
                Ok(Some(AddedUsage { day, tenant, caller, added }))
            }
        }
    }

    pub(super) fn add_usage(&mut self, AddedUsage { day, tenant, caller, added }: AddedUsage) {
        for caller in [Some(caller), None] {
            let used = self.day_usage.entry((day, tenant.clone(), caller)).or_default();
            *used = used.plus(&added);
        }
    }

    fn used_on(&self, tenant: &Tenant, caller: &str, day: Date) -> DayUsages {
        let of = |caller: Option<&str>| {
            let key = (day, tenant.clone(), caller.map(str::to_owned));
            self.day_usage.get(&key).copied().unwrap_or_default()
        };
        DayUsages { caller: of(Some(caller)), tenant: of(None) }
    }
}

#[async_trait]
impl UsageCounters for MemoryStore {
    fn set_quotas(&self, quotas: Quotas) {
        self.contents().quotas = Arc::new(quotas);
    }

    fn quotas(&self) -> Arc<Quotas> {
        self.contents().quotas.clone()
    }

    async fn used(&self, tenant: &Tenant, caller: &str, day: Date) -> Result<DayUsages, StoreError> {
        Ok(self.contents().used_on(tenant, caller, day))
    }
}
