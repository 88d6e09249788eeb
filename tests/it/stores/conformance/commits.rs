//! The commit log: the appends of each tenant in order.

use std::sync::Arc;

use jiff::Timestamp;
use toolgate::core::id::Tenant;
use toolgate::core::run::Status;
use toolgate::ports::{Append, Commit};

use super::Store;
use crate::stores::journals::{Appending, append, run};

fn of_tenant(tenant: &str, append: Append) -> Append {
    let mut append = append;
    append.row.tenant = tenant.into();
    append
}

fn commit(position: u64, number: usize, first: u64, length: u64) -> Commit {
    Commit { position, run: run(number), agent: "clerk".into(), session: "session_1".into(), first, length }
}

pub(crate) async fn each_append_is_a_commit_of_its_tenant<S: Store>(store: Arc<S>) {
    let (acme, brim): (Tenant, Tenant) = ("acme".into(), "brim".into());
    assert_eq!(store.latest_commits(&[acme.clone(), brim.clone()]).await.unwrap(), [0, 0]);
    for append in [append(run(1), 0, 2), append(run(2), 0, 1), append(run(1), 2, 3)] {
        store.append(of_tenant("acme", append)).await.unwrap();
    }
    store.append(of_tenant("brim", append(run(3), 0, 1))).await.unwrap();

    let commits = [commit(1, 1, 0, 2), commit(2, 2, 0, 1), commit(3, 1, 2, 5)];
    assert_eq!(store.commits(&acme, 0, 100).await.unwrap(), commits);
    assert_eq!(store.commits(&acme, 1, 1).await.unwrap(), commits[1..2]);
    assert_eq!(store.commits(&acme, 3, 100).await.unwrap(), []);
    assert_eq!(store.commits(&brim, 0, 100).await.unwrap(), [commit(1, 3, 0, 1)]);
    let latest = store.latest_commits(&[brim, "corp".into(), acme]).await.unwrap();
    assert_eq!(latest, [1, 0, 3], "in the order in which they were named");
}

pub(crate) async fn an_append_that_adds_nothing_is_no_commit<S: Store>(store: Arc<S>) {
    store.append(append(run(1), 0, 2)).await.unwrap();
    store.append(append(run(1), 0, 2)).await.unwrap_err();
    store.append(append(run(1), 1, 2)).await.unwrap_err();
    store.append(append(run(1), 2, 0).leaving(Status::Completed)).await.unwrap();
    store.purge(&run(1), 2, Timestamp::UNIX_EPOCH).await.unwrap();
    assert_eq!(store.commits(&Tenant::default(), 0, 100).await.unwrap(), [commit(1, 1, 0, 2)]);
}

pub(crate) async fn concurrent_appends_are_numbered_without_gaps<S: Store>(store: Arc<S>) {
    const RUNS: usize = 40;
    let appended = (0..RUNS).map(|number| {
        let store = store.clone();
        tokio::spawn(async move {
            store.append(append(run(number), 0, 1)).await.unwrap();
            store.append(append(run(number), 1, 1)).await.unwrap();
        })
    });
    let appended: Vec<_> = appended.collect();
    // A reader that follows the log meets each position once, in order.
    let (mut read, mut runs) = (0, Vec::new());
    while read < 2 * RUNS as u64 {
        for commit in store.commits(&Tenant::default(), read, 7).await.unwrap() {
            assert_eq!(commit.position, read + 1);
            read = commit.position;
            runs.push((commit.run, commit.first));
        }
        tokio::task::yield_now().await;
    }
    for append in appended {
        append.await.unwrap();
    }
    runs.sort();
    assert_eq!(runs, (0..RUNS).flat_map(|number| [(run(number), 0), (run(number), 1)]).collect::<Vec<_>>());
}
