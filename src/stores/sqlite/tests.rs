//! Tests that need access to internals: errors that a setting provokes, and the second attempt of one append.

use jiff::Timestamp;
use serde_json::json;
use sqlx::Connection;
use tempfile::TempDir;
use toolgate_core::chat::Usage;
use toolgate_core::run::{Event, PendingCounts, Status, TriggerKind};
use toolgate_ports::{
    AccessKeys as _, EndpointFilter, KeyFilter, PendingKind, SessionClaim, SessionFilter, SessionHead, SessionRow,
    SessionStore as _,
};

use super::writer::Write;
use super::*;

fn file(directory: &TempDir) -> std::path::PathBuf {
    directory.path().join("runs.db")
}

/// The options of a store that does not wait for locks.
fn impatient(directory: &TempDir) -> SqliteConnectOptions {
    open::options(&file(directory), Durability::ProcessCrash).unwrap().busy_timeout(Duration::from_millis(10))
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
    Append { run: run.into(), at, events, row, owner: None, lease: Duration::ZERO, session: None }
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
        let options = open::options(&file(&directory), durability).unwrap();
        let mut connection = open::connect_and_migrate(&options).await.unwrap();
        let set: i64 = sqlx::query_scalar("PRAGMA synchronous").fetch_one(&mut connection).await.unwrap();
        let mode: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&mut connection).await.unwrap();
        assert_eq!((set, mode.as_str()), (synchronous, "wal"), "{durability:?}");
    }
}

#[tokio::test]
async fn when_the_disk_is_full_an_append_fails_whole_and_smaller_ones_still_fit() {
    let directory = TempDir::new().unwrap();
    let store = SqliteStore::open_with(impatient(&directory).pragma("max_page_count", "56")).await.unwrap();
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
    let store = SqliteStore::open_with(impatient(&directory).pragma("max_page_count", "60")).await.unwrap();
    store.check_write().await.unwrap();
    unavailable(store.append(append("run_a", 0, 1_000_000)).await);

    for _ in 0..2 {
        let refused = store.check_write().await.unwrap_err().to_string();
        assert!(refused.contains("there is no room for"), "{refused}");
        store.append(append(&format!("run_{}", uuid::Uuid::now_v7()), 0, 10)).await.unwrap();
    }
    store.check_read().await.unwrap();
    store.close().await;

    let store = SqliteStore::open_with(impatient(&directory).pragma("max_page_count", "300")).await.unwrap();
    unavailable(store.append(append("run_a", 0, 2_000_000)).await);
    store.check_write().await.expect("other appends still fit");
}

#[tokio::test]
async fn lists_and_lookups_do_not_delay_keys_and_readiness() {
    let directory = TempDir::new().unwrap();
    let store = SqliteStore::open_with(impatient(&directory)).await.unwrap();
    let mut lists = Vec::new();
    for _ in 0..READERS {
        lists.push(store.readers.acquire().await.unwrap());
    }
    store.load(&"run_a".into(), 0).await.unwrap();
    store.list(&RunFilter { run: Some("run_a".into()), ..RunFilter::default() }).await.unwrap();
    let mut lookups = Vec::new();
    for _ in 0..LOOKUPS {
        lookups.push(store.lookups.acquire().await.unwrap());
    }
    store.check_read().await.unwrap();
    assert_eq!(store.by_hash(&toolgate_ports::KeyHash::of("tg_unknown")).await.unwrap(), None);
}

#[tokio::test]
async fn a_locked_file_is_unavailable_until_the_lock_is_gone() {
    let directory = TempDir::new().unwrap();
    let store = SqliteStore::open_with(impatient(&directory)).await.unwrap();
    store.append(append("run_a", 0, 10)).await.unwrap();
    let options = SqliteConnectOptions::new().filename(file(&directory));
    let mut shell = sqlx::sqlite::SqliteConnection::connect_with(&options).await.unwrap();
    let lock = shell.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let why = unavailable(store.append(append("run_a", 1, 10)).await);
    assert!(why.contains("is locked by another process"), "{why}");
    assert_eq!(store.load(&"run_a".into(), 0).await.unwrap().len(), 1);
    lock.rollback().await.unwrap();
    store.append(append("run_a", 1, 10)).await.unwrap();
}

#[tokio::test]
async fn a_read_only_file_can_be_read_and_says_so_when_appended_to() {
    let directory = TempDir::new().unwrap();
    let store = SqliteStore::open_with(impatient(&directory)).await.unwrap();
    store.append(append("run_a", 0, 10)).await.unwrap();
    store.close().await;
    let store = SqliteStore::open_with(impatient(&directory).read_only(true)).await.unwrap();
    let why = unavailable(store.append(append("run_a", 1, 10)).await);
    assert!(why.contains("is read-only") && why.ends_with("make it and its directory writable"), "{why}");
    assert_eq!(store.load(&"run_a".into(), 0).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_second_attempt_at_a_committed_append_changes_nothing() {
    let directory = TempDir::new().unwrap();
    let mut db = open::connect_and_migrate(&impatient(&directory)).await.unwrap();
    for at in 0..2 {
        let this = AppendEvents::new(append("run_a", at, 10)).unwrap();
        let rival = AppendEvents::new(append("run_a", at, 10)).unwrap();
        assert_eq!(this.apply(&mut db).await.unwrap(), Ok(()));
        assert_eq!(this.apply(&mut db).await.unwrap(), Ok(()));
        assert_eq!(rival.apply(&mut db).await.unwrap(), Err(AppendError::Conflict { length: at + 1 }));
    }
    let events: i64 = sqlx::query_scalar("SELECT count(*) FROM journal").fetch_one(&mut db).await.unwrap();
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
            updated_at: Timestamp::UNIX_EPOCH,
        }),
        version: expected + 1,
        runs: expected + 1,
        usage: Usage::default(),
        title: String::new(),
        metadata: serde_json::Map::new(),
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
    let mut db = open::connect_and_migrate(&impatient(&directory)).await.unwrap();
    let this = AppendEvents::new(claiming("run_a", 0)).unwrap();
    let rival = AppendEvents::new(claiming("run_a", 0)).unwrap();
    let other = AppendEvents::new(claiming("run_b", 0)).unwrap();
    for _ in 0..2 {
        assert_eq!(this.apply(&mut db).await.unwrap(), Ok(()));
        assert_eq!(rival.apply(&mut db).await.unwrap(), Err(AppendError::Conflict { length: 1 }));
        let current = claiming("run_a", 0).session.map(|claim| claim.row.into());
        assert_eq!(other.apply(&mut db).await.unwrap(), Err(AppendError::SessionChanged { current }));
    }
    let rows: Vec<(i64, String)> =
        sqlx::query_as("SELECT version, head FROM session").fetch_all(&mut db).await.unwrap();
    assert_eq!(rows, [(1, "run_a".to_owned())]);
}

#[tokio::test]
async fn a_claim_that_does_not_fit_on_the_disk_changes_nothing() {
    let directory = TempDir::new().unwrap();
    let store = SqliteStore::open_with(impatient(&directory).pragma("max_page_count", "60")).await.unwrap();
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
    assert!(futures::poll!(&mut impatient).is_pending());
    drop(impatient);
    store.append(append("run_a", 1, 10)).await.unwrap();
}

#[tokio::test]
async fn a_blob_is_kept_once_with_a_note_for_each_run_that_uses_it() {
    let directory = TempDir::new().unwrap();
    let store = SqliteStore::open_with(impatient(&directory)).await.unwrap();
    let blob = Blob { media_type: "text/plain".into(), bytes: b"same".to_vec() };
    for run in ["run_a", "run_b", "run_a"] {
        store.put(&run.into(), blob.clone()).await.unwrap();
    }
    store.share(&"run_c".into(), &[blob.handle().unwrap(), BlobHandle::of(b"nothing")]).await.unwrap();
    let mut db = open::connect_and_migrate(&impatient(&directory)).await.unwrap();
    let blobs: i64 = sqlx::query_scalar("SELECT count(*) FROM blob").fetch_one(&mut db).await.unwrap();
    let notes: Vec<String> =
        sqlx::query_scalar("SELECT run FROM blob_use ORDER BY run").fetch_all(&mut db).await.unwrap();
    assert_eq!((blobs, notes), (1, ["run_a", "run_b", "run_c"].map(str::to_owned).to_vec()));
}

#[tokio::test]
async fn a_blob_that_does_not_fit_is_rejected_alone() {
    let directory = TempDir::new().unwrap();
    let store = SqliteStore::open_with(impatient(&directory).pragma("max_page_count", "56")).await.unwrap();
    let huge = Blob { media_type: "text/plain".into(), bytes: vec![0; 1_000_000] };
    let Err(BlobError::Store(StoreError::Full(why))) = store.put(&"run_a".into(), huge.clone()).await else {
        panic!("it was kept")
    };
    assert!(why.starts_with("there is no room for"), "{why}");
    assert_eq!(store.get(&huge.handle().unwrap()).await.unwrap(), None);
    store.append(append("run_a", 0, 10)).await.unwrap();
}

#[tokio::test]
async fn every_lookup_uses_an_index() {
    let directory = TempDir::new().unwrap();
    let mut db = open::connect_and_migrate(&impatient(&directory)).await.unwrap();
    let run = |condition: &str| format!("SELECT title FROM run WHERE {condition}");
    for (sql, plan) in [
        (run("status = ?1 AND id < ?2 ORDER BY id DESC"), "SEARCH run USING INDEX run_by_status (status=? AND id<?)"),
        (run("session = ?1 ORDER BY id DESC"), "SEARCH run USING INDEX run_by_session (session=?)"),
        (run("agent = ?1 ORDER BY id DESC"), "SEARCH run USING INDEX run_by_agent (agent=?)"),
        (run("true AND id < ?1 ORDER BY id DESC"), "SEARCH run USING PRIMARY KEY (id<?)"),
        (run("owner = ?1"), "SEARCH run USING INDEX run_by_owner (owner=?)"),
        (run("status = ?1 AND owner IS NULL ORDER BY id LIMIT 1"), "SEARCH run USING INDEX run_by_status (status=?)"),
        (read::POSITIONS.to_owned(), "SEARCH run USING PRIMARY KEY (id=?)"),
        (read::JOURNAL.to_owned(), "SEARCH journal USING INDEX sqlite_autoindex_journal_1 (run=? AND seq>?)"),
        (blob::GET.to_owned(), "SEARCH blob USING INDEX sqlite_autoindex_blob_1 (sha256=?)"),
        (blob::DESCRIBE.to_owned(), "SEARCH blob USING INDEX sqlite_autoindex_blob_1 (sha256=?)"),
        (
            grant::COVERING.to_owned(),
            "SEARCH given USING INDEX approval_grant_by_call (<expr>=? AND definition=? AND <expr>=?)",
        ),
        (grant::NAMED.to_owned(), "SEARCH given USING PRIMARY KEY (id=?)"),
        (purge::UNQUOTE.to_owned(), "SEARCH idempotency_record USING INDEX idempotency_record_by_run (<expr>=?)"),
        (purge::BLANK.to_owned(), "SEARCH approval_grant USING INDEX approval_grant_by_run (<expr>=?)"),
        (
            purge::UNQUOTE_SESSION.to_owned(),
            "SEARCH idempotency_record USING INDEX idempotency_record_by_session (tenant=? AND <expr>=?)",
        ),
        (
            grant::BLANK_OF_SESSION.to_owned(),
            "SEARCH approval_grant USING INDEX approval_grant_by_session (<expr>=? AND <expr>=?)",
        ),
        (webhook::outbox::UNANNOUNCED.to_owned(), "SCAN run USING INDEX run_by_unannounced"),
        (
            webhook::delivery::TAKE.to_owned(),
            "SEARCH webhook_delivery USING INDEX webhook_delivery_by_due (endpoint=? AND due_at<?)",
        ),
        (
            webhook::delivery::DUE.to_owned(),
            "SEARCH webhook_delivery USING COVERING INDEX webhook_delivery_by_due (endpoint=? AND due_at<?)",
        ),
    ] {
        let explain = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"));
        let steps: Vec<(i64, i64, i64, String)> = sqlx::query_as(explain).fetch_all(&mut db).await.unwrap();
        // A sort step follows the step that reads the index.
        let (.., last) = steps.iter().rfind(|(.., step)| !step.starts_with("USE TEMP B-TREE FOR ORDER BY")).unwrap();
        assert_eq!(last, plan, "{sql}");
    }
}

#[tokio::test]
async fn pages_of_grants_keys_and_endpoints_read_an_index_and_their_own_rows() {
    let directory = TempDir::new().unwrap();
    let mut db = open::connect_and_migrate(&impatient(&directory)).await.unwrap();
    let now = Timestamp::UNIX_EPOCH;
    for is_later_page in [false, true] {
        let (range, newer) = if is_later_page { (" AND created_at<?)", " AND created_at>?)") } else { (")", ")") };
        let tenant = || Some("acme".into());
        let limit = Some(20);
        let keys = KeyFilter { tenant: tenant(), after: is_later_page.then(|| "key_b".into()), limit, id: None };
        let key = format!("SEARCH access_key USING INDEX access_key_by_tenant (tenant=?{range}");
        let endpoints =
            EndpointFilter { tenant: tenant(), after: is_later_page.then(|| "we_b".into()), limit, id: None };
        let endpoint = format!("SEARCH webhook_endpoint USING INDEX webhook_endpoint_by_tenant (tenant=?{newer}");
        let all = GrantFilter {
            tenant: tenant(),
            after: is_later_page.then(|| "grant_b".into()),
            limit,
            ..GrantFilter::default()
        };
        let (agent, session, tool) = (Some("clerk".into()), Some("session".into()), Some("tool".to_owned()));
        let some = GrantFilter { agent, session, tool, ended: true, ..all.clone() };
        let ended = GrantFilter { ended: true, ..all.clone() };
        let grant = format!("SEARCH approval_grant USING COVERING INDEX approval_grant_by_tenant (<expr>=?{range}");
        for (select, wanted) in [
            (access_key::select(&keys), &key),
            (webhook::endpoint::select(&endpoints), &endpoint),
            (grant::select(&all, now), &grant),
            (grant::select(&some, now), &grant),
            (grant::select(&ended, now), &grant),
        ] {
            let sql = select.into_string();
            let steps = steps(&mut db, &sql).await;
            let reads = |step: &&String| step.starts_with("SEARCH") || step.starts_with("SCAN");
            let reads: Vec<&String> = steps.iter().filter(reads).collect();
            assert!(reads.contains(&wanted), "{sql}: {steps:?}");
            let others = reads.iter().filter(|step| **step != wanted && **step != "SCAN page");
            assert!(others.clone().all(|step| step.ends_with("USING PRIMARY KEY (id=?)")), "{sql}: {steps:?}");
        }
    }
}

/// The steps of SQLite's query plan for a filter.
async fn plan(db: &mut sqlx::sqlite::SqliteConnection, filter: &RunFilter) -> Vec<String> {
    steps(db, &read::select(filter).into_string()).await
}

/// The steps of SQLite's query plan for a query.
async fn steps(db: &mut sqlx::sqlite::SqliteConnection, select: &str) -> Vec<String> {
    let explain = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {select}"));
    let steps: Vec<(i64, i64, i64, String)> = sqlx::query_as(explain).fetch_all(db).await.unwrap();
    steps.into_iter().map(|(.., step)| step).collect()
}

#[tokio::test]
async fn sessions_and_conversations_are_looked_up_by_primary_key() {
    let directory = TempDir::new().unwrap();
    let mut db = open::connect_and_migrate(&impatient(&directory)).await.unwrap();
    let segment = "SEARCH segment USING INDEX sqlite_autoindex_segment_1 (tenant=? AND run=?)";
    let session = "SEARCH session USING PRIMARY KEY (tenant=? AND id=?)";
    let (head, run) = ("SEARCH run USING PRIMARY KEY (id=?) LEFT-JOIN", "SEARCH run USING PRIMARY KEY (id=?)");
    let segment_of_a_link = format!("{segment} LEFT-JOIN");
    for (sql, wanted) in [
        (session::FIND, vec![session, head]),
        (session::REPLACE, vec![session, run]),
        (session::LENGTHS, vec![run, head, &segment_of_a_link]),
        (session::SEGMENTS, vec![segment]),
        (purge::FORGET, vec![segment, run]),
    ] {
        let steps = steps(&mut db, sql).await;
        let searches: Vec<&str> = steps.iter().map(String::as_str).filter(|step| step.starts_with("SEARCH")).collect();
        assert_eq!(searches, wanted, "{steps:?}");
        let scanned: Vec<&String> = steps.iter().filter(|step| step.starts_with("SCAN")).collect();
        let is_own = |step: &&String| {
            ["SCAN chain", "SCAN CONSTANT ROW", "SCAN asked VIRTUAL TABLE INDEX 1:"].contains(&step.as_str())
        };
        assert!(scanned.iter().all(is_own), "{steps:?}");
    }
}

#[tokio::test]
async fn a_page_of_sessions_reads_its_index_and_its_own_rows() {
    let directory = TempDir::new().unwrap();
    let mut db = open::connect_and_migrate(&impatient(&directory)).await.unwrap();
    let every = [false, true].into_iter().flat_map(|a| [false, true].map(|b| (a, b)));
    for (is_filtered, is_later_page) in every {
        let filter = SessionFilter {
            agent: is_filtered.then(|| "clerk".into()),
            principal: is_filtered.then(|| "ann".into()),
            before: is_later_page.then(|| (Timestamp::UNIX_EPOCH, "s".into())),
            ..SessionFilter::default()
        };
        let range = if is_later_page { " AND (created_at,id)<(?,?))" } else { ")" };
        let page = format!("SEARCH session USING COVERING INDEX session_by_tenant (tenant=?{range}");
        let rows =
            ["SEARCH session USING PRIMARY KEY (tenant=? AND id=?)", "SEARCH run USING PRIMARY KEY (id=?) LEFT-JOIN"];
        let steps = steps(&mut db, &session::select(&filter).into_string()).await;
        let searches: Vec<&str> = steps.iter().map(String::as_str).filter(|step| step.starts_with("SEARCH")).collect();
        assert_eq!(searches, [page.as_str(), rows[0], rows[1]], "{filter:?}: {steps:?}");
    }
}

#[tokio::test]
async fn sweeps_and_the_command_line_read_an_index() {
    let directory = TempDir::new().unwrap();
    let mut db = open::connect_and_migrate(&impatient(&directory)).await.unwrap();
    let none = RunFilter::default;
    let pending = RunFilter { status: Some(Status::Pending), ..none() };
    let due_by = Some(Timestamp::UNIX_EPOCH);
    let (approvals, tasks) = (Some(PendingKind::Approval), Some(PendingKind::Task));
    let before = Some(RunId::from("run_b"));
    let run = Some(RunId::from("run_a"));
    let (session, agent, tenant) = (Some("s".into()), Some("a".into()), Some(toolgate_core::id::Tenant::default()));
    for (filter, step) in [
        (RunFilter { due_by, ..pending.clone() }, "SEARCH run USING INDEX run_by_due (due_at<?)"),
        (
            RunFilter { due_by, pending_kind: approvals, before: before.clone(), ..pending.clone() },
            "SEARCH run USING INDEX run_by_due (due_at<?)",
        ),
        (RunFilter { pending_kind: tasks, ..pending.clone() }, "SCAN run USING INDEX run_by_tasks"),
        (RunFilter { pending_kind: tasks, before, ..pending.clone() }, "SEARCH run USING INDEX run_by_tasks (id<?)"),
        (RunFilter { pending_kind: approvals, ..pending.clone() }, "SCAN run USING INDEX run_by_approvals"),
        (pending.clone(), "SEARCH run USING INDEX run_by_status (status=?)"),
        (RunFilter { agent: agent.clone(), ..pending.clone() }, "SEARCH run USING INDEX run_by_status (status=?)"),
        (RunFilter { session, ..pending.clone() }, "SEARCH run USING INDEX run_by_session (session=?)"),
        (RunFilter { agent, ..none() }, "SEARCH run USING INDEX run_by_agent (agent=?)"),
        (none(), "SCAN run"),
        (RunFilter { run: run.clone(), due_by, ..pending }, "SEARCH run USING PRIMARY KEY (id=?)"),
        (RunFilter { run, tenant, purged: true, ..none() }, "SEARCH run USING PRIMARY KEY (id=?)"),
    ] {
        assert_eq!(plan(&mut db, &filter).await.first().unwrap(), step, "{filter:?}");
    }
}

#[tokio::test]
async fn a_page_of_a_tenant_reads_its_index_and_its_own_rows() {
    let directory = TempDir::new().unwrap();
    let mut db = open::connect_and_migrate(&impatient(&directory)).await.unwrap();
    let either = [false, true];
    let every = either.iter().flat_map(|a| either.iter().flat_map(move |b| either.map(|c| (*a, *b, c))));
    for (by_status, by_agent, by_session) in every {
        for (pending_kind, before) in
            [(None, None), (None, Some("run_b")), (Some(PendingKind::Approval), Some("run_b"))]
        {
            let filter = RunFilter {
                tenant: Some("acme".into()),
                status: by_status.then_some(Status::Completed),
                agent: by_agent.then(|| "clerk".into()),
                session: by_session.then(|| "session".into()),
                pending_kind,
                before: before.map(Into::into),
                ..RunFilter::default()
            };
            let index = match (pending_kind, by_session, by_agent, by_status) {
                (Some(_), ..) => "run_by_tenant_approvals (tenant=?",
                (None, true, ..) => "run_by_tenant_session (tenant=? AND session=?",
                (None, false, true, true) => "run_by_tenant_agent_status (tenant=? AND agent=? AND status=?",
                (None, false, true, false) => "run_by_tenant_agent (tenant=? AND agent=?",
                (None, false, false, true) => "run_by_tenant_status (tenant=? AND status=?",
                (None, false, false, false) => "run_by_tenant (tenant=?",
            };
            let range = if before.is_some() { " AND id<?)" } else { ")" };
            let expected = format!("SEARCH run USING COVERING INDEX {index}{range}");
            let steps = plan(&mut db, &filter).await;
            let searched: Vec<&String> = steps.iter().filter(|step| step.contains("run ")).collect();
            assert_eq!(searched, [&expected, "SEARCH run USING PRIMARY KEY (id=?)"], "{filter:?}: {steps:?}");
            for (schedule, index) in [
                (None, "run_by_tenant_trigger (tenant=? AND trigger_type=?"),
                (Some("nightly"), "run_by_tenant_schedule (tenant=? AND schedule=?"),
            ] {
                let filter = RunFilter {
                    trigger: Some(TriggerKind::Schedule),
                    schedule: schedule.map(str::to_owned),
                    ..filter.clone()
                };
                let expected = format!("SEARCH run USING COVERING INDEX {index}{range}");
                let steps = plan(&mut db, &filter).await;
                let is_by_trigger = pending_kind.is_none() && !by_session;
                assert!(!is_by_trigger || steps.contains(&expected), "{filter:?}: {steps:?}");
            }
        }
    }
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
