//! Daily quotas: usage is counted with the appends, and a new run beyond a quota is refused.

use std::sync::Arc;

use futures::future::join_all;
use jiff::civil::Date;
use toolgate::core::chat::Usage;
use toolgate::core::id::Tenant;
use toolgate::core::run::{Event, Status};
use toolgate::ports::{
    Append, AppendError, DayUsage, DayUsages, Quota, QuotaOwner, QuotaUnit, Quotas, RunFilter, SessionFilter,
};

use super::Store;
use crate::stores::journals::{Appending, append, claiming, run};

/// The day of the facts of these journals.
const TODAY: Date = Date::constant(2027, 1, 15);

/// A quota of runs for each tenant and each caller.
fn of_runs(tenant: Option<u64>, caller: Option<u64>) -> Quotas {
    let quota =
        |runs: Option<u64>| runs.map(|_| ("*".to_owned(), Quota { runs, ..Quota::default() })).into_iter().collect();
    Quotas { tenants: quota(tenant), callers: quota(caller) }
}

/// The same append of a run that this caller started, with this many tokens so far.
fn counted(mut append: Append, caller: &str, tokens: u64) -> Append {
    if let Some(Event::Started(started)) = append.events.first_mut().map(|first| &mut first.event) {
        Arc::make_mut(started).by = Some(caller.to_owned());
    }
    append.row.usage =
        Usage { output_tokens: Some(tokens), cost_usd: Some("0.5".parse().unwrap()), ..Usage::default() };
    append
}

fn begin(number: usize, tenant: &str, caller: &str) -> Append {
    counted(append(run(number), 0, 1).of_tenant(tenant), caller, 0)
}

async fn used(store: &Arc<impl Store>, tenant: &str, caller: &str) -> DayUsages {
    store.used(&tenant.into(), caller, TODAY).await.unwrap()
}

fn usage(runs: u64, tokens: u64, cost: &str) -> DayUsage {
    DayUsage { runs, tokens, cost_usd: cost.parse().unwrap() }
}

pub(crate) async fn usage_is_counted_by_day_tenant_and_caller(store: Arc<impl Store>) {
    store.set_quotas(of_runs(Some(9), None));
    store.append(begin(1, "acme", "key:a")).await.unwrap();
    store.append(begin(2, "acme", "key:b")).await.unwrap();
    store.append(begin(3, "brim", "key:a")).await.unwrap();
    for (at, tokens) in [(1, 10), (2, 10), (3, 25)] {
        store.append(counted(append(run(1), at, 1).of_tenant("acme"), "", tokens)).await.unwrap();
    }
    let both = DayUsages { caller: usage(1, 25, "0.5"), tenant: usage(2, 25, "1") };
    assert_eq!(used(&store, "acme", "key:a").await, both);
    assert_eq!(used(&store, "acme", "key:b").await.caller, usage(1, 0, "0.5"));
    assert_eq!(used(&store, "brim", "key:a").await.tenant, usage(1, 0, "0.5"));
    assert_eq!(used(&store, "acme", "key:c").await.caller, DayUsage::default());
    let tomorrow = store.used(&"acme".into(), "key:a", TODAY.tomorrow().unwrap()).await.unwrap();
    assert_eq!(tomorrow, DayUsages::default());
}

pub(crate) async fn a_run_beyond_a_quota_is_refused_and_changes_nothing(store: Arc<impl Store>) {
    let tenant = Tenant::default();
    store.set_quotas(of_runs(Some(2), None));
    for number in [1, 2] {
        store.append(begin(number, tenant.as_str(), "key:a")).await.unwrap();
    }
    let refused = store.append(counted(claiming(run(3), "chat", 0), "key:b", 0)).await;
    let Err(AppendError::OverQuota(over)) = refused else { panic!("{refused:?}") };
    assert_eq!((over.owner, over.unit), (QuotaOwner::Tenant, QuotaUnit::Runs));
    assert_eq!(over.resets_at.to_string(), "2027-01-16T00:00:00Z");
    assert_eq!(store.list(&RunFilter::default()).await.unwrap().len(), 2);
    let sessions = SessionFilter { tenant: tenant.clone(), limit: 9, ..SessionFilter::default() };
    assert_eq!(store.sessions(&sessions).await.unwrap(), [], "it claimed no session");
    assert_eq!(used(&store, tenant.as_str(), "key:b").await.tenant.runs, 2);
    // A run without a caller is neither counted nor refused.
    store.append(append(run(4), 0, 1)).await.unwrap();
    // Runs that began continue.
    store.append(counted(append(run(1), 1, 1), "", 7)).await.unwrap();
    assert_eq!(used(&store, tenant.as_str(), "key:a").await.tenant, usage(2, 7, "1"));
    // A second attempt of an append is answered as one, and not by the quota.
    assert!(matches!(store.append(begin(1, tenant.as_str(), "key:a")).await, Err(AppendError::Conflict { length: 2 })));
}

pub(crate) async fn an_imported_run_is_neither_refused_nor_counted(store: Arc<impl Store>) {
    store.set_quotas(of_runs(Some(0), Some(0)));
    let import = Append { is_import: true, ..counted(append(run(1), 0, 2).of_tenant("acme"), "key:a", 9) };
    store.append(import).await.unwrap();
    assert_eq!(used(&store, "acme", "key:a").await, DayUsages::default());
    // What the run uses from now on counts.
    store.append(counted(append(run(1), 2, 1).of_tenant("acme"), "", 12)).await.unwrap();
    assert_eq!(used(&store, "acme", "key:a").await.tenant, usage(0, 3, "0"));
}

pub(crate) async fn a_quota_of_tokens_or_costs_forbids_the_next_run(store: Arc<impl Store>) {
    let callers = |quota| Quotas { callers: [("key:a".to_owned(), quota)].into(), ..Quotas::default() };
    let tokens = |tokens| Quota { tokens: Some(tokens), ..Quota::default() };
    let cost = |cost: &str| Quota { cost_usd: Some(cost.parse().unwrap()), ..Quota::default() };
    store.set_quotas(callers(tokens(10)));
    store.append(begin(1, "acme", "key:a")).await.unwrap();
    store.append(counted(append(run(1), 1, 1).of_tenant("acme"), "", 10)).await.unwrap();
    for (number, quota, unit) in [(2, tokens(10), QuotaUnit::Tokens), (2, cost("0.5"), QuotaUnit::CostUsd)] {
        store.set_quotas(callers(quota));
        let refused = store.append(begin(number, "acme", "key:a")).await;
        assert!(matches!(&refused, Err(AppendError::OverQuota(over)) if over.unit == unit), "{refused:?}");
    }
    store.append(begin(3, "acme", "key:b")).await.unwrap();
    store.append(begin(4, "brim", "key:a")).await.unwrap();
    for (number, quota) in [(5, tokens(11)), (6, cost("1.5"))] {
        store.set_quotas(callers(quota));
        store.append(begin(number, "acme", "key:a")).await.unwrap();
    }
}

pub(crate) async fn of_concurrent_runs_as_many_begin_as_a_quota_allows(store: Arc<impl Store>) {
    store.set_quotas(of_runs(None, Some(5)));
    let begun = join_all((0..20).map(|number| store.append(begin(number, "acme", "key:a")))).await;
    assert_eq!(begun.iter().filter(|begun| begun.is_ok()).count(), 5);
    assert!(begun.iter().all(|begun| matches!(begun, Ok(()) | Err(AppendError::OverQuota(_)))), "{begun:?}");
}

pub(crate) async fn a_deleted_run_gives_no_quota_back(store: Arc<impl Store>) {
    store.set_quotas(of_runs(Some(1), None));
    let done = counted(append(run(1), 0, 1).of_tenant("acme").leaving(Status::Completed), "key:a", 5);
    let now = done.row.updated_at;
    store.append(done).await.unwrap();
    store.purge(&run(1), 1, now).await.unwrap();
    assert_eq!(used(&store, "acme", "key:a").await.tenant, usage(1, 5, "0.5"));
    assert!(store.append(begin(2, "acme", "key:a")).await.is_err());
}

pub(crate) async fn without_quotas_nothing_is_counted(store: Arc<impl Store>) {
    store.append(begin(1, "acme", "key:a")).await.unwrap();
    assert_eq!(used(&store, "acme", "key:a").await, DayUsages::default());
    store.set_quotas(of_runs(Some(0), None));
    assert!(store.append(begin(2, "acme", "key:a")).await.is_err());
    // A run that began before is counted from here on.
    store.append(counted(append(run(1), 1, 1).of_tenant("acme"), "", 3)).await.unwrap();
    assert_eq!(used(&store, "acme", "key:a").await.tenant, usage(0, 3, "0"));
    store.set_quotas(Quotas::default());
    store.append(begin(3, "acme", "key:a")).await.unwrap();
}

pub(crate) async fn an_absurd_usage_is_counted_as_the_largest(store: Arc<impl Store>) {
    store.set_quotas(of_runs(Some(9), None));
    for number in [1, 2] {
        let mut absurd = counted(append(run(number), 0, 1).of_tenant("acme"), "key:a", u64::MAX);
        absurd.row.usage.input_tokens = Some(u64::MAX);
        absurd.row.usage.cost_usd = Some(toolgate::core::chat::Usd::from_picodollars(i64::MAX));
        store.append(absurd).await.unwrap();
    }
    let DayUsage { runs, tokens, cost_usd } = used(&store, "acme", "key:a").await.tenant;
    assert_eq!((runs, cost_usd.picodollars()), (2, i64::MAX));
    assert!(tokens >= i64::MAX as u64, "{tokens}");
}
