//! Database files: closed, reopened, shared, tampered with, foreign.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use tempfile::TempDir;
use toolgate::core::chat::Usage;
use toolgate::core::id::Tenant;
use toolgate::core::json;
use toolgate::core::run::{Event, OutputVerdict, Status};
use toolgate::ports::{
    AppendError, ApprovalCache, EventLog as _, GrantFilter, RunFilter, RunRow, RunStore, SessionStore as _, StoreError,
};
use toolgate::stores::SqliteStore;

use super::conformance::grant;
use super::journals::{Appending, LONG, any, append, claiming, fact, facts, node, run, segment};

fn file(directory: &TempDir) -> PathBuf {
    directory.path().join("state").join("runs.db")
}

async fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path).await.unwrap()
}

/// Changes the file from outside.
fn tamper(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

async fn refusal(path: &Path) -> StoreError {
    SqliteStore::open(path).await.expect_err("it opened")
}

/// Undoes the steps of the schema from the tenth on.
const WITHOUT_LATEST_STEPS: [&str; 16] = [
    "DROP TABLE feedback",
    "DROP TABLE file",
    "DROP INDEX idempotency_record_by_file",
    "DROP TABLE day_usage",
    "ALTER TABLE run DROP COLUMN started_by",
    "DROP INDEX webhook_endpoint_by_run",
    "DROP INDEX webhook_endpoint_of_run_by_age",
    "DROP INDEX webhook_endpoint_by_tenant",
    "ALTER TABLE webhook_endpoint DROP COLUMN run",
    "CREATE INDEX webhook_endpoint_by_tenant ON webhook_endpoint (tenant, created_at, id)",
    "DROP INDEX webhook_delivery_of_run_by_due",
    "ALTER TABLE webhook_delivery DROP COLUMN of_run",
    "DROP INDEX run_by_unsent_spans",
    "ALTER TABLE run DROP COLUMN spans_sent",
    "ALTER TABLE run DROP COLUMN spans_until",
    "DROP TABLE stream_ticket",
];

#[tokio::test]
async fn a_store_reopened_from_its_file_has_everything() {
    let directory = TempDir::new().unwrap();
    let store = open(&file(&directory)).await;
    let owned = append(run(1), 0, 3).by("node_a");
    let waiting = append(run(2), 0, 2).leaving(Status::Pending);
    let given = grant("g", "h");
    store.append(owned.clone()).await.unwrap();
    store.append(waiting.clone()).await.unwrap();
    store.grant(&given).await.unwrap();
    store.close().await;

    let store = open(&file(&directory)).await;
    assert_eq!(store.list(&RunFilter::default()).await.unwrap(), [waiting.row, owned.row]);
    assert_eq!(store.load(&run(1), 0).await.unwrap(), facts(0, 3));
    assert_eq!(store.load(&run(2), 0).await.unwrap(), facts(0, 2));
    assert_eq!(store.grants(&GrantFilter::default(), jiff::Timestamp::now()).await.unwrap(), [given]);
    let other = store.append(append(run(1), 3, 1).by("node_b")).await;
    assert_eq!(other, Err(AppendError::Owned(node("node_a"))));
}

#[tokio::test]
async fn the_last_renewal_of_a_lease_is_known_while_a_run_is_executed() {
    let directory = TempDir::new().unwrap();
    let store = open(&file(&directory)).await;
    let before = jiff::Timestamp::now();
    store.append(append(run(1), 0, 1).by("node_a")).await.unwrap();
    store.append(append(run(2), 0, 1).by("node_a").leaving(Status::Pending)).await.unwrap();

    let renewed = store.last_renewal(&run(1), &node("node_b"), LONG).await.unwrap().expect("it has an owner");

    let off = renewed.duration_since(before).as_millis();
    assert!((-1..5000).contains(&off), "{off}");
    assert_eq!(store.last_renewal(&run(1), &node("node_a"), LONG).await.unwrap(), None, "its own");
    for idle in [run(2), run(3)] {
        assert_eq!(store.last_renewal(&idle, &node("node_b"), LONG).await.unwrap(), None);
    }
}

#[tokio::test]
async fn sessions_and_conversations_survive_a_restart() {
    let directory = TempDir::new().unwrap();
    let store = open(&file(&directory)).await;
    let first = claiming(run(1), "chat", 0).leaving(Status::Completed);
    let second = claiming(run(2), "chat", 1).after(run(1)).with_segment(segment("Hello"));
    for append in [&first, &second] {
        store.append(append.clone()).await.unwrap();
    }
    let session = store.session(&Tenant::default(), &"chat".into()).await.unwrap();
    let conversation = store.conversation(&Tenant::default(), &run(2)).await.unwrap();
    assert_eq!(session, Some(second.session.unwrap().row));
    assert_eq!(conversation[0].segment, Some(segment("Hello")));
    store.close().await;

    let store = open(&file(&directory)).await;
    assert_eq!(store.session(&Tenant::default(), &"chat".into()).await.unwrap(), session);
    assert_eq!(store.conversation(&Tenant::default(), &run(2)).await.unwrap(), conversation);
    assert_eq!(store.list(&RunFilter::default()).await.unwrap(), [second.row, first.row]);
}

#[tokio::test]
async fn a_file_without_sessions_is_migrated() {
    let directory = TempDir::new().unwrap();
    let store = open(&file(&directory)).await;
    let old = append(run(1), 0, 2).leaving(Status::Incomplete);
    store.append(old.clone()).await.unwrap();
    store.close().await;
    for sql in WITHOUT_LATEST_STEPS.into_iter().chain([
        "DROP TABLE session",
        "DROP TABLE segment",
        "ALTER TABLE run DROP COLUMN predecessor",
        "ALTER TABLE run DROP COLUMN usage",
        "ALTER TABLE run DROP COLUMN result",
        "DROP INDEX run_by_tenant_trigger",
        "DROP INDEX run_by_tenant_schedule",
        "DROP INDEX run_by_tenant_principal",
        "ALTER TABLE run DROP COLUMN principal",
        "ALTER TABLE run DROP COLUMN metadata",
        "ALTER TABLE run DROP COLUMN trigger_type",
        "ALTER TABLE run DROP COLUMN schedule",
        "DROP INDEX idempotency_record_by_session",
        "DROP INDEX approval_grant_by_run",
        "DROP INDEX approval_grant_by_session",
        "DROP TABLE rule_counter",
        "DROP TABLE rule_use",
        "UPDATE run SET status = 'turn_limit'",
        "PRAGMA user_version = 1",
    ]) {
        tamper(&file(&directory), sql);
    }

    let store = open(&file(&directory)).await;
    let unknown = RunRow { usage: Usage::default(), result: None, ..old.row };
    for status in [None, Some(Status::Incomplete)] {
        let statuses = status.into_iter().collect();
        let listed = store.list(&RunFilter { statuses, ..RunFilter::default() }).await.unwrap();
        assert_eq!(listed, std::slice::from_ref(&unknown), "{status:?}");
    }
    assert_eq!(store.load(&run(1), 0).await.unwrap(), facts(0, 2));
    let next = claiming(run(2), "session_1", 0).after(run(1)).with_segment(segment("Hello"));
    store.append(next).await.unwrap();
    let conversation = store.conversation(&Tenant::default(), &run(2)).await.unwrap();
    assert_eq!(conversation.into_iter().map(|link| link.run).collect::<Vec<_>>(), [run(1), run(2)]);
}

#[tokio::test]
async fn a_file_without_principals_and_metadata_is_migrated() {
    let directory = TempDir::new().unwrap();
    let store = open(&file(&directory)).await;
    let old = append(run(1), 0, 2).leaving(Status::Completed);
    store.append(old.clone()).await.unwrap();
    let bare = append(run(2), 0, 1).leaving(Status::Completed);
    store.append(bare.clone()).await.unwrap();
    store.close().await;
    for sql in WITHOUT_LATEST_STEPS.into_iter().chain([
        "DROP INDEX run_by_tenant_principal",
        "ALTER TABLE run DROP COLUMN principal",
        "ALTER TABLE run DROP COLUMN metadata",
        "UPDATE journal SET event = json_set(event, '$.spec.principal', 'ann', '$.metadata', json('{\"ticket\": 9}'))
            WHERE seq = 0 AND run = 'run_000001'",
        "PRAGMA user_version = 7",
    ]) {
        tamper(&file(&directory), sql);
    }

    let store = open(&file(&directory)).await;
    let metadata = serde_json::json!({"ticket": 9}).as_object().unwrap().clone();
    let known = RunRow { principal: Some("ann".into()), metadata, ..old.row };
    assert_eq!(store.list(&RunFilter::default()).await.unwrap(), [bare.row, known.clone()]);
    assert_eq!(store.unsent_spans(None, 9).await.unwrap(), [], "spans of old runs are not exported");
    let principal = Some("ann".into());
    let tenant = Some(Tenant::default());
    let filter = RunFilter { principal, tenant, ..RunFilter::default() };
    assert_eq!(store.list(&filter).await.unwrap(), [known]);
}

#[tokio::test]
async fn events_of_a_file_without_a_log_are_logged_as_they_were_written() {
    let directory = TempDir::new().unwrap();
    let store = open(&file(&directory)).await;
    for (number, at) in [(2, 0), (1, 0), (2, 1)] {
        store.append(append(run(number), at, 1)).await.unwrap();
    }
    let tenant = Tenant::default();
    let before = store.logged(&tenant, 0, 10).await.unwrap();
    store.close().await;
    for sql in WITHOUT_LATEST_STEPS.into_iter().chain([
        "CREATE TABLE old (run TEXT, seq INTEGER, at TEXT, commit_id BLOB, event TEXT, PRIMARY KEY (run, seq)) STRICT",
        "INSERT INTO old SELECT run, seq, at, commit_id, event FROM journal ORDER BY position",
        "DROP TABLE journal",
        "ALTER TABLE old RENAME TO journal",
        "PRAGMA user_version = 8",
    ]) {
        tamper(&file(&directory), sql);
    }

    let store = open(&file(&directory)).await;
    assert_eq!(store.logged(&tenant, 0, 10).await.unwrap(), before);
    assert_eq!(before.events.iter().map(|event| event.run.clone()).collect::<Vec<_>>(), [run(2), run(1), run(2)]);
    store.append(append(run(1), 1, 1)).await.unwrap();
    assert_eq!(store.last_position().await.unwrap(), 4);
}

#[tokio::test]
async fn an_unreadable_session_or_segment_is_named() {
    let directory = TempDir::new().unwrap();
    let store = open(&file(&directory)).await;
    store.append(claiming(run(1), "chat", 0).leaving(Status::Completed)).await.unwrap();
    let next = claiming(run(2), "chat", 1).after(run(1)).with_segment(segment("Hello"));
    store.append(next).await.unwrap();
    tamper(&file(&directory), "UPDATE session SET body = '{}'");
    tamper(&file(&directory), "UPDATE segment SET body = 'half a seg'");

    let what = |answer: Result<String, StoreError>| match answer {
        Err(StoreError::Corrupt(what)) => what,
        other => panic!("{other:?}"),
    };
    let session = store.session(&Tenant::default(), &"chat".into()).await.map(|row| format!("{row:?}"));
    assert!(what(session).starts_with("session chat is unreadable: "));
    let conversation = store.conversation(&Tenant::default(), &run(2)).await.map(|links| format!("{links:?}"));
    assert!(what(conversation).starts_with(&format!("the segment of run {} is unreadable: ", run(1))));
    let refused = store.append(claiming(run(3), "chat", 0)).await;
    assert!(matches!(&refused, Err(AppendError::Store(StoreError::Corrupt(_)))), "{refused:?}");
    assert_eq!(store.load(&run(2), 0).await.unwrap(), facts(0, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_share_a_file_claim_a_session_in_one_order() {
    let directory = TempDir::new().unwrap();
    let stores = [Arc::new(open(&file(&directory)).await), Arc::new(open(&file(&directory)).await)];
    let tenant = Tenant::default();
    let claimants = stores.clone().into_iter().enumerate().map(|(process, store)| {
        tokio::spawn(async move {
            let mut won = 0;
            for number in (process..100).step_by(2) {
                let current = store.session(&Tenant::default(), &"chat".into()).await.unwrap();
                let expected = current.as_ref().map_or(0, |row| row.version);
                let claim = claiming(run(number), "chat", expected).leaving(Status::Completed);
                let claim = match current.and_then(|row| row.head) {
                    Some(head) => claim.after(head.run).with_segment(segment("said")),
                    None => claim,
                };
                match store.append(claim).await {
                    Ok(()) => won += 1,
                    Err(AppendError::SessionChanged { current }) => {
                        assert_ne!(current.map(|row| row.version), Some(expected))
                    }
                    Err(other) => panic!("{other}"),
                }
            }
            won
        })
    });
    let mut won = 0;
    for claimant in claimants.collect::<Vec<_>>() {
        won += claimant.await.unwrap();
    }
    let session = stores[0].session(&tenant, &"chat".into()).await.unwrap().unwrap();
    assert_eq!((session.version, session.runs), (won, won));
    let chain = stores[1].conversation(&tenant, &session.head.unwrap().run).await.unwrap();
    assert_eq!(chain.len() as u64, won, "every run is in the conversation");
    assert_eq!(chain.iter().filter(|link| link.segment.is_none()).count(), 1, "only the head has no segment");
}

#[tokio::test]
async fn an_event_nested_too_deeply_to_be_read_back_is_rejected() {
    let directory = TempDir::new().unwrap();
    let store = open(&file(&directory)).await;
    let nested = |levels: usize| {
        let value = (0..levels).fold(serde_json::json!("]\\\"["), |inner, _| serde_json::json!([inner]));
        let mut append = append(run(1), 0, 2);
        append.events[1].event = Event::OutputValidated { verdict: OutputVerdict::Valid { value: Some(value) } };
        append
    };
    let refused = store.append(nested(125)).await;
    assert!(
        matches!(&refused, Err(AppendError::Store(StoreError::Corrupt(why))) if why.contains("nested")),
        "{refused:?}"
    );
    assert_eq!(store.load(&run(1), 0).await.unwrap(), []);
    // Everything that is accepted up to the last level can be read back.
    for levels in json::MAX_DEPTH..125 {
        let mut append = nested(levels);
        append.run = run(levels);
        append.row.id = run(levels);
        let Ok(()) = store.append(append.clone()).await else { continue };
        assert_eq!(store.load(&run(levels), 0).await.as_deref(), Ok(append.events.as_slice()), "{levels} levels");
    }
    assert_eq!(store.load(&run(json::MAX_DEPTH), 0).await.unwrap().len(), 2);
}

#[tokio::test]
async fn closing_writes_what_is_queued_and_leaves_one_file() {
    let directory = TempDir::new().unwrap();
    let store = Arc::new(open(&file(&directory)).await);
    let appends: Vec<_> = (0..100)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move { store.append(append(run(number), 0, 1)).await })
        })
        .collect();
    tokio::task::yield_now().await;
    store.close().await;
    store.close().await;
    let mut kept = 0;
    for append in appends {
        match append.await.unwrap() {
            Ok(()) => kept += 1,
            Err(error) => assert_eq!(error, StoreError::Unavailable("it is closed".to_owned()).into()),
        }
    }
    let closed = Err(StoreError::Unavailable("it is closed".to_owned()));
    assert_eq!(store.load(&run(0), 0).await, closed);
    assert_eq!(store.renew(&node("node_a"), &[run(0)], LONG).await, closed.map(|_| ()));

    let files: Vec<_> = std::fs::read_dir(file(&directory).parent().unwrap()).unwrap().collect();
    assert_eq!(files.len(), 1, "{files:?}");
    assert!(kept > 0);
    assert_eq!(open(&file(&directory)).await.list(&RunFilter::default()).await.unwrap().len(), kept);
}

#[cfg(unix)]
#[tokio::test]
async fn a_new_file_and_its_directory_are_for_this_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("a/b/runs.db");
    let store = open(&path).await;
    store.append(append(run(1), 0, 1)).await.unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory.path().join("a")), 0o700);
    assert_eq!(mode(&directory.path().join("a/b")), 0o700);
    for name in ["runs.db", "runs.db-wal", "runs.db-shm"] {
        assert_eq!(mode(&path.with_file_name(name)), 0o600, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_file_may_be_opened_by_many_at_once() {
    let directory = TempDir::new().unwrap();
    let openings: Vec<_> = (0..8)
        .map(|number| {
            let path = file(&directory);
            tokio::spawn(async move {
                let store = open(&path).await;
                store.append(append(run(number), 0, 1)).await.unwrap();
                store
            })
        })
        .collect();
    let mut stores = Vec::new();
    for opening in openings {
        stores.push(opening.await.unwrap());
    }
    for store in stores {
        assert_eq!(store.list(&RunFilter::default()).await.unwrap().len(), 8);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_share_a_file_lose_no_append_and_claim_no_run_twice() {
    let directory = TempDir::new().unwrap();
    let first = Arc::new(open(&file(&directory)).await);
    let second = Arc::new(open(&file(&directory)).await);
    first.append(append(run(0), 0, 1)).await.unwrap();
    for number in 1..=200 {
        first.append(append(run(number), 0, 1)).await.unwrap();
    }
    let workers = [(first.clone(), "node_a"), (second.clone(), "node_b")].map(|(store, name)| {
        tokio::spawn(async move {
            let (mut claimed, mut won) = (0, 0);
            for at in 1..=50 {
                claimed += store.claim(&any(name)).await.unwrap().len();
                match store.append(append(run(0), at, 1)).await {
                    Ok(()) => won += 1,
                    Err(AppendError::Conflict { .. }) => {}
                    Err(other) => panic!("{other}"),
                }
            }
            (claimed, won)
        })
    });
    let (mut claimed, mut won) = (0, 0);
    for worker in workers {
        let (own, appends) = worker.await.unwrap();
        claimed += own;
        won += appends;
    }
    assert_eq!(claimed, 201);
    assert_eq!(second.load(&run(0), 0).await.unwrap(), facts(0, 1 + won));
}

#[tokio::test]
async fn an_unreadable_event_is_named_and_fails_only_its_run() {
    let directory = TempDir::new().unwrap();
    let store = open(&file(&directory)).await;
    for number in 1..=4 {
        store.append(append(run(number), 0, 4)).await.unwrap();
    }
    tamper(
        &file(&directory),
        r#"UPDATE journal SET event = '{"type":"tool.invented"}' WHERE run = 'run_000001' AND seq = 2"#,
    );
    tamper(&file(&directory), "UPDATE journal SET event = 'half a fa' WHERE run = 'run_000002' AND seq = 3");
    tamper(&file(&directory), "UPDATE journal SET at = 'noon' WHERE run = 'run_000003' AND seq = 0");

    for (number, seq, kind) in [(1, 2, "tool.invented"), (2, 3, "unknown"), (3, 0, "execution.started")] {
        let Err(StoreError::Corrupt(what)) = store.load(&run(number), 0).await else { panic!("run {number} was read") };
        let named = format!("event {seq} of run {}, of type `{kind}`", run(number));
        assert!(what.starts_with(&named), "{what}");
    }
    assert_eq!(store.load(&run(1), 3).await.unwrap(), [fact(3)]);
    assert_eq!(store.load(&run(4), 0).await.unwrap(), facts(0, 4));
    assert_eq!(store.list(&RunFilter::default()).await.unwrap().len(), 4);
    store.append(append(run(1), 4, 1)).await.unwrap();
}

#[tokio::test]
async fn a_gap_in_a_journal_is_detected() {
    let directory = TempDir::new().unwrap();
    let store = open(&file(&directory)).await;
    store.append(append(run(1), 0, 4)).await.unwrap();
    tamper(&file(&directory), "DELETE FROM journal WHERE seq = 1");
    let missing = StoreError::Corrupt(format!("event 1 of run {} is missing, the next one is 2", run(1)));
    assert_eq!(store.load(&run(1), 0).await, Err(missing));
}

#[tokio::test]
async fn a_file_of_a_newer_toolgate_is_rejected() {
    let directory = TempDir::new().unwrap();
    let path = file(&directory);
    open(&path).await.close().await;
    tamper(&path, "PRAGMA user_version = 99");
    let StoreError::Corrupt(what) = refusal(&path).await else { panic!("not corrupt") };
    assert!(what.starts_with("a newer toolgate wrote ") && what.contains("version 99"), "{what}");
}

#[tokio::test]
async fn a_file_of_an_earlier_build_is_rejected_unchanged() {
    let directory = TempDir::new().unwrap();
    let path = file(&directory);
    open(&path).await.close().await;
    for sql in [
        "PRAGMA user_version = 0",
        "CREATE TABLE _sqlx_migrations (version BIGINT PRIMARY KEY)",
        "ALTER TABLE approval_grant RENAME TO standing_grant",
    ] {
        tamper(&path, sql);
    }
    let before = std::fs::read(&path).unwrap();
    let StoreError::Corrupt(what) = refusal(&path).await else { panic!("not corrupt") };
    assert!(what.starts_with("an earlier build of toolgate wrote ") && what.contains("another file"), "{what}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn a_file_that_is_not_a_database_is_rejected_unchanged() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("diary.txt");
    let text = "Dear diary, today a program took me for a database. ".repeat(40);
    std::fs::write(&path, &text).unwrap();
    let StoreError::Corrupt(what) = refusal(&path).await else { panic!("not corrupt") };
    assert!(what.contains("is not an SQLite database"), "{what}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[tokio::test]
async fn a_path_that_cannot_be_a_file_is_rejected() {
    let directory = TempDir::new().unwrap();
    let occupied = directory.path().join("occupied");
    std::fs::write(&occupied, "").unwrap();
    for path in [directory.path().to_owned(), occupied.join("runs.db")] {
        let StoreError::Unavailable(why) = refusal(&path).await else { panic!("not unavailable") };
        assert!(why.contains("a directory this user may write to"), "{why}");
    }
}
