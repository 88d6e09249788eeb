//! `kill -9` of a server that starts a run of a session for a request with an idempotency key, before and after the
//! commit that creates the run and claims the session.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use toolgate::core::id::{RunId, SessionId, Tenant};
use toolgate::core::run::Status;
use toolgate::gateway::Gateway;
use toolgate::ports::{
    IdempotencyRecord, IdempotencyStore, IdempotentRequest, RequestState, RunFilter, RunStore, SessionRow, StoreError,
};
use toolgate::runner::AgentRunner;
use toolgate::service::Caller;
use toolgate::stores::{Durability, SqliteStore};

use super::served::HttpAnswer;
use crate::fakes::{FailingStore, Fault};
use crate::runner::world::{LEASE, given_an_agent, say};

const DIRECTORY: &str = "TOOLGATE_TEST_START_KILL_DIRECTORY";
/// Whether the child is killed `before` or `after` the commit.
const INSTANT: &str = "TOOLGATE_TEST_START_KILL_INSTANT";

/// A server over the file in a directory.
struct Server {
    runner: AgentRunner,
    address: String,
    _serving: JoinSet<()>,
}

impl Server {
    async fn over(store: Arc<dyn RunStore>, replies: Arc<dyn IdempotencyStore>) -> Self {
        let agent = given_an_agent().whose_model_says(json!([say("Done.")])).agent();
        let runner = AgentRunner::builder().store(store).lease(LEASE).agent(agent).build().unwrap();
        let gateway = Gateway::builder(runner.clone()).anonymous(Caller::local()).idempotency(replies).build();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let router = gateway.router();
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { runner, address, _serving: serving }
    }

    /// Sends the request that every process of a test sends.
    async fn start_run(&self) -> HttpAnswer {
        let request = reqwest::Client::new().post(format!("{}/v1/runs", self.address));
        let request = request.header("idempotency-key", "k").json(&json!({"input": "Hello", "session_id": "chat"}));
        HttpAnswer::of(request.send().await.unwrap()).await
    }

    async fn session(&self) -> Option<SessionRow> {
        self.runner.session(&Tenant::default(), &SessionId::from("chat")).await.unwrap()
    }

    async fn runs(&self) -> Vec<RunId> {
        self.runner.list(&RunFilter::default()).await.unwrap().into_iter().map(|row| row.id).collect()
    }
}

async fn file_in(directory: &Path) -> Arc<SqliteStore> {
    let path = directory.join("runs.db");
    Arc::new(SqliteStore::open_with_durability(&path, Durability::ProcessCrash).await.unwrap())
}

/// The child process: sends itself the request, and is killed in the append that creates the run.
#[tokio::test]
async fn the_process_that_is_killed() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let file = file_in(Path::new(&directory)).await;
    let store = Arc::new(FailingStore::around(file.clone()));
    let is_before = std::env::var(INSTANT).unwrap() == "before";
    store.fail_at(0, if is_before { Fault::KilledBefore } else { Fault::KilledAfter });
    let answer = Server::over(store, file).await.start_run().await;
    panic!("the process is alive: {answer:?}");
}

/// Runs the child until it is killed.
fn kill_in_the_start(directory: &Path, instant: &str) {
    let name = "gateway::idempotency_kill::the_process_that_is_killed";
    let ended = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .env(INSTANT, instant)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(ended.signal(), Some(9), "{ended:?}");
}

/// The records as they are seen after the hold of the process that was killed.
struct LaterRecords {
    inner: Arc<SqliteStore>,
}

impl LaterRecords {
    /// More than the hold of a request.
    const LATER: SignedDuration = SignedDuration::from_secs(20);
}

#[async_trait]
impl IdempotencyStore for LaterRecords {
    async fn begin(&self, asked: &IdempotentRequest, now: Timestamp) -> Result<Option<IdempotencyRecord>, StoreError> {
        let seen_later = |record: IdempotencyRecord| match record.state {
            RequestState::UnderWay { held_until } => {
                let state = RequestState::UnderWay { held_until: held_until - Self::LATER };
                IdempotencyRecord { state, ..record }
            }
            RequestState::Answered(_) | RequestState::NotStored => record,
        };
        Ok(self.inner.begin(asked, now).await?.map(seen_later))
    }

    async fn prolong(&self, asked: &IdempotentRequest, until: Timestamp) -> Result<(), StoreError> {
        self.inner.prolong(asked, until).await
    }

    async fn take_over(&self, asked: &IdempotentRequest, now: Timestamp) -> Result<bool, StoreError> {
        self.inner.take_over(asked, now + Self::LATER).await
    }

    async fn settle(&self, asked: &IdempotentRequest, state: &RequestState) -> Result<(), StoreError> {
        self.inner.settle(asked, state).await
    }

    async fn forget(&self, asked: &IdempotentRequest) -> Result<(), StoreError> {
        self.inner.forget(asked).await
    }
}

/// The next server over the file, after the hold of the process that was killed.
async fn next_server(directory: &Path) -> Server {
    let file = file_in(directory).await;
    Server::over(file.clone(), Arc::new(LaterRecords { inner: file })).await
}

#[tokio::test]
async fn a_start_killed_before_its_claim_is_started_by_the_repeat() {
    let directory = tempfile::TempDir::new().unwrap();
    kill_in_the_start(directory.path(), "before");
    let server = next_server(directory.path()).await;
    assert_eq!((server.session().await, server.runs().await), (None, vec![]), "nothing was written");

    let started = server.start_run().await;

    assert_eq!((started.status.as_u16(), started.text("status")), (201, "completed"), "{started:?}");
    let run = RunId::from(started.text("id"));
    let head = server.session().await.unwrap().head.unwrap();
    assert_eq!((&head.run, server.runs().await), (&run, vec![run.clone()]));
    assert_eq!(server.start_run().await.body, started.body, "a repeat");
}

#[tokio::test]
async fn a_start_killed_after_its_claim_is_found_by_the_repeat() {
    let directory = tempfile::TempDir::new().unwrap();
    kill_in_the_start(directory.path(), "after");
    let server = next_server(directory.path()).await;
    let runs = server.runs().await;
    let head = server.session().await.unwrap().head.unwrap();
    assert_eq!((head.status, &runs[..]), (Status::Running, [head.run.clone()].as_slice()));

    let found = server.start_run().await;

    assert_eq!((found.status.as_u16(), found.header("idempotent-replayed")), (202, "true"), "{found:?}");
    assert_eq!(found.text("id"), head.run.as_str());
    let began = Instant::now();
    while server.session().await.unwrap().head.unwrap().status != Status::Completed {
        assert!(began.elapsed() < Duration::from_secs(60), "the run is not recovered");
        for execution in server.runner.recover().await.unwrap() {
            execution.until_idle().await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(server.start_run().await.text("status"), "completed");
    assert_eq!(server.runs().await, runs, "one run");
}
