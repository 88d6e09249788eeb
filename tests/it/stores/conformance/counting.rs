//! Counters of rules.

use std::sync::Arc;

use futures::future::join_all;

use toolgate::core::policy::LimitAmount;
use toolgate::ports::{CountAnswer, CountedUse, RuleCounter};

use super::Store;

fn units(units: u64) -> LimitAmount {
    LimitAmount::from_millionths(units * 1_000_000)
}

fn used(id: &str, amount: u64, max: u64) -> CountedUse {
    let counter = RuleCounter {
        tenant: toolgate::core::id::Tenant::default(),
        policy: "desk".into(),
        rule: "small-refunds".into(),
        window: "2026-11-28".into(),
    };
    let expired = "2026-11-26".into();
    CountedUse { counter, id: id.into(), amount: units(amount), max: units(max), expired }
}

pub(crate) async fn uses_are_counted_up_to_the_maximum(store: Arc<impl Store>) {
    assert_eq!(store.count(used("a", 60, 100)).await.unwrap(), CountAnswer::Counted);
    assert_eq!(store.count(used("b", 41, 100)).await.unwrap(), CountAnswer::Exceeds(units(60)));
    assert_eq!(store.count(used("c", 40, 100)).await.unwrap(), CountAnswer::Counted);
    assert_eq!(store.count(used("d", 1, 100)).await.unwrap(), CountAnswer::Exceeds(units(100)));
    assert_eq!(store.count(used("e", 0, 100)).await.unwrap(), CountAnswer::Counted);
    // The maximum is that of the rule now.
    assert_eq!(store.count(used("d", 1, 101)).await.unwrap(), CountAnswer::Counted);
}

pub(crate) async fn a_use_counts_once_with_its_largest_amount(store: Arc<impl Store>) {
    for amount in [10, 10, 30, 20] {
        assert_eq!(store.count(used("a", amount, 100)).await.unwrap(), CountAnswer::Counted);
    }
    assert_eq!(store.count(used("b", 71, 100)).await.unwrap(), CountAnswer::Exceeds(units(30)));
    assert_eq!(store.count(used("a", 101, 100)).await.unwrap(), CountAnswer::Exceeds(units(0)));
    assert_eq!(store.count(used("b", 70, 100)).await.unwrap(), CountAnswer::Counted);
}

pub(crate) async fn each_tenant_policy_rule_and_window_has_its_counter(store: Arc<impl Store>) {
    let full = used("a", 100, 100);
    let other = |change: &dyn Fn(&mut RuleCounter)| {
        let mut used = full.clone();
        change(&mut used.counter);
        used
    };
    let all = [
        full.clone(),
        other(&|counter| counter.tenant = "acme".into()),
        other(&|counter| counter.policy = "other".into()),
        other(&|counter| counter.rule = "other".into()),
        other(&|counter| counter.window = "2026-11-29".into()),
    ];
    for used in &all {
        assert_eq!(store.count(used.clone()).await.unwrap(), CountAnswer::Counted, "{used:?}");
    }
    for used in all {
        let second = CountedUse { id: "b".into(), ..used };
        assert_eq!(store.count(second).await.unwrap(), CountAnswer::Exceeds(units(100)));
    }
}

pub(crate) async fn a_counter_is_kept_until_its_window_expired(store: Arc<impl Store>) {
    store.count(used("a", 100, 100)).await.unwrap();
    let in_window = |window: &str, expired: &str, id: &str| {
        let mut used = used(id, 100, 100);
        used.counter.window = window.into();
        CountedUse { expired: expired.into(), ..used }
    };
    store.count(in_window("2026-11-30", "2026-11-28", "b")).await.unwrap();
    assert_eq!(store.count(used("c", 1, 100)).await.unwrap(), CountAnswer::Exceeds(units(100)));
    store.count(in_window("2026-12-01", "2026-11-29", "d")).await.unwrap();
    assert_eq!(store.count(used("c", 1, 100)).await.unwrap(), CountAnswer::Counted, "it is forgotten");
    assert_eq!(
        store.count(in_window("2026-11-30", "2026-11-29", "e")).await.unwrap(),
        CountAnswer::Exceeds(units(100))
    );
}

pub(crate) async fn concurrent_uses_never_exceed_the_maximum(store: Arc<impl Store>) {
    let uses = (0..40).map(|number| {
        let store = store.clone();
        tokio::spawn(async move { store.count(used(&format!("use_{number}"), 7, 100)).await.unwrap() })
    });
    let answers = join_all(uses.collect::<Vec<_>>()).await;
    let counted = answers.into_iter().filter(|answer| *answer.as_ref().unwrap() == CountAnswer::Counted).count();
    assert_eq!(counted, 14);
}
