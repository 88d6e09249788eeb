//! Daily quotas: what the runs of a tenant, and those of one caller, may use in a UTC day, and what they used.
//!
//! A store counts in the commit that appends to a journal, and refuses the first append of a new run whose tenant or caller
//! has used up a quota: no two processes start more runs than a quota allows, and no crash separates usage from its count.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use toolgate_core::chat::{Usage, Usd};
use toolgate_core::id::Tenant;
use toolgate_core::run::{Event, JournalEntry};

use super::StoreError;

/// The most of each kind of usage in a day; `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// Runs that begin.
    pub runs: Option<u64>,
    /// Input and output tokens.
    pub tokens: Option<u64>,
    pub cost_usd: Option<Usd>,
}

/// The quotas of tenants and callers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    /// By tenant; `*` is for all others.
    pub tenants: BTreeMap<String, Quota>,
    /// By the caller's name (`key:ci`), in whichever tenant; `*` is for all others.
    pub callers: BTreeMap<String, Quota>,
}

/// What was used on a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DayUsage {
    /// Runs that began.
    pub runs: u64,
    /// Input and output tokens, as far as they are known.
    pub tokens: u64,
    /// The cost, as far as it is known.
    pub cost_usd: Usd,
}

/// Usage of a caller and of its whole tenant on a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DayUsages {
    pub caller: DayUsage,
    pub tenant: DayUsage,
}

/// Whose quota it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaOwner {
    Tenant,
    Caller,
}

/// The kind of usage that a quota limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaUnit {
    Runs,
    Tokens,
    CostUsd,
}

/// A quota that is used up, so that no run begins.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} used up the quota of {} in a UTC day ({used} of {limit}); the next day begins at {resets_at:.0}",
    owner.as_text(), unit
)]
pub struct QuotaExceeded {
    pub owner: QuotaOwner,
    pub unit: QuotaUnit,
    /// The most in a day, as text.
    pub limit: String,
    /// What was used, as text.
    pub used: String,
    /// When the next day begins.
    pub resets_at: Timestamp,
    /// The time until then.
    pub retry_after: Duration,
}

impl Quotas {
    /// For every tenant or caller without an entry of its own.
    pub const DEFAULT: &str = "*";

    /// Whether there is no quota at all.
    pub fn is_empty(&self) -> bool {
        self.tenants.is_empty() && self.callers.is_empty()
    }

    /// The quota of a tenant, if it has one.
    pub fn of_tenant(&self, tenant: &Tenant) -> Option<&Quota> {
        self.tenants.get(tenant.as_str()).or_else(|| self.tenants.get(Self::DEFAULT))
    }

    /// The quota of a caller, if it has one.
    pub fn of_caller(&self, caller: &str) -> Option<&Quota> {
        self.callers.get(caller).or_else(|| self.callers.get(Self::DEFAULT))
    }

    /// The first quota that forbids a new run at this time.
    pub fn exceeded(&self, tenant: &Tenant, caller: &str, used: &DayUsages, now: Timestamp) -> Option<QuotaExceeded> {
        let of_caller = self.of_caller(caller).and_then(|quota| quota.used_up(&used.caller));
        let of_tenant = || self.of_tenant(tenant).and_then(|quota| quota.used_up(&used.tenant));
        let (owner, (unit, limit, used)) = match of_caller {
            Some(used_up) => (QuotaOwner::Caller, used_up),
            None => (QuotaOwner::Tenant, of_tenant()?),
        };
        let resets_at = end_of_day(now);
        let retry_after = Duration::try_from(resets_at.duration_since(now)).unwrap_or_default();
        Some(QuotaExceeded { owner, unit, limit, used, resets_at, retry_after })
    }
}

impl Quota {
    /// The first limit that is reached, and what was used.
    fn used_up(&self, used: &DayUsage) -> Option<(QuotaUnit, String, String)> {
        let of_count = |unit, limit: Option<u64>, used: u64| {
            limit.filter(|limit| used >= *limit).map(|limit| (unit, limit.to_string(), used.to_string()))
        };
        of_count(QuotaUnit::Runs, self.runs, used.runs)
            .or_else(|| of_count(QuotaUnit::Tokens, self.tokens, used.tokens))
            .or_else(|| {
                let limit = self.cost_usd.filter(|limit| used.cost_usd >= *limit)?;
                Some((QuotaUnit::CostUsd, limit.to_string(), used.cost_usd.to_string()))
            })
    }
}

impl DayUsage {
    /// What an append adds: a run if it is the first one, and the usage since the append before.
    pub fn added(is_first: bool, before: &Usage, after: &Usage) -> Self {
        let added = after.since(before);
        Self {
            runs: u64::from(is_first),
            tokens: added.total_tokens().unwrap_or_default(),
            cost_usd: added.cost_usd.unwrap_or_default(),
        }
    }

    /// The sum.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            runs: self.runs.saturating_add(other.runs),
            tokens: self.tokens.saturating_add(other.tokens),
            cost_usd: self.cost_usd + other.cost_usd,
        }
    }
}

impl QuotaOwner {
    fn as_text(self) -> &'static str {
        match self {
            Self::Tenant => "the runs of this tenant",
            Self::Caller => "the runs of these credentials",
        }
    }
}

impl fmt::Display for QuotaUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Runs => "runs",
            Self::Tokens => "tokens",
            Self::CostUsd => "US dollars",
        })
    }
}

/// The UTC day of a time.
pub fn quota_day(at: Timestamp) -> Date {
    at.to_zoned(TimeZone::UTC).date()
}

/// The beginning of the next UTC day.
pub fn end_of_day(at: Timestamp) -> Timestamp {
    let next = quota_day(at).checked_add(1.day()).and_then(|day| day.to_zoned(TimeZone::UTC));
    next.map_or(at, |next| next.timestamp())
}

/// The caller who started a run, by the first event of its journal. Runs without one are not counted.
pub fn counted_caller(journal: &[JournalEntry]) -> Option<&str> {
    let Event::Started(started) = &journal.first()?.event else { return None };
    started.by.as_deref().filter(|by| !by.is_empty())
}

/// The counters of usage by day. A store counts the runs that have a caller: those that start over an API.
#[async_trait]
pub trait UsageCounters: Send + Sync {
    /// Sets the quotas. Without any, a store neither counts nor refuses; it counts what is appended while there are some.
    fn set_quotas(&self, quotas: Quotas);

    /// The quotas.
    fn quotas(&self) -> Arc<Quotas>;

    /// What a caller and its tenant used on a day, as far as it was counted.
    async fn used(&self, tenant: &Tenant, caller: &str, day: Date) -> Result<DayUsages, StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn quotas() -> Quotas {
        let quota = |runs| Quota { runs: Some(runs), ..Quota::default() };
        Quotas {
            tenants: [("*".to_owned(), quota(10)), ("acme".to_owned(), quota(2))].into(),
            callers: [("key:ci".to_owned(), Quota { cost_usd: Some("0.5".parse().unwrap()), ..Quota::default() })]
                .into(),
        }
    }

    fn exceeded(tenant: &str, caller: &str, runs: u64, cost: &str) -> Option<(QuotaOwner, QuotaUnit)> {
        let usage = DayUsage { runs, tokens: 9, cost_usd: cost.parse().unwrap() };
        let used = DayUsages { caller: usage, tenant: usage };
        let over = quotas().exceeded(&tenant.into(), caller, &used, at("2026-11-29T16:00:00Z"))?;
        Some((over.owner, over.unit))
    }

    #[test]
    fn a_named_entry_replaces_the_default() {
        assert_eq!(exceeded("acme", "key:app", 1, "9"), None);
        assert_eq!(exceeded("acme", "key:app", 2, "9"), Some((QuotaOwner::Tenant, QuotaUnit::Runs)));
        assert_eq!(exceeded("brim", "key:app", 9, "9"), None);
        assert_eq!(exceeded("brim", "key:app", 10, "9"), Some((QuotaOwner::Tenant, QuotaUnit::Runs)));
        assert_eq!(exceeded("brim", "key:ci", 0, "0.499999"), None);
        assert_eq!(exceeded("brim", "key:ci", 10, "0.5"), Some((QuotaOwner::Caller, QuotaUnit::CostUsd)));
    }

    #[test]
    fn a_day_ends_at_midnight_in_utc() {
        let used = DayUsages { tenant: DayUsage { runs: 2, ..DayUsage::default() }, ..DayUsages::default() };
        let over = quotas().exceeded(&"acme".into(), "ann", &used, at("2026-12-31T23:59:58.5Z")).unwrap();
        assert_eq!((over.resets_at, over.retry_after), (at("2027-01-01T00:00:00Z"), Duration::from_millis(1_500)));
        assert_eq!(
            over.to_string(),
            "the runs of this tenant used up the quota of runs in a UTC day (2 of 2); the next day begins at \
             2027-01-01T00:00:00Z"
        );
        assert_eq!(end_of_day(at("2027-01-01T00:00:00Z")), at("2027-01-02T00:00:00Z"));
        assert_eq!(quota_day(at("2027-01-01T00:00:00Z")).to_string(), "2027-01-01");
    }

    #[test]
    fn an_append_adds_what_was_used_since_the_one_before() {
        let usage = |input, output, cost: &str| Usage {
            input_tokens: Some(input),
            output_tokens: output,
            cost_usd: Some(cost.parse().unwrap()),
            ..Usage::default()
        };
        let first = DayUsage::added(true, &Usage::default(), &Usage::default());
        assert_eq!(first, DayUsage { runs: 1, ..DayUsage::default() });
        let added = DayUsage::added(false, &usage(10, None, "0.25"), &usage(15, Some(2), "0.75"));
        assert_eq!(added, DayUsage { runs: 0, tokens: 7, cost_usd: "0.5".parse().unwrap() });
        let restarted = DayUsage::added(false, &usage(10, None, "1"), &usage(5, None, "0.5"));
        assert_eq!(restarted, DayUsage::default());
    }
}
