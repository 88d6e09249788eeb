//! `kill -9` on a real process: this binary starts itself as a process that runs agents, and kills it at any point.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::{Value, json};
use toolgate::core::id::{RunId, ServerId};
use toolgate::core::run::{Event, Status};
use toolgate::core::tool::{DeliveredReply, Outcome, Progress, ServerTools, ToolOutput};
use toolgate::core::trace::SpanContext;
use toolgate::ports::{McpCall, McpServers, RunFilter, RunStore as _};
use toolgate::runner::{AgentRunner, Request};
use toolgate::stores::{Durability, SqliteStore};

use super::world::{given_an_agent, say};
use crate::fakes::tool;

const DIRECTORY: &str = "TOOLGATE_TEST_KILL_DIRECTORY";
pub(super) const LEASE: Duration = Duration::from_millis(150);
const ROUNDS: u64 = 20;

/// A server whose calls each append a line to a file and take a while.
pub(super) struct Ledger(pub(super) PathBuf);

#[async_trait]
impl McpServers for Ledger {
    async fn list(&self, servers: &[ServerId], _trace: &SpanContext) -> Vec<ServerTools> {
        let tool_access = |server: &ServerId| ServerTools {
            server: server.clone(),
            trusted: false,
            endpoint: None,
            tools: Arc::new(vec![tool("enter")]),
            left_out: Vec::new(),
            stale: None,
            authorization: None,
        };
        servers.iter().map(tool_access).collect()
    }

    async fn call(&self, call: McpCall<'_>, _progress: &(dyn Fn(Progress) + Send + Sync)) -> DeliveredReply {
        let mut file = fs::OpenOptions::new().create(true).append(true).open(&self.0).unwrap();
        file.write_all(format!("{}/{}\n", call.run, call.call).as_bytes()).unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
        Outcome::Returned(ToolOutput::text("entered")).into()
    }

    async fn release(&self, _run: &RunId, _trace: &SpanContext) {}
}

async fn open(directory: &Path) -> AgentRunner {
    let two = json!({"calls": [{"name": "mcp_ledger_enter"}, {"name": "mcp_ledger_enter"}]});
    open_with(directory, json!([two, two, two, say("Done.")])).await
}

/// A process with a durable store and the ledger, whose model replies with these turns.
pub(super) async fn open_with(directory: &Path, turns: Value) -> AgentRunner {
    let store = SqliteStore::open_with_durability(&directory.join("runs.db"), Durability::ProcessCrash).await.unwrap();
    let agent = given_an_agent().that(|agent| agent.servers = vec!["ledger".into()]).whose_model_says(turns).agent();
    AgentRunner::builder()
        .store(Arc::new(store))
        .servers(Arc::new(Ledger(directory.join("ledger.txt"))))
        .lease(LEASE)
        .agent(agent)
        .build()
        .unwrap()
}

/// The work of the child process until it is killed: it recovers orphaned runs and starts its own. In the test process
/// itself it does nothing.
#[tokio::test]
async fn the_process_that_is_killed() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let runner = open(Path::new(&directory)).await;
    loop {
        for execution in runner.recover().await.unwrap() {
            execution.until_idle().await.unwrap();
        }
        let (one, two) =
            tokio::join!(runner.execute(Request::new("clerk", "one")), runner.execute(Request::new("clerk", "two")),);
        assert_eq!((one.unwrap().status, two.unwrap().status), (Status::Completed, Status::Completed));
    }
}

fn child(directory: &Path) -> Child {
    let name = "runner::kill::the_process_that_is_killed";
    Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

pub(super) fn lines(directory: &Path) -> Vec<String> {
    let text = fs::read_to_string(directory.join("ledger.txt")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Kills the child some milliseconds after its first call, with a different delay each round.
fn kill_after_its_first_call(directory: &Path, round: u64) {
    let before = lines(directory).len();
    let mut child = child(directory);
    let began = Instant::now();
    while lines(directory).len() == before {
        assert!(began.elapsed() < Duration::from_secs(10), "the child does nothing");
        assert!(child.try_wait().unwrap().is_none(), "the child ended by itself");
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(round * 7 % 40));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test]
async fn a_process_killed_anywhere_loses_no_run_and_repeats_no_call() {
    let directory = tempfile::TempDir::new().unwrap();
    for round in 0..ROUNDS {
        kill_after_its_first_call(directory.path(), round);
    }
    let runner = open(directory.path()).await;
    tokio::time::sleep(LEASE * 2).await;
    for execution in runner.recover().await.unwrap() {
        execution.until_idle().await.unwrap();
    }

    let rows = runner.list(&RunFilter { limit: 10_000, ..RunFilter::default() }).await.unwrap();
    let unfinished: Vec<_> = rows.iter().filter(|row| row.status != Status::Completed).collect();
    assert!(unfinished.is_empty(), "{unfinished:#?}");
    let calls = lines(directory.path());
    let distinct: BTreeSet<_> = calls.iter().collect();
    assert_eq!(calls.len(), distinct.len(), "a call was made twice");
    let (mut resumed, mut interrupted) = (0, 0);
    for row in &rows {
        let journal = runner.journal(&row.id).await.unwrap();
        resumed += journal.iter().filter(|fact| matches!(fact.event, Event::Resumed { .. })).count();
        for fact in &journal {
            let Event::Interrupted { alive_at } = fact.event else { continue };
            interrupted += 1;
            let since = fact.at.duration_since(alive_at.expect("no process released a run")).as_millis();
            assert!(since + 2 >= LEASE.as_millis().cast_signed(), "claimed {since} ms after it was alive");
        }
    }
    // A lease that expires between two statements of the claim leaves its time unknown.
    assert!(interrupted * 2 > resumed, "the end of {interrupted} executions of {resumed} is known");
    assert!(resumed > 0, "no kill hit a run that was under way, so nothing was shown");
}

#[tokio::test]
async fn a_process_shows_more_often_that_it_is_alive_than_its_lease_requires() {
    const MINUTE: Duration = Duration::from_secs(60);
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("runs.db");
    let store = Arc::new(SqliteStore::open_with_durability(&file, Durability::ProcessCrash).await.unwrap());
    let agent = given_an_agent().whose_model_says(json!([{"hang": true}])).agent();
    let runner = AgentRunner::builder().store(store.clone()).lease(MINUTE).agent(agent).build().unwrap();
    let run = runner.start(Request::new("clerk", "Hello")).await.unwrap().run;
    let started = runner.journal(&run).await.unwrap()[0].at;

    let renewed = async {
        let other = "node_other".into();
        while store.last_renewal(&run, &other, MINUTE).await.unwrap().unwrap() < started + Duration::from_millis(400) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };

    tokio::time::timeout(Duration::from_secs(10), renewed).await.expect("renewed after half a second, not after 20");
}
