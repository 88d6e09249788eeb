//! Appends: one write whose position is the compare-and-set.

use std::sync::Arc;

use toolgate::ports::{AppendError, RunFilter, StoreError};

use super::Store;
use crate::stores::journals::{Appending, append, fact, facts, run};

pub(crate) async fn a_run_is_created_once<S: Store>(store: Arc<S>) {
    store.append(append(run(1), 0, 2)).await.unwrap();
    let again = store.append(append(run(1), 0, 3)).await;
    assert_eq!(again, Err(AppendError::Conflict { length: 2 }));
    let by_another = store.append(append(run(1), 0, 3).by("node_b")).await;
    assert_eq!(by_another, Err(AppendError::Conflict { length: 2 }));
    assert_eq!(store.load(&run(1), 0).await.unwrap(), facts(0, 2));
}

pub(crate) async fn an_append_at_the_wrong_position_reports_the_length<S: Store>(store: Arc<S>) {
    assert_eq!(store.append(append(run(1), 3, 1)).await, Err(AppendError::Conflict { length: 0 }));
    store.append(append(run(1), 0, 4)).await.unwrap();
    for wrong in [0, 1, 3, 5, 1000] {
        assert_eq!(
            store.append(append(run(1), wrong, 1)).await,
            Err(AppendError::Conflict { length: 4 }),
            "at {wrong}"
        );
    }
    store.append(append(run(1), 4, 1)).await.unwrap();
    assert_eq!(store.load(&run(1), 0).await.unwrap(), facts(0, 5));
}

pub(crate) async fn a_rejected_append_changes_nothing<S: Store>(store: Arc<S>) {
    store.append(append(run(1), 0, 2).by("node_a")).await.unwrap();
    let before = store.list(&RunFilter::default()).await.unwrap();
    store.append(append(run(1), 1, 5)).await.unwrap_err();
    store.append(append(run(1), 2, 5).by("node_b")).await.unwrap_err();
    store.append(append(run(2), 1, 5)).await.unwrap_err();
    assert_eq!(store.list(&RunFilter::default()).await.unwrap(), before);
    assert_eq!(store.load(&run(1), 0).await.unwrap(), facts(0, 2));
    assert_eq!(store.load(&run(2), 0).await.unwrap(), []);
}

pub(crate) async fn an_append_that_would_leave_a_gap_is_rejected<S: Store>(store: Arc<S>) {
    store.append(append(run(1), 0, 1)).await.unwrap();
    let mut gap = append(run(1), 1, 2);
    gap.events = vec![fact(1), fact(3)];
    let mut shorter = append(run(1), 1, 2);
    shorter.events.truncate(1);
    let mut of_another = append(run(1), 1, 2);
    of_another.row.id = run(2);
    for broken in [gap, shorter, of_another, append(run(3), 0, 0)] {
        let refused = store.append(broken.clone()).await;
        assert!(matches!(refused, Err(AppendError::Store(StoreError::Corrupt(_)))), "{broken:?} gave {refused:?}");
    }
    assert_eq!(store.load(&run(1), 0).await.unwrap(), facts(0, 1));
    assert_eq!(store.list(&RunFilter::default()).await.unwrap().len(), 1);
}

pub(crate) async fn an_append_without_events_changes_the_row_alone<S: Store>(store: Arc<S>) {
    store.append(append(run(1), 0, 2)).await.unwrap();
    let mut retitled = append(run(1), 2, 0);
    retitled.row.title = "Another".to_owned();
    store.append(retitled.clone()).await.unwrap();
    assert_eq!(store.list(&RunFilter::default()).await.unwrap(), [retitled.row]);
    assert_eq!(store.load(&run(1), 0).await.unwrap(), facts(0, 2));
}

pub(crate) async fn of_concurrent_appends_to_one_position_one_wins<S: Store>(store: Arc<S>) {
    store.append(append(run(1), 0, 1)).await.unwrap();
    let appenders: Vec<_> = (0..16)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut won = Vec::new();
                for at in 1..=40 {
                    match store.append(append(run(1), at, 1)).await {
                        Ok(()) => won.push(at),
                        Err(AppendError::Conflict { length }) => assert!(length > at, "told {length} at {at}"),
                        Err(other) => panic!("{other}"),
                    }
                }
                won
            })
        })
        .collect();
    let mut won = Vec::new();
    for appender in appenders {
        won.extend(appender.await.unwrap());
    }
    won.sort_unstable();
    assert_eq!(won, (1..=40).collect::<Vec<u64>>());
    assert_eq!(store.load(&run(1), 0).await.unwrap(), facts(0, 41));
}

pub(crate) async fn appends_to_many_runs_do_not_disturb_each_other<S: Store>(store: Arc<S>) {
    let drivers: Vec<_> = (0..32)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                for at in 0..20 {
                    store.append(append(run(number), at, 1)).await.unwrap();
                    store.append(append(run(number), at, 1)).await.unwrap_err();
                }
            })
        })
        .collect();
    for driver in drivers {
        driver.await.unwrap();
    }
    for number in 0..32 {
        assert_eq!(store.load(&run(number), 0).await.unwrap(), facts(0, 20));
    }
}

pub(crate) async fn a_journal_is_loaded_from_any_position<S: Store>(store: Arc<S>) {
    store.append(append(run(1), 0, 3)).await.unwrap();
    store.append(append(run(1), 3, 2)).await.unwrap();
    store.append(append(run(2), 0, 9)).await.unwrap();
    for from in 0..=5 {
        assert_eq!(store.load(&run(1), from).await.unwrap(), facts(from, 5), "from {from}");
    }
    assert_eq!(store.load(&run(1), 6).await.unwrap(), []);
    assert_eq!(store.load(&run(1), u64::MAX).await.unwrap(), []);
    assert_eq!(store.load(&run(7), 0).await.unwrap(), []);
}

pub(crate) async fn events_are_loaded_exactly_as_written<S: Store>(store: Arc<S>) {
    let mut odd = append("run_'; DROP TABLE run; --é🦀".into(), 0, 3);
    odd.row.title = "nul \u{0}, quote ' and crab 🦀".to_owned();
    odd.events[1].at = "-000044-03-15T12:00:00.000000001Z".parse().unwrap();
    odd.events[2].at = "9999-12-30T22:00:00Z".parse().unwrap();
    store.append(odd.clone()).await.unwrap();
    assert_eq!(store.load(&odd.run, 0).await.unwrap(), odd.events);
    assert_eq!(store.list(&RunFilter::default()).await.unwrap(), [odd.row]);
}
