//! The event log: the events of all runs in one order.

use std::sync::Arc;

use jiff::Timestamp;
use toolgate::core::id::Tenant;
use toolgate::core::run::Status;
use toolgate::ports::{Append, LogPage, LoggedEvent};

use super::Store;
use crate::stores::journals::{Appending, append, run};

fn of_tenant(tenant: &str, append: Append) -> Append {
    let mut append = append;
    append.row.tenant = tenant.into();
    append
}

fn logged(position: u64, number: usize, seq: u64, ends_append: bool) -> LoggedEvent {
    let (agent, session) = ("clerk".into(), "session_1".into());
    LoggedEvent { position, run: run(number), agent, session, seq, ends_append }
}

pub(crate) async fn every_event_has_a_place_in_the_log<S: Store>(store: Arc<S>) {
    let (acme, brim): (Tenant, Tenant) = ("acme".into(), "brim".into());
    assert_eq!(store.last_position().await.unwrap(), 0);
    for append in [append(run(1), 0, 2), append(run(2), 0, 1)] {
        store.append(of_tenant("acme", append)).await.unwrap();
    }
    store.append(of_tenant("brim", append(run(3), 0, 1))).await.unwrap();
    store.append(of_tenant("acme", append(run(1), 2, 3))).await.unwrap();

    let places =
        [(1, 1, 0, false), (2, 1, 1, true), (3, 2, 0, true), (5, 1, 2, false), (6, 1, 3, false), (7, 1, 4, true)];
    let events = places.map(|(position, number, seq, ends)| logged(position, number, seq, ends));
    assert_eq!(store.last_position().await.unwrap(), 7);
    assert_eq!(store.logged(&acme, 0, 100).await.unwrap(), LogPage { events: events.to_vec(), read_to: 7 });
    assert_eq!(store.logged(&acme, 2, 2).await.unwrap(), LogPage { events: events[2..4].to_vec(), read_to: 5 });
    assert_eq!(store.logged(&acme, 7, 100).await.unwrap(), LogPage { events: Vec::new(), read_to: 7 });
    assert_eq!(store.logged(&brim, 4, 100).await.unwrap(), LogPage { events: Vec::new(), read_to: 7 });
    assert_eq!(store.tenants_after(0).await.unwrap(), [(acme.clone(), 7), (brim, 4)]);
    assert_eq!(store.tenants_after(4).await.unwrap(), [(acme, 7)]);
    assert_eq!(store.tenants_after(7).await.unwrap(), []);
}

pub(crate) async fn an_append_that_adds_nothing_is_not_logged<S: Store>(store: Arc<S>) {
    store.append(append(run(1), 0, 1)).await.unwrap();
    store.append(append(run(1), 0, 2)).await.unwrap_err();
    store.append(append(run(1), 2, 2)).await.unwrap_err();
    store.append(append(run(1), 1, 0).leaving(Status::Completed)).await.unwrap();
    let page = LogPage { events: vec![logged(1, 1, 0, true)], read_to: 1 };
    assert_eq!(store.logged(&Tenant::default(), 0, 100).await.unwrap(), page);
}

pub(crate) async fn a_position_is_not_used_again_after_a_deletion<S: Store>(store: Arc<S>) {
    for number in [1, 2] {
        store.append(append(run(number), 0, 2).leaving(Status::Completed)).await.unwrap();
    }
    for number in [2, 1] {
        store.purge(&run(number), 2, Timestamp::UNIX_EPOCH).await.unwrap();
    }
    assert_eq!(store.last_position().await.unwrap(), 4);
    let tenant = Tenant::default();
    assert_eq!(store.logged(&tenant, 0, 100).await.unwrap(), LogPage { events: Vec::new(), read_to: 4 });
    store.append(append(run(3), 0, 1)).await.unwrap();
    let page = LogPage { events: vec![logged(5, 3, 0, true)], read_to: 5 };
    assert_eq!(store.logged(&tenant, 3, 100).await.unwrap(), page);
}

pub(crate) async fn a_reader_meets_each_of_concurrent_appends_once<S: Store>(store: Arc<S>) {
    const RUNS: usize = 40;
    let appended = (0..RUNS).map(|number| {
        let store = store.clone();
        tokio::spawn(async move {
            store.append(append(run(number), 0, 1)).await.unwrap();
            store.append(append(run(number), 1, 1)).await.unwrap();
        })
    });
    let appended: Vec<_> = appended.collect();
    let (mut read, mut met) = (0, Vec::new());
    while met.len() < 2 * RUNS {
        let page = store.logged(&Tenant::default(), read, 7).await.unwrap();
        for event in page.events {
            assert!(event.position > read && event.position <= page.read_to, "{event:?} after {read}");
            read = event.position;
            met.push((event.run, event.seq));
        }
        read = page.read_to;
        tokio::task::yield_now().await;
    }
    for append in appended {
        append.await.unwrap();
    }
    met.sort();
    assert_eq!(met, (0..RUNS).flat_map(|number| [(run(number), 0), (run(number), 1)]).collect::<Vec<_>>());
}
