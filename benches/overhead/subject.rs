//! Subjects of the measurement: the floor, and the runner with more and more features.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use toolgate::core::id::{ModelName, RunId};
use toolgate::core::policy::Policy;
use toolgate::core::redact::SecretsBuilder;
use toolgate::core::run::{Limits, Status};
use toolgate::core::tool::Toolset;
use toolgate::driver::Agent;
use toolgate::ports::{EventSink, McpServers, Model, RunStore, Update};
use toolgate::runner::{AgentRunner, Request};
use toolgate::stores::{Durability, MemoryStore, SqliteStore};
use toolgate::telemetry::metrics::{MetricsBuilder, MetricsSettings};
use toolgate::telemetry::spans::{Redaction, USUAL_NAMES};
use toolgate::telemetry::{
    BackgroundSink, Destination, ExportSettings, LogSink, Projector, SampledSink, SpanContent, SpanSink,
};
use toolgate::validation::SchemaValidator;

use crate::floor;
use crate::scenario::Scenario;
use crate::world::{Files, Granted, Loquacious, Turns};

/// The secrets of a configuration with two models and a server.
const SECRETS: [&str; 3] = ["sk-proj-4f8a2c6e0b1d3f5a7c9e", "sk-ant-9e7c5a3f1d0b2e4c6a8f", "ghp_b1d3f5a7c9e8a6c4e2f0"];

/// A row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Floor,
    Memory,
    /// With the watcher that every app has, without a subscriber for its records.
    Lifecycle,
    /// With the projection into spans and the redaction of secrets; the spans are dropped.
    Spans,
    /// With everything that an app with a collector has: the queue, the thread and the export over HTTP to a receiver
    /// in this process, whose work counts as CPU time too.
    Exported,
    /// The same with runs that are not sampled.
    Unsampled,
    /// With metrics.
    Metrics,
    ProcessCrash,
    PowerCut,
    /// As the app composes it: SQLite, validation, lifecycle and spans.
    Whole,
}

impl Subject {
    pub const ALL: [Self; 10] = [
        Self::Floor,
        Self::Memory,
        Self::Lifecycle,
        Self::Spans,
        Self::Exported,
        Self::Unsampled,
        Self::Metrics,
        Self::ProcessCrash,
        Self::PowerCut,
        Self::Whole,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Memory => "memory",
            Self::Lifecycle => "memory + lifecycle",
            Self::Spans => "memory + spans",
            Self::Unsampled => "memory + export, unsampled",
            Self::Exported => "memory + export",
            Self::Metrics => "memory + metrics",
            Self::ProcessCrash => "sqlite, process crash",
            Self::PowerCut => "sqlite, power cut",
            Self::Whole => "sqlite + all",
        }
    }
}

/// A subject, set up for one sample. It starts empty, because stores grow.
pub struct Ready {
    subject: Subject,
    model: Arc<dyn Model>,
    servers: Arc<dyn McpServers>,
    tools: Arc<Toolset>,
    runner: AgentRunner,
    sqlite: Option<(Arc<SqliteStore>, TempDir)>,
    export: Option<(Arc<BackgroundSink>, Arc<SpanSink>)>,
}

impl Ready {
    pub async fn set_up(subject: Subject, scenario: &Scenario, turns: Turns) -> Self {
        let model: Arc<dyn Model> = Arc::new(Loquacious::new(*scenario, turns));
        let servers: Arc<dyn McpServers> = Arc::new(Files::new(scenario));
        let tools = floor::tools(&*servers).await;
        let sqlite = match subject {
            Subject::ProcessCrash | Subject::Whole => Some(open(Durability::ProcessCrash).await),
            Subject::PowerCut => Some(open(Durability::PowerCut).await),
            Subject::Floor
            | Subject::Memory
            | Subject::Lifecycle
            | Subject::Spans
            | Subject::Unsampled
            | Subject::Exported
            | Subject::Metrics => None,
        };
        let store: Arc<dyn RunStore> = match &sqlite {
            Some((store, _)) => store.clone(),
            None => Arc::new(MemoryStore::new()),
        };
        let mut builder = AgentRunner::builder()
            .store(store.clone())
            .servers(servers.clone())
            .approvals(Arc::new(Granted))
            .agent(agent(model.clone(), scenario));
        if matches!(subject, Subject::Lifecycle | Subject::Whole) {
            builder = builder.sink(Arc::new(LogSink::new()));
        }
        if matches!(subject, Subject::Spans | Subject::Whole) {
            builder = builder.sink(Arc::new(SpanFold::new()));
        }
        if subject == Subject::Unsampled {
            builder = builder.sampler(Arc::new(|_, _| false));
        }
        if subject == Subject::Metrics {
            builder = builder.sink(metrics());
        }
        let is_exported = matches!(subject, Subject::Exported | Subject::Unsampled);
        let export = if is_exported { Some(exported(store).await) } else { None };
        if let Some((aside, _)) = &export {
            builder = builder.sink(Arc::new(SampledSink::new(aside.clone()))).exports_spans(true);
        }
        if subject == Subject::Whole {
            builder = builder.inputs(Arc::new(SchemaValidator::default()));
        }
        Self { subject, model, servers, tools, runner: builder.build().unwrap(), sqlite, export }
    }

    /// One run from start to end.
    pub async fn run(&self) {
        if self.subject == Subject::Floor {
            let (model, servers, tools) = (self.model.clone(), self.servers.clone(), self.tools.clone());
            black_box(tokio::spawn(floor::run(model, servers, tools)).await.unwrap());
            return;
        }
        let execution = self.runner.start(Request::new("bench", "read everything")).await.unwrap();
        let report = execution.until_idle().await.unwrap();
        assert_eq!(report.status, Status::Completed, "{:?}", report.error);
    }

    /// Ends everything. Returns the number of facts and spans that were not exported, because runs without a model's delay end
    /// faster than a thread can export them.
    pub async fn tear_down(self) -> u64 {
        self.runner.close().await;
        let mut dropped = 0;
        if let Some((aside, sink)) = self.export {
            let ended = sink.clone();
            let finished = tokio::task::spawn_blocking(move || (aside.finish(), ended.shutdown()));
            let (facts, exported) = finished.await.unwrap();
            let spans = sink.span_counts();
            assert!(exported.is_ok() || spans.dropped > 0, "{exported:?}");
            assert_eq!(spans.failed, 0, "the receiver accepts every span");
            dropped = facts + spans.dropped;
        }
        if let Some((store, directory)) = self.sqlite {
            store.close().await;
            directory.close().unwrap();
        }
        dropped
    }
}

fn agent(model: Arc<dyn Model>, scenario: &Scenario) -> Agent {
    let policy = if scenario.guarded { Policy::ask_always() } else { Policy::allow_always() };
    Agent {
        servers: vec![Files::id()],
        policy: Arc::new(policy),
        limits: Limits { max_tool_interactions: u32::MAX, max_iterations: u32::MAX, ..Limits::default() },
        ..Agent::new("bench", model)
    }
}

async fn open(durability: Durability) -> (Arc<SqliteStore>, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open_with_durability(&directory.path().join("runs.db"), durability).await.unwrap();
    (Arc::new(store), directory)
}

/// Spans with an export to a receiver that accepts and ignores everything, and with the marks of their runs in the store.
async fn exported(store: Arc<dyn RunStore>) -> (Arc<BackgroundSink>, Arc<SpanSink>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Some(format!("http://{}", listener.local_addr().unwrap()));
    let take = |_: axum::body::Bytes| async {};
    let unlimited = axum::extract::DefaultBodyLimit::disable();
    tokio::spawn(async move { axum::serve(listener, axum::Router::new().fallback(take).layer(unlimited)).await });
    let destination = Destination { endpoint, ..Destination::default() };
    let settings = ExportSettings { destination, redaction: redaction(), ..ExportSettings::default() };
    let export = settings.resolve(|_| None).unwrap().expect("an endpoint");
    let sink = Arc::new(SpanSink::start(&export, Arc::new(|_: &ModelName| None), Some(store)).unwrap());
    (Arc::new(BackgroundSink::new(sink.clone()).unwrap()), sink)
}

fn metrics() -> Arc<dyn EventSink> {
    let settings = MetricsSettings { is_read_here: true, ..MetricsSettings::default() };
    let plan = settings.resolve(|_| None).unwrap().expect("metrics are enabled");
    let metrics = MetricsBuilder::new(&plan).unwrap().start();
    Arc::new(metrics.sink(Arc::new(|_: &ModelName| None)))
}

fn redaction() -> Redaction {
    Redaction::new(USUAL_NAMES, SecretsBuilder::of_values(SECRETS)).unwrap().with_recognizable(true)
}

/// Builds the spans of every run and drops them.
struct SpanFold {
    redaction: Redaction,
    runs: Mutex<HashMap<RunId, Arc<Mutex<Projector>>>>,
}

impl SpanFold {
    fn new() -> Self {
        Self { redaction: redaction(), runs: Mutex::default() }
    }
}

impl EventSink for SpanFold {
    fn observe(&self, run: &RunId, update: &Update) {
        let Update::JournalEntry(recorded) = update else { return };
        let identity_of = Arc::new(|_: &ModelName| None);
        let new = || Projector::new(run.clone(), SpanContent::default(), identity_of).redacting(self.redaction.clone());
        let fold = self.runs.lock().unwrap().entry(run.clone()).or_insert_with(|| Arc::new(Mutex::new(new()))).clone();
        black_box(fold.lock().unwrap().observe(recorded));
    }

    fn released(&self, run: &RunId, _at: jiff::Timestamp) {
        self.runs.lock().unwrap().remove(run);
    }
}
