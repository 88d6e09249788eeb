//! `kill -9` during writes: every acknowledged append is present, and no journal has a gap.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use tempfile::TempDir;
use toolgate::core::blob::Blob;
use toolgate::ports::{BlobStore, RunFilter, RunStore};
use toolgate::stores::{Durability, SqliteStore};

use super::journals::{append, facts, run};

/// The variable that passes the file to the child process, which is this test binary.
const FILE: &str = "TOOLGATE_TEST_CRASH_FILE";
const RUNS: usize = 8;
const ENOUGH: usize = 300;

#[test]
fn a_killed_process_loses_nothing_it_acknowledged() {
    if let Some(file) = std::env::var_os(FILE) {
        return append_until_killed(Path::new(&file));
    }
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("runs.db");
    for _ in 0..4 {
        let acknowledged = kill_in_the_middle(&file);
        check(&file, &acknowledged);
    }
}

/// Runs the child until it has acknowledged enough appends, kills it, and returns the minimum length of each journal.
fn kill_in_the_middle(file: &Path) -> BTreeMap<usize, u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "stores::crash::a_killed_process_loses_nothing_it_acknowledged"])
        .env(FILE, file)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut acknowledged = BTreeMap::new();
    let mut count = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let Some((number, length)) = line.strip_prefix("ack ").and_then(|ack| ack.split_once(' ')) else { continue };
        // The kill may have cut off the last line.
        let (Ok(number), Some(Ok(length))) = (number.parse(), length.strip_suffix('.').map(str::parse)) else {
            continue;
        };
        acknowledged.insert(number, length);
        count += 1;
        if count == ENOUGH {
            child.kill().unwrap();
        }
    }
    assert!(!child.wait().unwrap().success());
    assert!(count >= ENOUGH, "the child stopped by itself after {count} appends");
    acknowledged
}

#[tokio::main]
async fn check(file: &Path, acknowledged: &BTreeMap<usize, u64>) {
    let store = SqliteStore::open_with_durability(file, Durability::ProcessCrash).await.unwrap();
    let rows = store.list(&RunFilter::default()).await.unwrap();
    for row in &rows {
        assert_eq!(store.load(&row.id, 0).await.unwrap(), facts(0, row.version), "{}", row.id);
    }
    assert_eq!(acknowledged.len(), RUNS);
    for (number, length) in acknowledged {
        let row = rows.iter().find(|row| row.id == run(*number)).unwrap();
        assert!(row.version >= *length, "{} has {} events, {length} were acknowledged", row.id, row.version);
        let blob = blob(*number, *length);
        assert_eq!(store.get(&blob.handle()).await.unwrap(), Some(blob), "{}", row.id);
    }
    store.close().await;
}

#[tokio::main]
async fn append_until_killed(file: &Path) {
    let store = Arc::new(SqliteStore::open_with_durability(file, Durability::ProcessCrash).await.unwrap());
    let drivers = (0..RUNS).map(|number| tokio::spawn(drive(store.clone(), number)));
    for driver in drivers.collect::<Vec<_>>() {
        driver.await.unwrap();
    }
}

/// The blob that a run stores before its journal has that length.
fn blob(number: usize, length: u64) -> Blob {
    Blob::new("text/plain", format!("{number} {length} ").repeat(1_000).into_bytes())
}

async fn drive(store: Arc<SqliteStore>, number: usize) {
    let mut at = store.load(&run(number), 0).await.unwrap().len() as u64;
    loop {
        let count = 1 + at % 3;
        store.put(&run(number), blob(number, at + count)).await.unwrap();
        store.append(append(run(number), at, count)).await.unwrap();
        at += count;
        writeln!(std::io::stdout().lock(), "ack {number} {at}.").unwrap();
    }
}
