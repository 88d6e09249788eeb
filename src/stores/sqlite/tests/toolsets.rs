//! Toolsets of journals: stored once for all runs that list the same tools.

use toolgate_core::tool::{ExternalTool, Toolset, ToolsetRules};

use super::*;

/// An append in which a run lists this many tools.
fn listing(run: &str, tools: usize) -> Append {
    let tool = |number| ExternalTool::new(format!("tool_{number}"), "Reads part of a file.");
    let tools: Vec<ExternalTool> = (0..tools).map(tool).collect();
    let toolset = Arc::new(Toolset::assemble(&tools, &[], &ToolsetRules::default()));
    let mut append = append(run, 0, 10);
    append.events[0].event = Event::ToolsListed { toolset };
    append
}

/// The bytes of all journals, and of all blobs.
fn stored(directory: &TempDir) -> (i64, i64) {
    let db = open::connect(&impatient(directory)).unwrap();
    let sizes = "SELECT (SELECT coalesce(sum(length(event)), 0) FROM journal),
        (SELECT coalesce(sum(length(bytes)), 0) FROM blob)";
    query(sizes).one(&db).unwrap()
}

async fn purge(store: &SqliteStore, run: &str) {
    store.writer.make(End(run.into())).await.unwrap();
    assert!(matches!(store.purge(&run.into(), 1, Timestamp::UNIX_EPOCH).await, Ok(Purged::Since(_))));
}

/// Marks a run as ended.
struct End(RunId);

impl Write for End {
    type Answer = ();

    fn apply(&self, db: &Connection) -> Result<(), rusqlite::Error> {
        query("UPDATE run SET status = 'completed' WHERE id = ?1").bind(self.0.as_str()).execute(db).map(drop)
    }
}

#[tokio::test]
async fn a_journal_is_no_larger_with_many_tools() {
    let directory = TempDir::new().unwrap();
    let store = SqliteStore::open_with(impatient(&directory)).await.unwrap();
    store.append(listing("run_few", 3)).await.unwrap();
    let (few, _) = stored(&directory);
    store.append(listing("run_many", 300)).await.unwrap();
    let (both, _) = stored(&directory);
    assert_eq!(both, 2 * few);
}

#[tokio::test]
async fn runs_with_the_same_tools_share_one_toolset_until_the_last_of_them_is_deleted() {
    let directory = TempDir::new().unwrap();
    let store = SqliteStore::open_with(impatient(&directory)).await.unwrap();
    for run in ["run_a", "run_b"] {
        store.append(listing(run, 300)).await.unwrap();
    }
    let (_, once) = stored(&directory);
    store.append(listing("run_c", 300)).await.unwrap();
    assert_eq!(stored(&directory).1, once);

    for run in ["run_a", "run_b", "run_c"] {
        assert_eq!(store.load(&run.into(), 0).await.unwrap(), listing(run, 300).events);
        purge(&store, run).await;
        assert_eq!(stored(&directory).1, if run == "run_c" { 0 } else { once }, "{run}");
    }
    store.append(listing("run_d", 300)).await.unwrap();
    assert_eq!(store.load(&"run_d".into(), 0).await.unwrap(), listing("run_d", 300).events);
}

#[tokio::test]
async fn another_process_reads_the_toolset_from_the_file() {
    let directory = TempDir::new().unwrap();
    let store = SqliteStore::open_with(impatient(&directory)).await.unwrap();
    store.append(listing("run_a", 3)).await.unwrap();
    store.append(listing("run_b", 3)).await.unwrap();
    store.close().await;

    let store = SqliteStore::open_with(impatient(&directory)).await.unwrap();
    let listed = async |run: &str| {
        let journal = store.load(&run.into(), 0).await.unwrap();
        let Event::ToolsListed { toolset } = &journal[0].event else { panic!("{journal:?}") };
        toolset.clone()
    };
    let toolset = listed("run_a").await;
    assert_eq!(toolset.len(), 3);
    assert!(Arc::ptr_eq(&toolset, &listed("run_b").await), "both runs share it");
}

#[tokio::test]
async fn a_missing_toolset_is_a_corrupt_journal_of_its_run_alone() {
    let directory = TempDir::new().unwrap();
    let store = SqliteStore::open_with(impatient(&directory)).await.unwrap();
    store.append(listing("run_a", 3)).await.unwrap();
    store.append(append("run_b", 0, 10)).await.unwrap();
    store.close().await;
    open::connect(&impatient(&directory)).unwrap().execute_batch("DELETE FROM blob").unwrap();

    let store = SqliteStore::open_with(impatient(&directory)).await.unwrap();
    let Err(StoreError::Corrupt(what)) = store.load(&"run_a".into(), 0).await else { panic!("it was read") };
    assert!(what.starts_with("the toolset media://sha256-") && what.ends_with(" of run run_a is missing"), "{what}");
    assert_eq!(store.load(&"run_b".into(), 0).await.unwrap().len(), 1);
}
