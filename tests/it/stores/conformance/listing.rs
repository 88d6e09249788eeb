//! Index rows: newest first, filtered, paged.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, json};
use toolgate::core::run::{PendingCounts, RunResult, Status, TriggerKind};
use toolgate::ports::{ListOrder, MetadataValue, PendingKind, RunFilter, RunRow};

use super::Store;
use crate::stores::journals::{Appending, append, run};

fn numbers(rows: &[RunRow]) -> Vec<usize> {
    rows.iter().map(|row| row.id.as_str().trim_start_matches("run_").parse().unwrap()).collect()
}

pub(crate) async fn a_listing_is_newest_first_and_pages<S: Store>(store: Arc<S>) {
    assert_eq!(store.list(&RunFilter::default()).await.unwrap(), []);
    for number in (0..120).rev() {
        store.append(append(run(number), 0, 1)).await.unwrap();
    }
    let default = store.list(&RunFilter::default()).await.unwrap();
    assert_eq!(numbers(&default), (20..120).rev().collect::<Vec<_>>());

    let mut seen = Vec::new();
    let mut page = RunFilter { limit: 50, ..RunFilter::default() };
    loop {
        let rows = store.list(&page).await.unwrap();
        let Some(last) = rows.last() else { break };
        page.before = Some(last.id.clone());
        seen.push(rows.len());
    }
    assert_eq!(seen, [50, 50, 20]);
    let all = store.list(&RunFilter { limit: usize::MAX, ..RunFilter::default() }).await.unwrap();
    assert_eq!(numbers(&all), (0..120).rev().collect::<Vec<_>>());
}

pub(crate) async fn a_listing_filters_by_everything_at_once<S: Store>(store: Arc<S>) {
    for (number, status) in Status::ALL.into_iter().cycle().enumerate().take(70) {
        let mut new = append(run(number), 0, 1).leaving(status);
        new.row.agent = ["clerk", "cook"][number % 2].into();
        new.row.session = format!("session_{}", number % 3).into();
        new.row.tenant = ["acme", "brim", "corp", "dune"][number % 4].into();
        store.append(new).await.unwrap();
    }
    for status in Status::ALL.map(Some).into_iter().chain([None]) {
        for agent in [Some("clerk"), Some("cook"), Some("unknown"), None] {
            for (session, tenant) in
                [(Some("session_0"), None), (Some("session_2"), Some("acme")), (None, Some("dune"))]
            {
                for before in [Some(run(35)), None] {
                    let passes = |number: &usize| {
                        tenant.is_none_or(|tenant| ["acme", "brim", "corp", "dune"][number % 4] == tenant)
                            && status.is_none_or(|status| Status::ALL[number % 7] == status)
                            && agent.is_none_or(|agent| ["clerk", "cook"][number % 2] == agent)
                            && session.is_none_or(|session| format!("session_{}", number % 3) == session)
                            && (before.is_none() || *number < 35)
                    };
                    let filter = RunFilter {
                        statuses: status.into_iter().collect(),
                        agent: agent.map(Into::into),
                        session: session.map(Into::into),
                        tenant: tenant.map(Into::into),
                        before: before.clone(),
                        ..RunFilter::default()
                    };
                    let rows = store.list(&filter).await.unwrap();
                    assert_eq!(numbers(&rows), (0..70).rev().filter(passes).collect::<Vec<_>>(), "{filter:?}");
                }
            }
        }
    }
}

pub(crate) async fn a_listing_filters_by_what_callers_set<S: Store>(store: Arc<S>) {
    let metadata = [
        json!({"ticket": 9, "a \"quoted\" \\ $.name": "x", "vip": true}),
        json!({"ticket": "9", "vip": false}),
        json!({"ticket": 10, "vip": 1, "other": {"ticket": 9}}),
        json!({}),
    ];
    let second = |number: usize| Timestamp::from_millisecond(1_800_000_000_000 + 500 * number as i64).unwrap();
    let mut rows = Vec::new();
    for number in 0..48 {
        let mut new = append(run(number), 0, 1).leaving(Status::ALL[number % 7]);
        new.row.tenant = ["acme", "brim"][number % 5 % 2].into();
        new.row.principal = [Some("ann"), Some("bob"), None][number % 3].map(Into::into);
        new.row.metadata = metadata[number % 4].as_object().unwrap().clone();
        new.row.title = ["Refund Order %_77", "hello", "ÄRGER mit der Order"][number / 4 % 3].to_owned();
        new.row.created_at = second(number);
        rows.push(new.row.clone());
        store.append(new).await.unwrap();
    }
    let text = |text: &str| MetadataValue::Text(text.to_owned());
    let wanted = [
        vec![],
        vec![("ticket", MetadataValue::Integer(9))],
        vec![("ticket", text("9")), ("vip", MetadataValue::Bool(false))],
        vec![("vip", MetadataValue::Bool(true)), ("a \"quoted\" \\ $.name", text("x"))],
        vec![("vip", MetadataValue::Integer(1))],
    ];
    let active = [Status::Running, Status::Pending].to_vec();
    let (mut lists, mut found) = (0, 0);
    for statuses in [vec![], vec![Status::Failed], active, Status::ALL.to_vec()] {
        for members in &wanted {
            for (principal, title) in [
                (None, None),
                (Some("ann"), None),
                (None, Some("order")),
                (None, Some("ärger")),
                (Some("bob"), Some("%_")),
            ] {
                for (from, to) in [(None, None), (Some(11), None), (None, Some(30)), (Some(12), Some(13))] {
                    for (order, after, before) in [
                        (ListOrder::NewestFirst, None, None),
                        (ListOrder::OldestFirst, None, None),
                        (ListOrder::OldestFirst, Some(run(9)), None),
                        (ListOrder::NewestFirst, Some(run(9)), Some(run(40))),
                        (ListOrder::NewestFirst, Some(run(40)), Some(run(9))),
                    ] {
                        for tenant in [Some("acme"), None] {
                            let filter = RunFilter {
                                tenant: tenant.map(Into::into),
                                statuses: statuses.clone(),
                                metadata: members
                                    .iter()
                                    .map(|(name, value)| ((*name).to_owned(), value.clone()))
                                    .collect(),
                                principal: principal.map(Into::into),
                                title: title.map(str::to_owned),
                                created_from: from.map(second),
                                created_before: to.map(second),
                                order,
                                after: after.clone(),
                                before: before.clone(),
                                limit: 5,
                                ..RunFilter::default()
                            };
                            let admitted = rows.iter().filter(|row| filter.admits(row)).cloned();
                            let expected: Vec<RunRow> = match order {
                                ListOrder::NewestFirst => admitted.rev().take(5).collect(),
                                ListOrder::OldestFirst => admitted.take(5).collect(),
                            };
                            assert_eq!(store.list(&filter).await.unwrap(), expected, "{filter:?}");
                            (lists, found) = (lists + 1, found + usize::from(!expected.is_empty()));
                        }
                    }
                }
            }
        }
    }
    assert!(found * 4 > lists, "{found} of {lists} lists have runs");
}

/// Compares the lists of a tenant for every combination of filters with the definition of a filter.
async fn assert_lists<S: Store>(store: &S, rows: &[RunRow]) {
    let either = [false, true];
    for (tenant, before) in [("acme", None), ("brim", Some(run(35))), ("acme", Some(run(20))), ("corp", None)] {
        for status in Status::ALL.map(Some).into_iter().chain([None]) {
            for (by_agent, by_session) in either.into_iter().flat_map(|a| either.map(|b| (a, b))) {
                for (pending_kind, purged, trigger, schedule) in [
                    (None, false, None, None),
                    (Some(PendingKind::Approval), false, None, None),
                    (None, true, None, None),
                    (None, false, Some(TriggerKind::Schedule), None),
                    (None, false, Some(TriggerKind::Manual), None),
                    (None, true, None, Some("nightly")),
                    (None, false, Some(TriggerKind::Schedule), Some("nightly")),
                ] {
                    let filter = RunFilter {
                        tenant: Some(tenant.into()),
                        statuses: status.into_iter().collect(),
                        agent: by_agent.then(|| "cook".into()),
                        session: by_session.then(|| "session_1".into()),
                        pending_kind,
                        purged,
                        trigger,
                        schedule: schedule.map(str::to_owned),
                        before: before.clone(),
                        limit: 12,
                        ..RunFilter::default()
                    };
                    let admitted = rows.iter().rev().filter(|row| filter.admits(row)).take(12);
                    let expected: Vec<RunRow> = admitted.cloned().collect();
                    assert_eq!(store.list(&filter).await.unwrap(), expected, "{filter:?}");
                }
            }
        }
    }
}

pub(crate) async fn a_list_of_a_tenant_follows_its_runs<S: Store>(store: Arc<S>) {
    let mut rows = Vec::new();
    for number in 0..60 {
        let mut new = append(run(number), 0, 1).leaving(Status::Running);
        new.row.agent = ["clerk", "cook"][number / 3 % 2].into();
        new.row.session = format!("session_{}", number % 3).into();
        new.row.tenant = ["acme", "brim"][number % 2].into();
        if number % 7 == 0 {
            new.row.metadata = json!({"ticket": number}).as_object().unwrap().clone();
        }
        if number % 5 == 0 {
            new.row.trigger = Some(TriggerKind::Schedule);
            new.row.schedule = Some(["nightly", "weekly"][number / 5 % 2].to_owned());
        }
        rows.push(new.row.clone());
        store.append(new).await.unwrap();
    }
    assert_lists(&*store, &rows).await;

    for (number, row) in rows.iter_mut().enumerate() {
        let status = Status::ALL[number % 5];
        let mut next = append(run(number), 1, 1).leaving(status);
        let approvals = u32::from(status == Status::Pending && number % 4 == 1);
        let pending_counts = PendingCounts { approvals, ..PendingCounts::default() };
        next.row = RunRow { status, version: 2, pending_counts, updated_at: next.row.updated_at, ..row.clone() };
        *row = next.row.clone();
        store.append(next).await.unwrap();
    }
    assert_lists(&*store, &rows).await;

    let now = Timestamp::from_second(2_000_000_000).unwrap();
    for row in rows.iter_mut().filter(|row| row.status == Status::Completed) {
        store.purge(&row.id, 2, now).await.unwrap();
        let result = row.result.clone().map(RunResult::without_content);
        *row = RunRow { title: String::new(), metadata: Map::new(), result, purged_at: Some(now), ..row.clone() };
    }
    for row in rows.iter_mut().filter(|row| row.pending_counts.approvals > 0) {
        let mut decided = append(row.id.clone(), 2, 1);
        let updated_at = decided.row.updated_at;
        decided.row = RunRow {
            status: Status::Running,
            version: 3,
            pending_counts: PendingCounts::default(),
            updated_at,
            ..row.clone()
        };
        *row = decided.row.clone();
        store.append(decided).await.unwrap();
    }
    assert_lists(&*store, &rows).await;
}

pub(crate) async fn a_listing_shows_the_row_of_the_last_append<S: Store>(store: Arc<S>) {
    store.append(append(run(1), 0, 1).by("node_a")).await.unwrap();
    let mut last = append(run(1), 1, 2).by("node_a").leaving(Status::Pending);
    let (asked_at, due_at) = (Some(last.row.created_at), Some(last.row.updated_at));
    last.row.pending_counts = PendingCounts { approvals: 2, results: 3, answers: 1, tasks: 4, asked_at, due_at };
    store.append(last.clone()).await.unwrap();
    assert_eq!(store.list(&RunFilter::default()).await.unwrap(), [last.row]);

    let decided = append(run(1), 3, 1).by("node_a");
    store.append(decided.clone()).await.unwrap();
    assert_eq!(store.list(&RunFilter::default()).await.unwrap(), [decided.row], "it has no pending item");
}

pub(crate) async fn a_listing_finds_pending_items_and_deadlines<S: Store>(store: Arc<S>) {
    let second = |second| Timestamp::from_second(second).unwrap();
    let waits = [
        PendingCounts {
            approvals: 1,
            asked_at: Some(second(50)),
            due_at: Some(second(100)),
            ..PendingCounts::default()
        },
        PendingCounts { tasks: 1, ..PendingCounts::default() },
        PendingCounts { results: 1, answers: 1, due_at: Some(second(200)), ..PendingCounts::default() },
        PendingCounts::default(),
    ];
    for (number, pending_counts) in waits.into_iter().enumerate() {
        let mut new = append(run(number), 0, 1).leaving(Status::Pending);
        new.row.pending_counts = pending_counts;
        store.append(new).await.unwrap();
    }
    let found = async |filter: RunFilter| numbers(&store.list(&filter).await.unwrap());
    assert_eq!(found(RunFilter { pending_kind: Some(PendingKind::Approval), ..RunFilter::default() }).await, [0]);
    assert_eq!(found(RunFilter { pending_kind: Some(PendingKind::Task), ..RunFilter::default() }).await, [1]);
    let by = |at| RunFilter { due_by: Some(second(at)), ..RunFilter::default() };
    assert_eq!(found(by(99)).await, [0; 0]);
    assert_eq!(found(by(100)).await, [0]);
    assert_eq!(found(by(1_000)).await, [2, 0]);
    assert_eq!(found(RunFilter { run: Some(run(2)), ..RunFilter::default() }).await, [2]);
    assert_eq!(found(RunFilter { run: Some(run(9)), ..by(1_000) }).await, [0; 0]);
}
