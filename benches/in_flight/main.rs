//! Memory and CPU of runs in flight: 2,000 runs wait for their model after ten turns, without telemetry, with spans over
//! each protocol of OTLP, and unsampled. Each row is measured in a process of its own; the receiver is in another one.
//!
//! `cargo bench --bench in_flight` prints a table and one line of JSON. Figures are for one run: the resident memory that
//! it adds, once all spans so far are sent, and the CPU of its ten turns.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stdout)]
#![allow(dead_code, unreachable_pub)]

#[path = "../overhead/cpu_time.rs"]
mod cpu_time;
#[path = "../overhead/scenario.rs"]
mod scenario;
#[path = "../overhead/world.rs"]
mod world;

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::sync::watch;
use toolgate::core::chat::Reply;
use toolgate::core::id::ModelName;
use toolgate::core::policy::Policy;
use toolgate::core::redact::SecretsBuilder;
use toolgate::core::run::{Limits, Status};
use toolgate::driver::Agent;
use toolgate::ports::{Conversation, DeltaSink, Model, ModelFailure, ModelIdentity, ModelRequest};
use toolgate::runner::{AgentRunner, Request};
use toolgate::stores::MemoryStore;
use toolgate::telemetry::spans::{Redaction, USUAL_NAMES};
use toolgate::telemetry::{BackgroundSink, Destination, ExportSettings, Protocol, SampledSink, SpanSink};

use scenario::PLAIN;
use world::{Files, Loquacious, Turns};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const RUNS: usize = 2_000;
/// Runs in flight before the measurement, which set up what all runs share.
const FIRST_RUNS: usize = 50;
const PART: &str = "TOOLGATE_BENCH_PART";

/// The role of a process: a row, and the receiver's address.
struct Part {
    row: usize,
    endpoint: String,
    runs: usize,
}

/// The rows: a name, the protocol of the export if there is one, and whether the runs are sampled.
const ROWS: [(&str, Option<Protocol>, bool); 5] = [
    ("no telemetry", None, true),
    ("http/protobuf", Some(Protocol::HttpProtobuf), true),
    ("http/json", Some(Protocol::HttpJson), true),
    ("grpc", Some(Protocol::Grpc), true),
    ("unsampled", Some(Protocol::HttpProtobuf), false),
];

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    if let Ok(part) = std::env::var(PART) {
        let figures = runtime.block_on(measured(Part::read(&part)));
        println!("{figures}");
        return;
    }
    // Without cargo's `--bench` this is `cargo test --benches`: a few runs are enough.
    let runs = if std::env::args().any(|argument| argument == "--bench") { RUNS } else { 10 };
    let endpoint = runtime.block_on(receiver());
    println!("{:<16} {:>12} {:>10} {:>10} {:>8}", "", "KiB a run", "us a run", "exported", "lost");
    let rows = ROWS.iter().enumerate().map(|(row, (name, _, _))| {
        let part = format!("{row} {runs} {endpoint}");
        let mut child = Command::new(std::env::current_exe().unwrap());
        let output = child.env(PART, part).stderr(Stdio::inherit()).output().unwrap();
        assert!(output.status.success(), "{name}");
        let figures: Value = serde_json::from_slice(&output.stdout).unwrap();
        let of = |figure: &str| figures[figure].as_f64().unwrap_or(f64::NAN);
        let (memory, cpu, exported, lost) = (of("memory_kib"), of("cpu_us"), of("exported"), of("lost"));
        println!("{name:<16} {memory:>12.1} {cpu:>10.0} {exported:>10} {lost:>8}");
        json!({ "row": name, "figures": figures })
    });
    let rows: Vec<Value> = rows.collect();
    println!("\n{}", json!({ "bench": "in_flight", "runs": runs, "rows": rows }));
}

impl Part {
    fn read(text: &str) -> Self {
        let words: Vec<&str> = text.split(' ').collect();
        let [row, runs, endpoint] = words[..] else { panic!("{text}") };
        Self { row: row.parse().unwrap(), runs: runs.parse().unwrap(), endpoint: endpoint.to_owned() }
    }
}

/// Of one run: resident memory in KiB, and microseconds of CPU of all threads; and the spans that were exported and lost.
async fn measured(Part { row, endpoint, runs }: Part) -> Value {
    let (_, protocol, is_sampled) = ROWS.get(row).copied().unwrap();
    let export = protocol.map(|protocol| exported(endpoint, protocol));
    let (gate, arrived) = (watch::Sender::new(false), Arc::new(AtomicUsize::new(0)));
    let model =
        Halting { inner: Loquacious::new(PLAIN, Turns::default()), arrived: arrived.clone(), gate: gate.subscribe() };
    let mut builder = AgentRunner::builder()
        .store(Arc::new(MemoryStore::new()))
        .servers(Arc::new(Files::new(&PLAIN)))
        .agent(Agent {
            servers: vec![Files::id()],
            policy: Arc::new(Policy::allow_always()),
            limits: Limits { max_tool_interactions: u32::MAX, max_iterations: u32::MAX, ..Limits::default() },
            ..Agent::new("bench", Arc::new(model))
        })
        .sampler(Arc::new(move |_, _| is_sampled));
    if let Some((background, _)) = &export {
        builder = builder.sink(Arc::new(SampledSink::new(background.clone()))).exports_spans(true);
    }
    let runner = builder.build().unwrap();
    let start = |count: usize| {
        let runner = runner.clone();
        async move { join_all((0..count).map(|_| runner.start(Request::new("bench", "read everything")))).await }
    };
    let at_rest = async |wanted: usize| {
        while arrived.load(Ordering::Relaxed) < wanted {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let sent = || export.as_ref().map(|(_, sink)| sink.span_counts().exported).unwrap_or_default();
        // A turn has two spans, and an execution the spans of its tools.
        let mut before = u64::MAX;
        while before != sent() {
            before = sent();
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
    };
    let first = start(FIRST_RUNS).await;
    at_rest(FIRST_RUNS).await;
    let (memory, cpu) = (resident_kib(), cpu_time::cpu_time());
    let all = start(runs).await;
    at_rest(FIRST_RUNS + runs).await;
    let used = cpu_time::cpu_time().zip(cpu).map(|(now, before)| now.saturating_sub(before));
    let memory_kib = (resident_kib() - memory) / runs as f64;
    gate.send_replace(true);
    for execution in first.into_iter().chain(all) {
        assert_eq!(execution.unwrap().until_idle().await.unwrap().status, Status::Completed);
    }
    runner.close().await;
    let counts = export.map(|(background, sink)| {
        let dropped = background.finish();
        let _ = sink.shutdown();
        let counts = sink.span_counts();
        (counts.exported, counts.dropped + counts.failed + dropped)
    });
    let (exported, lost) = counts.unwrap_or_default();
    let cpu_us = used.map(|used| used.as_secs_f64() * 1e6 / runs as f64);
    json!({ "memory_kib": memory_kib, "cpu_us": cpu_us, "exported": exported, "lost": lost })
}

fn exported(endpoint: String, protocol: Protocol) -> (Arc<BackgroundSink>, Arc<SpanSink>) {
    let destination = Destination { endpoint: Some(endpoint), protocol: Some(protocol), ..Destination::default() };
    let redaction = Redaction::new(USUAL_NAMES, SecretsBuilder::of_values(["sk-proj-4f8a2c6e0b1d3f5a7c9e"])).unwrap();
    let redaction = redaction.with_recognizable(true);
    let settings = ExportSettings { destination, redaction, ..ExportSettings::default() };
    let export = settings.resolve(|_| None).unwrap().expect("an endpoint");
    let sink = Arc::new(SpanSink::start(&export, Arc::new(|_: &ModelName| None), None).unwrap());
    (Arc::new(BackgroundSink::new(sink.clone()).unwrap()), sink)
}

/// A receiver that accepts and ignores everything, over HTTP and gRPC.
async fn receiver() -> String {
    use axum::body::Bytes;
    use axum::http::HeaderMap;
    use axum::response::IntoResponse as _;

    let accept = |headers: HeaderMap, _: Bytes| async move {
        let kind = headers.get("content-type").cloned().unwrap();
        let is_grpc = kind.as_bytes().starts_with(b"application/grpc");
        let message: &[u8] = if is_grpc { &[0; 5] } else { b"" };
        let status = is_grpc.then_some([("grpc-status", "0")]);
        ([("content-type", kind)], status, message).into_response()
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let routes = axum::Router::new().fallback(accept).layer(axum::extract::DefaultBodyLimit::disable());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    endpoint
}

/// The resident memory of this process.
fn resident_kib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or(f64::NAN)
}

/// A model whose answer after all turns waits for the gate.
struct Halting {
    inner: Loquacious,
    arrived: Arc<AtomicUsize>,
    gate: watch::Receiver<bool>,
}

struct HaltingConversation {
    inner: Box<dyn Conversation>,
    asked: usize,
    arrived: Arc<AtomicUsize>,
    gate: watch::Receiver<bool>,
}

impl Model for Halting {
    fn identity(&self) -> &ModelIdentity {
        self.inner.identity()
    }

    fn converse(&self) -> Box<dyn Conversation> {
        let (inner, arrived, gate) = (self.inner.converse(), self.arrived.clone(), self.gate.clone());
        Box::new(HaltingConversation { inner, asked: 0, arrived, gate })
    }
}

#[async_trait]
impl Conversation for HaltingConversation {
    async fn reply(&mut self, request: &ModelRequest<'_>, deltas: DeltaSink<'_>) -> Result<Reply, ModelFailure> {
        self.asked += 1;
        if self.asked > PLAIN.turns {
            self.arrived.fetch_add(1, Ordering::Relaxed);
            let _ = self.gate.wait_for(|is_open| *is_open).await;
        }
        self.inner.reply(request, deltas).await
    }
}
