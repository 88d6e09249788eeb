//! Deletion of a run's content; its row stays.

use std::sync::Arc;

use toolgate::core::blob::Blob;
use toolgate::core::run::{PendingCounts, RunResult, Status};
use toolgate::ports::{AppendError, BlobStore, Purged, RunFilter, RunRow};

use super::Store;
use crate::stores::journals::{Appending, append, fact, run};

fn everything() -> RunFilter {
    RunFilter { purged: true, ..RunFilter::default() }
}

pub(crate) async fn a_purged_run_leaves_its_row_and_nothing_else<S: Store>(store: Arc<S>) {
    let whole = append(run(1), 0, 3).leaving(Status::Completed);
    store.append(whole.clone()).await.unwrap();
    store.append(append(run(2), 0, 2).leaving(Status::Completed)).await.unwrap();
    let (now, later) = (fact(7).at, fact(8).at);

    assert_eq!(store.purge(&run(1), 3, now).await, Ok(Purged::Since(now)));

    assert_eq!(store.load(&run(1), 0).await.unwrap(), []);
    assert_eq!(store.load(&run(2), 0).await.unwrap().len(), 2);
    let result = whole.row.result.clone().map(RunResult::without_content);
    let (title, pending_counts) = (String::new(), PendingCounts::default());
    let left = RunRow { title, pending_counts, result, purged_at: Some(now), ..whole.row };
    let named = RunFilter { run: Some(run(1)), ..everything() };
    assert_eq!(store.list(&named).await.unwrap(), std::slice::from_ref(&left));
    let listed = store.list(&RunFilter::default()).await.unwrap();
    assert_eq!(listed.into_iter().map(|row| row.id).collect::<Vec<_>>(), [run(2)]);
    assert_eq!(store.purge(&run(1), 3, later).await, Ok(Purged::Since(now)), "twice is once");
    assert_eq!(store.purge(&run(1), 9, later).await, Ok(Purged::Since(now)), "twice is once");
    assert_eq!(store.list(&named).await.unwrap(), [left]);
}

pub(crate) async fn only_an_ended_run_at_that_version_is_purged<S: Store>(store: Arc<S>) {
    for (number, status) in Status::ALL.into_iter().enumerate() {
        store.append(append(run(number), 0, 2).leaving(status)).await.unwrap();
        for at in [0, 1, 3] {
            assert_eq!(store.purge(&run(number), at, fact(7).at).await, Ok(Purged::No), "{status:?}");
        }
        let purged = store.purge(&run(number), 2, fact(7).at).await.unwrap();
        assert_eq!(purged != Purged::No, status.is_ended(), "{status:?}");
        assert_eq!(store.load(&run(number), 0).await.unwrap().is_empty(), status.is_ended(), "{status:?}");
    }
    assert_eq!(store.purge(&run(99), 0, fact(7).at).await, Ok(Purged::No));
}

pub(crate) async fn nothing_is_appended_to_a_purged_run<S: Store>(store: Arc<S>) {
    store.append(append(run(1), 0, 2).leaving(Status::Failed)).await.unwrap();
    store.purge(&run(1), 2, fact(7).at).await.unwrap();
    for at in [0, 2] {
        let refused = store.append(append(run(1), at, 1)).await;
        assert_eq!(refused, Err(AppendError::Conflict { length: 2 }), "at {at}");
    }
    assert_eq!(store.load(&run(1), 0).await.unwrap(), []);
}

pub(crate) async fn a_blob_is_deleted_with_the_last_run_that_uses_it<S: Store>(store: Arc<S>) {
    let blob = |bytes: &str| Blob::new("text/plain", bytes.into());
    let alone = store.put(&run(1), blob("alone")).await.unwrap();
    let shared = store.put(&run(1), blob("shared")).await.unwrap();
    let others = store.put(&run(2), blob("others")).await.unwrap();
    store.share(&run(2), &[shared]).await.unwrap();

    BlobStore::forget(&*store, &run(1)).await.unwrap();

    assert_eq!(store.get(&alone).await.unwrap(), None);
    assert_eq!(store.get(&shared).await.unwrap(), Some(blob("shared")));
    BlobStore::forget(&*store, &run(1)).await.unwrap();
    assert_eq!(store.get(&shared).await.unwrap(), Some(blob("shared")), "twice is once");
    BlobStore::forget(&*store, &run(2)).await.unwrap();
    assert_eq!((store.get(&shared).await.unwrap(), store.get(&others).await.unwrap()), (None, None));
}
