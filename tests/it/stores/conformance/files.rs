//! Uploaded files.

use std::sync::Arc;

use jiff::Timestamp;
use toolgate::core::blob::Blob;
use toolgate::core::id::FileId;
use toolgate::core::run::Status;
use toolgate::ports::{
    BlobStore, FileError, FileFilter, FileQuota, IdempotencyStore, IdempotentRequest, RequestState, StoredFile,
    StoredResponse,
};

use super::Store;
use crate::stores::journals::{Appending as _, append, run};

const QUOTA: FileQuota = FileQuota { files: 100, bytes: 1000 };

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn blob(content: &str) -> Blob {
    Blob::new("text/plain", content.as_bytes().to_vec())
}

/// A file with this content, from its creation on for 100 seconds.
fn file(id: &str, tenant: &str, content: &str, created: i64) -> StoredFile {
    StoredFile {
        id: id.into(),
        tenant: tenant.into(),
        principal: Some("ann".into()),
        name: "é.txt".to_owned(),
        media_type: "text/plain".to_owned(),
        size: content.len() as u64,
        handle: blob(content).handle(),
        created_at: at(created),
        created_by: "key:ci".to_owned(),
        expires_at: at(created + 100),
    }
}

async fn put(store: &impl Store, id: &str, tenant: &str, content: &str, created: i64) -> StoredFile {
    let file = file(id, tenant, content, created);
    store.put_file(&file, blob(content), QUOTA).await.unwrap();
    file
}

fn of(tenant: &str, now: i64) -> FileFilter {
    FileFilter { tenant: tenant.into(), id: None, now: at(now), after: None, limit: None }
}

async fn ids(store: &impl Store, filter: &FileFilter) -> Vec<String> {
    store.files(filter).await.unwrap().into_iter().map(|file| file.id.to_string()).collect()
}

pub(crate) async fn a_file_is_found_by_its_tenant_until_it_expires<S: Store>(store: Arc<S>) {
    let known = put(&*store, "file_1", "acme", "one", 100).await;
    put(&*store, "file_2", "acme", "two", 101).await;
    let one = |tenant: &str, now| FileFilter { id: Some("file_1".into()), ..of(tenant, now) };
    assert_eq!(store.files(&one("acme", 199)).await.unwrap(), std::slice::from_ref(&known));
    assert_eq!(store.get(&known.handle).await.unwrap(), Some(blob("one")));
    for filter in [one("acme", 200), one("bolt", 199), of("bolt", 100)] {
        assert_eq!(store.files(&filter).await.unwrap(), [], "{filter:?}");
    }
    assert_eq!(ids(&*store, &of("acme", 150)).await, ["file_2", "file_1"]);
    assert_eq!(ids(&*store, &of("acme", 200)).await, ["file_2"]);
    assert!(!store.delete_file(&"bolt".into(), &"file_1".into()).await.unwrap());
    assert_eq!(store.files(&one("acme", 199)).await.unwrap(), [known]);
}

pub(crate) async fn files_within_the_quota_are_stored<S: Store>(store: Arc<S>) {
    let quota = FileQuota { files: 3, bytes: 10 };
    let stored = async |id, tenant, content: &str, created| {
        store.put_file(&file(id, tenant, content, created), blob(content), quota).await
    };
    let full = |files, bytes| Err(FileError::QuotaExceeded { files, bytes });
    assert_eq!(stored("a", "acme", "12345", 100).await, Ok(()));
    assert_eq!(stored("b", "acme", "123456", 101).await, full(1, 5));
    assert_eq!(store.get(&blob("123456").handle()).await.unwrap(), None, "nothing of it was stored");
    // The same bytes count again.
    assert_eq!(stored("b", "acme", "12345", 101).await, Ok(()));
    assert_eq!(stored("c", "acme", "1", 102).await, full(2, 10));
    assert_eq!(stored("c", "bolt", "1", 102).await, Ok(()), "of another tenant");
    // The first has expired.
    assert_eq!(stored("d", "acme", "1", 200).await, Ok(()));
    assert_eq!(stored("e", "acme", "2", 200).await, Ok(()));
    assert_eq!(stored("f", "acme", "3", 200).await, full(3, 7));
    assert!(store.delete_file(&"acme".into(), &"b".into()).await.unwrap());
    assert_eq!(stored("f", "acme", "3", 200).await, Ok(()));
}

pub(crate) async fn a_deleted_file_leaves_the_bytes_that_a_run_uses<S: Store>(store: Arc<S>) {
    let used = put(&*store, "file_1", "acme", "used", 100).await;
    let twice = put(&*store, "file_2", "acme", "twice", 100).await;
    put(&*store, "file_3", "bolt", "twice", 100).await;
    let unused = put(&*store, "file_4", "acme", "unused", 100).await;
    store.share(&run(1), &[used.handle]).await.unwrap();
    for id in ["file_1", "file_2", "file_4"] {
        assert!(store.delete_file(&"acme".into(), &id.into()).await.unwrap());
        assert!(!store.delete_file(&"acme".into(), &id.into()).await.unwrap());
    }
    assert_eq!(store.get(&used.handle).await.unwrap(), Some(blob("used")));
    assert_eq!(store.get(&twice.handle).await.unwrap(), Some(blob("twice")), "another tenant has it");
    assert_eq!(store.get(&unused.handle).await.unwrap(), None);

    BlobStore::forget(&*store, &run(1)).await.unwrap();
    assert_eq!(store.get(&used.handle).await.unwrap(), None);

    // A run that ends to use a blob leaves it to the file.
    store.share(&run(2), &[twice.handle]).await.unwrap();
    store.append(append(run(2), 0, 2).leaving(Status::Completed)).await.unwrap();
    store.purge(&run(2), 2, at(101)).await.unwrap();
    BlobStore::forget(&*store, &run(2)).await.unwrap();
    assert_eq!(store.get(&twice.handle).await.unwrap(), Some(blob("twice")));
}

pub(crate) async fn expired_files_are_deleted_in_batches<S: Store>(store: Arc<S>) {
    for number in 0..5 {
        put(&*store, &format!("file_{number}"), "acme", &format!("{number}"), 100 + number).await;
    }
    let kept = blob("1").handle();
    store.share(&run(1), &[kept]).await.unwrap();
    let sweep = async |now, limit| store.delete_expired_files(at(now), limit).await.unwrap();
    assert_eq!((sweep(199, 10).await, sweep(203, 3).await, sweep(203, 3).await, sweep(203, 3).await), (0, 3, 1, 0));
    assert_eq!(ids(&*store, &of("acme", 0)).await, ["file_4"]);
    assert_eq!(store.get(&blob("0").handle()).await.unwrap(), None);
    assert_eq!(store.get(&kept).await.unwrap(), Some(blob("1")));
}

pub(crate) async fn pages_of_files_have_each_file_once<S: Store>(store: Arc<S>) {
    // Several files were uploaded in the same second.
    for number in 0..20 {
        let tenant = if number % 3 == 0 { "bolt" } else { "acme" };
        put(&*store, &format!("file_{number:02}"), tenant, &format!("{number}"), 100 + number % 4).await;
    }
    let whole = ids(&*store, &of("acme", 150)).await;
    assert_eq!(whole.len(), 13);
    for limit in [1, 3, 7, 100] {
        let mut paged: Vec<String> = Vec::new();
        loop {
            let after = paged.last().map(|id| FileId::from(id.as_str()));
            let page = ids(&*store, &FileFilter { after, limit: Some(limit), ..of("acme", 150) }).await;
            assert!(page.len() <= limit);
            if page.is_empty() {
                break;
            }
            paged.extend(page);
        }
        assert_eq!(paged, whole, "in pages of {limit}");
    }
    let unknown = FileFilter { after: Some("file_of_unknown".into()), ..of("acme", 150) };
    assert_eq!(ids(&*store, &unknown).await, [""; 0]);
}

pub(crate) async fn an_answer_that_quotes_a_deleted_file_is_forgotten<S: Store>(store: Arc<S>) {
    let quoting = |file: &str| {
        let file = Some(file.into());
        RequestState::Answered(StoredResponse {
            status: 201,
            run: None,
            session: None,
            file,
            headers: vec![],
            body: vec![],
        })
    };
    let asked = |key: &str| IdempotentRequest {
        tenant: "acme".into(),
        caller: "key:ci".to_owned(),
        key: key.to_owned(),
        fingerprint: "f".to_owned(),
        run: None,
        held_until: at(130),
        expires_at: at(1000),
    };
    for id in ["deleted", "expired", "kept"] {
        put(&*store, id, "acme", id, if id == "expired" { 10 } else { 100 }).await;
        store.begin(&asked(id), at(100)).await.unwrap();
        IdempotencyStore::settle(&*store, &asked(id), &quoting(id)).await.unwrap();
    }

    assert!(store.delete_file(&"acme".into(), &"deleted".into()).await.unwrap());
    assert_eq!(store.delete_expired_files(at(120), 10).await.unwrap(), 1);

    let state = async |key| store.begin(&asked(key), at(121)).await.unwrap().unwrap().state;
    assert_eq!(state("deleted").await, RequestState::NotStored);
    assert_eq!(state("expired").await, RequestState::NotStored);
    assert_eq!(state("kept").await, quoting("kept"));
}
