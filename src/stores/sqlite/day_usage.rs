//! Usage by day: counted in the transaction of an append, which refuses a new run beyond a quota.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;
use rusqlite::{Connection, Error};
use toolgate_core::chat::{Usage, Usd};
use toolgate_core::id::Tenant;
use toolgate_ports::{Append, DayUsage, DayUsages, QuotaExceeded, Quotas, counted_caller, quota_day};

use super::query::query;
use super::units::integer;

pub(super) const USED: &str = "SELECT caller, runs, tokens, cost FROM day_usage
    WHERE day = ?1 AND tenant = ?2 AND caller IN ('', ?3)";
pub(super) const RUN: &str = "SELECT started_by, usage FROM run WHERE id = ?1 AND usage IS NOT ?2";
const SET: &str = "INSERT INTO day_usage (day, tenant, caller, runs, tokens, cost) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT DO UPDATE SET runs = excluded.runs, tokens = excluded.tokens, cost = excluded.cost";
pub(super) const FORGET: &str = "DELETE FROM day_usage WHERE day < ?1";

/// How long the usage of a day is kept, in days.
const KEPT: i64 = 31;

/// The caller of the whole tenant's usage. No caller has this name.
const TENANT: &str = "";

/// The caller and the usage, as the row of a run has them.
type RunUsage = (Option<String>, Option<String>);
/// Caller, runs, tokens, cost.
pub(super) type UsageRow = (String, i64, i64, i64);

/// An append that is counted.
pub(super) struct CountedAppend {
    quotas: Arc<Quotas>,
    /// Of the last event, by which its day counts.
    at: Timestamp,
}

/// The usage of a day before an append, and what the append adds.
pub(super) struct AddedUsage {
    day: i64,
    caller: String,
    used: DayUsages,
    is_first_of_tenant: bool,
    added: DayUsage,
}

impl CountedAppend {
    /// `None` if there are no quotas, so that nothing is counted.
    pub(super) fn new(quotas: Arc<Quotas>, append: &Append) -> Option<Self> {
        let last = append.events.last().filter(|_| !quotas.is_empty())?;
        Some(Self { quotas, at: last.at })
    }

    /// What the append of a new run adds; the quota that forbids the run otherwise.
    pub(super) fn first(
        &self,
        append: &Append,
        db: &Connection,
    ) -> Result<Result<Option<AddedUsage>, QuotaExceeded>, Error> {
        let Some(caller) = counted_caller(&append.events) else { return Ok(Ok(None)) };
        let added = DayUsage::added(true, &Usage::default(), &append.row.usage);
        let found = self.found(&append.row.tenant, caller.to_owned(), added, db)?;
        match self.quotas.exceeded(&append.row.tenant, caller, &found.used, self.at) {
            Some(over) => Ok(Err(over)),
            None => Ok(Ok(Some(found))),
        }
    }

    /// What a later append adds. Before the row of the run changes.
    pub(super) fn later(
        &self,
        append: &Append,
        usage: Option<&String>,
        db: &Connection,
    ) -> Result<Option<AddedUsage>, Error> {
        let before: Option<RunUsage> = query(RUN).bind(append.run.as_str()).bind(usage).optional(db)?;
        let Some((Some(caller), before)) = before else { return Ok(None) };
        // A row that cannot be read was written by a newer version, which counted it.
        let before = before.map(|json| serde_json::from_str(&json)).transpose();
        let Ok(before) = before else { return Ok(None) };
        let added = DayUsage::added(false, &before.unwrap_or_default(), &append.row.usage);
        match added == DayUsage::default() {
            true => Ok(None),
            false => self.found(&append.row.tenant, caller, added, db).map(Some),
        }
    }

    fn found(&self, tenant: &Tenant, caller: String, added: DayUsage, db: &Connection) -> Result<AddedUsage, Error> {
        let day = number(quota_day(self.at));
        let rows: Vec<UsageRow> = query(USED).bind(day).bind(tenant.as_str()).bind(caller.as_str()).all(db)?;
        let is_first_of_tenant = rows.is_empty();
        Ok(AddedUsage { day, caller, used: usages(rows), is_first_of_tenant, added })
    }
}

impl AddedUsage {
    /// Adds it to the counters.
    pub(super) fn add(&self, tenant: &Tenant, db: &Connection) -> Result<(), Error> {
        let Self { day, caller, used, is_first_of_tenant, added } = self;
        for (caller, used) in [(caller.as_str(), &used.caller), (TENANT, &used.tenant)] {
            let DayUsage { runs, tokens, cost_usd } = used.plus(added);
            let set = query(SET).bind(*day).bind(tenant.as_str()).bind(caller);
            set.bind(integer(runs)).bind(integer(tokens)).bind(cost_usd.picodollars()).execute(db)?;
        }
        if *is_first_of_tenant {
            query(FORGET).bind(day - KEPT).execute(db)?;
        }
        Ok(())
    }
}

/// The usage of a caller and of its tenant, as stored.
pub(super) fn usages(rows: Vec<UsageRow>) -> DayUsages {
    let mut usages = DayUsages::default();
    for (caller, runs, tokens, cost) in rows {
        let count = |number: i64| u64::try_from(number).unwrap_or_default();
        let usage = DayUsage { runs: count(runs), tokens: count(tokens), cost_usd: Usd::from_picodollars(cost) };
        match caller.as_str() {
            TENANT => usages.tenant = usage,
            _ => usages.caller = usage,
        }
    }
    usages
}

/// Days since 1970-01-01.
pub(super) fn number(day: Date) -> i64 {
    day.duration_since(Date::constant(1970, 1, 1)).as_hours() / 24
}
