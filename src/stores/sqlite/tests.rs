//! Tests that need access to internals: errors that a setting provokes, and the second attempt of one append.

use jiff::Timestamp;
use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;
use toolgate_core::chat::Usage;
use toolgate_core::run::{Event, PendingCounts, Status};
use toolgate_ports::{AccessKeys as _, Quota, SessionClaim, SessionHead, SessionRow, SessionStore as _};

use super::writer::Write;
use super::*;

mod query_plans;
mod toolsets;

fn file(directory: &TempDir) -> std::path::PathBuf {
    directory.path().join("runs.db")
}

/// The options of a store that does not wait for locks.
fn impatient(directory: &TempDir) -> Options {
    let options = Options::new(&file(directory), Durability::ProcessCrash).unwrap();
    Options { busy_timeout: Duration::from_millis(10), ..options }
}

/// The options of a store that does not wait for locks, on a disk of this size.
fn small(directory: &TempDir, max_pages: u32) -> Options {
    Options { max_pages: Some(max_pages), ..impatient(directory) }
}

/// An append with one message of this many bytes.
fn append(run: &str, at: u64, bytes: usize) -> Append {
    let message = json!({"role": "user", "content": [{"type": "text", "text": "x".repeat(bytes)}]});
    let event = Event::MessageAdded { message: serde_json::from_value(message).unwrap() };
    let row = RunRow {
        id: run.into(),
        agent: "clerk".into(),
        session: "session".into(),
        predecessor: None,
        trigger: None,
        schedule: None,
        tenant: toolgate_core::id::Tenant::default(),
        principal: None,
        metadata: serde_json::Map::new(),
        status: Status::Running,
        version: at + 1,
        title: String::new(),
        created_at: Timestamp::UNIX_EPOCH,
        updated_at: Timestamp::UNIX_EPOCH,
        pending_counts: PendingCounts::default(),
        usage: Usage::default(),
        result: None,
        is_interrupted: false,
        purged_at: None,
    };
    let events = vec![JournalEntry { seq: at, at: Timestamp::UNIX_EPOCH, event }];
    Append {
        run: run.into(),
        at,
        events,
        row,
        owner: None,
        lease: Duration::ZERO,
        session: None,
        spans_sent: None,
        is_import: false,
    }
}

fn unavailable(outcome: Result<(), AppendError>) -> String {
    match outcome {
        Err(AppendError::Store(StoreError::Unavailable(why) | StoreError::Full(why))) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn durability_decides_what_a_commit_waits_for() {
    let directory = TempDir::new().unwrap();
    for (durability, synchronous) in [(Durability::PowerCut, 2), (Durability::ProcessCrash, 1)] {
        let connection = open::connect_and_migrate(&Options::new(&file(&directory), durability).unwrap()).unwrap();
        let set: i64 = connection.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();
        let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!((set, mode.as_str()), (synchronous, "wal"), "{durability:?}");
    }
}

#[tokio::test]
async fn when_the_disk_is_full_an_append_fails_whole_and_smaller_ones_still_fit() {
    let directory = TempDir::new().unwrap();
    let store = SqliteStore::open_with(small(&directory, 72)).await.unwrap();
    store.append(append("run_a", 0, 10)).await.unwrap();

    let huge = store.append(append("run_a", 1, 1_000_000));
    let huge_and_new = store.append(append("run_b", 0, 1_000_000));
    let small = store.append(append("run_c", 0, 10));
    let (huge, huge_and_new, small) = tokio::join!(huge, huge_and_new, small);
    for outcome in [huge, huge_and_new] {
        let why = unavailable(outcome);
        assert!(why.starts_with("there is no room for") && why.ends_with("free some disk space"), "{why}");
    }
    small.unwrap();

    let runs: Vec<_> =
        store.list(&RunFilter::default()).await.unwrap().into_iter().map(|row| (row.id, row.version)).collect();
    assert_eq!(runs, [("run_c".into(), 1), ("run_a".into(), 1)]);
    assert_eq!(store.load(&"run_a".into(), 0).await.unwrap().len(), 1);
    assert_eq!(store.load(&"run_b".into(), 0).await.unwrap(), []);
    store.append(append("run_a", 1, 10)).await.unwrap();
}

#[tokio::test]
async fn a_full_store_is_not_writable_until_there_is_room() {
    let directory = TempDir::new().unwrap();
    let store = SqliteStore::open_with(small(&directory, 76)).await.unwrap();
    store.check_write().await.unwrap();
    unavailable(store.append(append("run_a", 0, 1_000_000)).await);

    for _ in 0..2 {
        let refused = store.check_write().await.unwrap_err().to_string();
        assert!(refused.contains("there is no room for"), "{refused}");
        store.append(append(&format!("run_{}", uuid::Uuid::now_v7()), 0, 10)).await.unwrap();
    }
    store.check_read().await.unwrap();
    store.close().await;

    let store = SqliteStore::open_with(small(&directory, 300)).await.unwrap();
    unavailable(store.append(append("run_a", 0, 2_000_000)).await);
    store.check_write().await.expect("other appends still fit");
}

/// Occupies all threads of the readers until the sender is dropped.
async fn occupied(
    readers: &Readers,
    threads: usize,
) -> (Vec<tokio::task::JoinHandle<()>>, std::sync::mpsc::Sender<()>) {
    let (hang, hung) = std::sync::mpsc::channel::<()>();
    let hung = Arc::new(std::sync::Mutex::new(hung));
    let mut queries = Vec::new();
    for _ in 0..threads {
        let (readers, hung) = (readers.clone(), hung.clone());
        let (started, has_started) = tokio::sync::oneshot::channel();
        queries.push(tokio::spawn(async move {
            let work = move |_: &Connection| {
                started.send(()).unwrap();
                let _ = hung.lock().unwrap().recv();
                Ok(())
            };
            readers.read(work).await.unwrap();
        }));
        has_started.await.unwrap();
    }
    (queries, hang)
}

#[tokio::test]
async fn lists_and_lookups_do_not_delay_keys_and_readiness() {
    let directory = TempDir::new().unwrap();
    let store = SqliteStore::open_with(impatient(&directory)).await.unwrap();
    let (_lists, _hang) = occupied(&store.readers, READERS).await;
    store.load(&"run_a".into(), 0).await.unwrap();
    store.list(&RunFilter { run: Some("run_a".into()), ..RunFilter::default() }).await.unwrap();
    let (_lookups, _hang) = occupied(&store.lookups, LOOKUPS).await;
    store.check_read().await.unwrap();
    assert_eq!(store.by_hash(&toolgate_ports::KeyHash::for_secret("tg_unknown")).await.unwrap(), None);
}

#[tokio::test]
async fn a_locked_file_is_unavailable_until_the_lock_is_gone() {
    let directory = TempDir::new().unwrap();
    let store = SqliteStore::open_with(impatient(&directory)).await.unwrap();
    store.append(append("run_a", 0, 10)).await.unwrap();
    let shell = Connection::open(file(&directory)).unwrap();
    shell.execute_batch("BEGIN IMMEDIATE").unwrap();
    let why = unavailable(store.append(append("run_a", 1, 10)).await);
    assert!(why.contains("is locked by another process"), "{why}");
    assert_eq!(store.load(&"run_a".into(), 0).await.unwrap().len(), 1);
    shell.execute_batch("ROLLBACK").unwrap();
    store.append(append("run_a", 1, 10)).await.unwrap();
}

#[tokio::test]
async fn a_read_only_file_can_be_read_and_says_so_when_appended_to() {
    let directory = TempDir::new().unwrap();
    let store = SqliteStore::open_with(impatient(&directory)).await.unwrap();
    store.append(append("run_a", 0, 10)).await.unwrap();
    store.close().await;
    let store = SqliteStore::open_with(Options { read_only: true, ..impatient(&directory) }).await.unwrap();
    let why = unavailable(store.append(append("run_a", 1, 10)).await);
    assert!(why.contains("is read-only") && why.ends_with("make it and its directory writable"), "{why}");
    assert_eq!(store.load(&"run_a".into(), 0).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_second_attempt_at_a_committed_append_changes_nothing() {
    let directory = TempDir::new().unwrap();
    let db = open::connect_and_migrate(&impatient(&directory)).unwrap();
    for at in 0..2 {
        let this = AppendEvents::new(append("run_a", at, 10), &ToolsetStore::default(), Arc::default()).unwrap();
        let rival = AppendEvents::new(append("run_a", at, 10), &ToolsetStore::default(), Arc::default()).unwrap();
        assert_eq!(this.apply(&db).unwrap(), Ok(()));
        assert_eq!(this.apply(&db).unwrap(), Ok(()));
        assert_eq!(rival.apply(&db).unwrap(), Err(AppendError::Conflict { length: at + 1 }));
    }
    let (events,): (i64,) = query("SELECT count(*) FROM journal").one(&db).unwrap();
    assert_eq!(events, 2);
}

/// The first append of a run that claims the session at this version.
fn claiming(run: &str, expected: u64) -> Append {
    let append = append(run, 0, 10);
    let row = SessionRow {
        id: append.row.session.clone(),
        tenant: append.row.tenant.clone(),
        agent: append.row.agent.clone(),
        principal: None,
        head: Some(SessionHead {
            run: run.into(),
            status: Status::Running,
            version: 1,
            usage: Usage::default(),
            iterations: 0,
            updated_at: Timestamp::UNIX_EPOCH,
        }),
        version: expected + 1,
        runs: expected + 1,
        usage: Usage::default(),
        iterations: 0,
        runtime: None,
        title: String::new(),
        settings: Default::default(),
        created_by: None,
        authors: std::collections::BTreeSet::new(),
        created_at: Timestamp::UNIX_EPOCH,
        updated_at: Timestamp::UNIX_EPOCH,
        deleted_at: None,
    };
    Append { session: Some(SessionClaim { expected, row, segment: None }.into()), ..append }
}

#[tokio::test]
async fn a_second_attempt_at_a_committed_claim_changes_nothing() {
    let directory = TempDir::new().unwrap();
    let db = open::connect_and_migrate(&impatient(&directory)).unwrap();
    let this = AppendEvents::new(claiming("run_a", 0), &ToolsetStore::default(), Arc::default()).unwrap();
    let rival = AppendEvents::new(claiming("run_a", 0), &ToolsetStore::default(), Arc::default()).unwrap();
    let other = AppendEvents::new(claiming("run_b", 0), &ToolsetStore::default(), Arc::default()).unwrap();
    for _ in 0..2 {
        assert_eq!(this.apply(&db).unwrap(), Ok(()));
        assert_eq!(rival.apply(&db).unwrap(), Err(AppendError::Conflict { length: 1 }));
        let current = claiming("run_a", 0).session.map(|claim| claim.row.into());
        assert_eq!(other.apply(&db).unwrap(), Err(AppendError::SessionChanged { current }));
    }
    let rows: Vec<(i64, String)> = query("SELECT version, head FROM session").all(&db).unwrap();
    assert_eq!(rows, [(1, "run_a".to_owned())]);
}

#[tokio::test]
async fn a_claim_that_does_not_fit_on_the_disk_changes_nothing() {
    let directory = TempDir::new().unwrap();
    let store = SqliteStore::open_with(small(&directory, 72)).await.unwrap();
    let mut huge = claiming("run_a", 0);
    huge.events = append("run_a", 0, 1_000_000).events;
    let (huge, small) = tokio::join!(store.append(huge), store.append(append("run_c", 0, 10)));
    unavailable(huge);
    small.unwrap();
    let (tenant, id) = (toolgate_core::id::Tenant::default(), "session".into());
    assert_eq!(store.session(&tenant, &id).await.unwrap(), None);
    store.append(claiming("run_a", 0)).await.unwrap();
}

#[tokio::test]
async fn an_append_happens_even_if_its_caller_stops_waiting() {
    let directory = TempDir::new().unwrap();
    let store = SqliteStore::open_with(impatient(&directory)).await.unwrap();
    let mut impatient = Box::pin(store.append(append("run_a", 0, 10)));
    let _ = futures::poll!(&mut impatient);
    drop(impatient);
    store.append(append("run_a", 1, 10)).await.unwrap();
}

#[tokio::test]
async fn a_blob_is_kept_once_with_a_note_for_each_run_that_uses_it() {
    let directory = TempDir::new().unwrap();
    let store = SqliteStore::open_with(impatient(&directory)).await.unwrap();
    let blob = Blob::new("text/plain", b"same".to_vec());
    for run in ["run_a", "run_b", "run_a"] {
        store.put(&run.into(), blob.clone()).await.unwrap();
    }
    store.share(&"run_c".into(), &[blob.handle(), BlobHandle::for_bytes(b"nothing")]).await.unwrap();
    let db = open::connect_and_migrate(&impatient(&directory)).unwrap();
    let (blobs,): (i64,) = query("SELECT count(*) FROM blob").one(&db).unwrap();
    let notes: Vec<(String,)> = query("SELECT run FROM blob_use ORDER BY run").all(&db).unwrap();
    assert_eq!((blobs, notes), (1, ["run_a", "run_b", "run_c"].map(|run| (run.to_owned(),)).to_vec()));
}

#[tokio::test]
async fn a_blob_that_does_not_fit_is_rejected_alone() {
    let directory = TempDir::new().unwrap();
    let store = SqliteStore::open_with(small(&directory, 72)).await.unwrap();
    let huge = Blob::new("text/plain", vec![0; 1_000_000]);
    let Err(BlobError::Store(StoreError::Full(why))) = store.put(&"run_a".into(), huge.clone()).await else {
        panic!("it was kept")
    };
    assert!(why.starts_with("there is no room for"), "{why}");
    assert_eq!(store.get(&huge.handle()).await.unwrap(), None);
    store.append(append("run_a", 0, 10)).await.unwrap();
}

#[test]
fn an_sqlite_that_corrupts_its_log_is_rejected() {
    for version in ["3.40.1", "3.51.2", "3.9.0", "", "unknown"] {
        assert!(!open::is_sound(version), "{version}");
    }
    for version in ["3.51.3", "3.51.10", "3.52.0", "4.0.0", "4"] {
        assert!(open::is_sound(version), "{version}");
    }
}

/// The same append of a run that a caller started.
fn by_caller(mut append: Append) -> Append {
    let started = json!({
        "spec": {"agent": "clerk", "model": "large"}, "by": "key:a", "session": "session",
        "input": {"role": "user", "content": [{"type": "text", "text": "Hello"}]},
        "trace": {"id": "0123456789abcdef0123456789abcdef", "sampled": true},
    });
    append.events[0].event = Event::Started(serde_json::from_value(started).unwrap());
    append
}

#[test]
fn a_second_attempt_of_an_append_is_counted_once_and_never_refused() {
    let directory = TempDir::new().unwrap();
    let db = open::connect_and_migrate(&impatient(&directory)).unwrap();
    let quota = Quota { runs: Some(1), ..Quota::default() };
    let quotas = Arc::new(Quotas { tenants: [("*".to_owned(), quota)].into(), ..Quotas::default() });
    let attempt =
        |run: &str| AppendEvents::new(by_caller(append(run, 0, 10)), &ToolsetStore::default(), quotas.clone()).unwrap();
    let this = attempt("run_a");
    for _ in 0..2 {
        assert_eq!(this.apply(&db).unwrap(), Ok(()));
        let runs: Vec<(i64,)> = query("SELECT runs FROM day_usage").all(&db).unwrap();
        assert_eq!(runs, [(1,), (1,)], "of the caller and of its tenant");
    }
    assert!(matches!(attempt("run_b").apply(&db).unwrap(), Err(AppendError::OverQuota(_))));
}
