//! Subjects of the measurement: a runner, and a gateway over it on a local port.

use std::net::SocketAddr;
use std::sync::Arc;

use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use toolgate::core::policy::Policy;
use toolgate::core::run::Limits;
use toolgate::gateway;
use toolgate::ports::{EventSink, Model, RunStore};
use toolgate::runner::{Agent, AgentRunner};
use toolgate::stores::{MemoryStore, SqliteStore};
use toolgate::validation::SchemaValidator;

use crate::scenario::Scenario;
use crate::world::Files;

pub const SCENARIO: Scenario =
    Scenario { name: "5 turns x 2 calls", turns: 5, calls: 2, tools: 8, at_once: 1, guarded: false };

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Subject {
    InProcess,
    Http,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Kept {
    Memory,
    /// As in a server: every commit survives a power cut.
    Sqlite,
}

impl Subject {
    pub fn name(self) -> &'static str {
        match self {
            Self::InProcess => "in-process",
            Self::Http => "http",
        }
    }
}

impl Kept {
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
        }
    }
}

pub struct Ready {
    pub runner: AgentRunner,
    pub address: SocketAddr,
    sqlite: Option<(Arc<SqliteStore>, TempDir)>,
    _serving: JoinSet<()>,
}

impl Ready {
    pub async fn set_up(kept: Kept, model: Arc<dyn Model>, sinks: Vec<Arc<dyn EventSink>>) -> Self {
        let sqlite = match kept {
            Kept::Memory => None,
            Kept::Sqlite => {
                let directory = tempfile::tempdir().unwrap();
                let store = SqliteStore::open(&directory.path().join("runs.db")).await.unwrap();
                Some((Arc::new(store), directory))
            }
        };
        let store: Arc<dyn RunStore> = match &sqlite {
            Some((store, _)) => store.clone(),
            None => Arc::new(MemoryStore::new()),
        };
        let agent = Agent {
            servers: vec![Files::id()],
            policy: Arc::new(Policy::allow_always()),
            limits: Limits::default(),
            ..Agent::new("bench", model)
        };
        let mut builder = AgentRunner::builder()
            .store(store)
            .servers(Arc::new(Files::new(&SCENARIO)))
            .inputs(Arc::new(SchemaValidator::default()))
            .agent(agent);
        for sink in sinks {
            builder = builder.sink(sink);
        }
        let runner = builder.build().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = gateway::router(runner.clone());
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            axum::serve(axum::serve::ListenerExt::tap_io(listener, |socket| drop(socket.set_nodelay(true))), router)
                .await
                .unwrap()
        });
        Self { runner, address, sqlite, _serving: serving }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub async fn tear_down(self) {
        self.runner.close().await;
        if let Some((store, directory)) = self.sqlite {
            store.close().await;
            directory.close().unwrap();
        }
    }
}
