//! Scripted clients of the proxy, over stdio and over HTTP.

use std::fs::File;
use std::io::{BufRead as _, BufReader as StdBufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex, split,
};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use toolgate_settings::mcp::StdioSettings;

use crate::fault_proxy::stdio::relay_within;
use crate::fault_proxy::{FaultPlan, FaultTransport, MAX_MESSAGE, ProxyOptions, Report, listen, serve};

/// The program of the flawed server.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("examples/flawed_server");
    assert!(program.exists(), "build it with `cargo build -p toolgate-lab --example flawed_server`");
    program
}

/// How long a client waits for one more message, or for none.
pub(super) const SILENCE: Duration = Duration::from_millis(500);
/// How long it waits for a message that has to arrive, on a loaded machine.
pub(super) const ARRIVAL: Duration = Duration::from_secs(20);

/// What a client got.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) messages: Vec<Vec<u8>>,
    /// The HTTP status; 0 over stdio.
    pub(super) status: u16,
    pub(super) headers: reqwest::header::HeaderMap,
    /// Whether the connection ended, over HTTP before the end of the answer.
    pub(super) is_broken: bool,
    pub(super) took: Duration,
}

impl Seen {
    pub(super) fn message(&self, at: usize) -> Value {
        let line = self.messages.get(at).unwrap_or_else(|| panic!("{self:?}"));
        serde_json::from_slice(line).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(line)))
    }

    /// The ids of the messages, for answers that can be read.
    pub(super) fn ids(&self) -> Vec<Value> {
        (0..self.messages.len()).map(|at| self.message(at)["id"].clone()).collect()
    }
}

pub(super) fn initialize(id: u64) -> Value {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "scripted", "version": "1"}});
    request(id, "initialize", params)
}

pub(super) fn call(id: u64) -> Value {
    request(id, "tools/call", json!({"name": "echo", "arguments": {"text": "hello"}, "_meta": {"progressToken": id}}))
}

pub(super) fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub(super) fn cancelled(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
}

pub(super) fn plan(faults: &[&str], transport: FaultTransport) -> FaultPlan {
    let mut plan = FaultPlan::default();
    faults.iter().for_each(|fault| plan.add(fault, transport).unwrap());
    plan
}

/// A client over stdio, and the report of its proxy.
pub(super) struct StdioClient {
    lines: BufReader<ReadHalf<DuplexStream>>,
    input: WriteHalf<DuplexStream>,
    report: JoinHandle<std::io::Result<Report>>,
    sent: Instant,
}

impl StdioClient {
    pub(super) fn start(plan: FaultPlan, flaws: &[&str]) -> Self {
        Self::start_within(MAX_MESSAGE, plan, flaws)
    }

    /// A client of a proxy in which at most this many bytes of answers wait.
    pub(super) fn start_within(most_delayed: usize, plan: FaultPlan, flaws: &[&str]) -> Self {
        let settings = StdioSettings::new(program().to_string_lossy(), flaws.iter().copied());
        let (client, proxy) = duplex(1 << 16);
        let (lines, input) = split(client);
        let options = ProxyOptions { plan, wire: None };
        let stop = std::future::pending();
        let relayed = async move { relay_within(most_delayed, &settings, options, split(proxy), stop).await };
        let report = tokio::spawn(relayed);
        Self { lines: BufReader::new(lines), input, report, sent: Instant::now() }
    }

    pub(super) async fn send(&mut self, message: &Value) {
        self.sent = Instant::now();
        // A proxy that ended reads nothing.
        let _ = self.input.write_all(format!("{message}\n").as_bytes()).await;
    }

    /// Reads for this long until the first message, and then until the server is silent.
    pub(super) async fn read(&mut self, mut limit: Duration) -> Seen {
        let (mut seen, mut line) = (Seen::default(), Vec::new());
        while let Ok(read) = tokio::time::timeout(limit, self.lines.read_until(b'\n', &mut line)).await {
            match read {
                Ok(0) | Err(_) => {
                    seen.is_broken = true;
                    break;
                }
                Ok(_) => {}
            }
            (seen.took, limit) = (self.sent.elapsed(), SILENCE);
            seen.messages.push(line.strip_suffix(b"\n").unwrap_or(&line).to_vec());
            line.clear();
        }
        seen.messages.push(line);
        seen.messages.retain(|line| !line.is_empty());
        seen
    }

    /// The first message, without waiting for silence.
    pub(super) async fn answer(&mut self, message: &Value) -> Value {
        self.send(message).await;
        let mut line = Vec::new();
        self.lines.read_until(b'\n', &mut line).await.unwrap();
        serde_json::from_slice(&line).unwrap()
    }

    pub(super) async fn close(self) -> Report {
        let Self { mut lines, mut input, report, .. } = self;
        let _ = input.shutdown().await;
        let report = report.await.unwrap().unwrap();
        let mut rest = Vec::new();
        tokio::time::timeout(ARRIVAL, lines.read_to_end(&mut rest)).await.expect("the proxy leaves a task").unwrap();
        report
    }
}

/// A started HTTP server; dropping it ends it.
struct HttpServer(Child);

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A client over HTTP, and the report of its proxy.
pub(super) struct HttpClient {
    _server: Option<HttpServer>,
    http: reqwest::Client,
    pub(super) url: String,
    pub(super) session: Option<String>,
    stop: oneshot::Sender<()>,
    report: JoinHandle<Result<Report, String>>,
}

impl HttpClient {
    pub(super) async fn start(plan: FaultPlan, flaws: &[&str]) -> Self {
        let mut child = Command::new(program()).arg("--http").args(flaws).stdout(Stdio::piped()).spawn().unwrap();
        let mut upstream = String::new();
        StdBufReader::new(child.stdout.take().unwrap()).read_line(&mut upstream).unwrap();
        Self { _server: Some(HttpServer(child)), ..Self::before(upstream.trim().to_owned(), plan, None) }
    }

    /// A client of a proxy before the server at this URL.
    pub(super) fn before(upstream: String, plan: FaultPlan, wire: Option<File>) -> Self {
        let (listener, url) = listen(0).unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let report = tokio::spawn(async move {
            let options = ProxyOptions { plan, wire };
            let stop = async { stopped.await.unwrap_or_default() };
            serve(listener, &upstream, &[], options, stop).await
        });
        Self { _server: None, http: reqwest::Client::new(), url, session: None, stop, report }
    }

    pub(super) async fn initialize(&mut self, id: u64) {
        self.session = None;
        let seen = self.exchange(&initialize(id)).await;
        self.session = seen.headers.get("mcp-session-id").map(|session| session.to_str().unwrap().to_owned());
    }

    /// Sends a message, and waits this long for each part of the response.
    pub(super) async fn exchange_within(&self, limit: Duration, message: &Value) -> Seen {
        let began = Instant::now();
        let mut request = self.http.post(&self.url).body(message.to_string());
        request = request.header("content-type", "application/json");
        request = request.header("accept", "application/json, text/event-stream");
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session).header("mcp-protocol-version", "2025-11-25");
        }
        let mut response = match tokio::time::timeout(limit, request.send()).await {
            Err(_) => return Seen::default(),
            Ok(Err(_)) => return Seen { is_broken: true, ..Seen::default() },
            Ok(Ok(response)) => response,
        };
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let mut seen = Seen { status, headers, ..Seen::default() };
        let mut body = Vec::new();
        loop {
            match tokio::time::timeout(limit, response.chunk()).await {
                Ok(Ok(Some(chunk))) => body.extend_from_slice(&chunk),
                Ok(Err(_)) => break seen.is_broken = true,
                Ok(Ok(None)) | Err(_) => break,
            }
        }
        seen.took = began.elapsed();
        let is_stream = seen.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream");
        seen.messages = if is_stream { datas(&body) } else { vec![body] };
        seen.messages.retain(|message| !message.is_empty());
        seen
    }

    pub(super) async fn exchange(&self, message: &Value) -> Seen {
        self.exchange_within(ARRIVAL, message).await
    }

    pub(super) async fn close(self) -> Report {
        self.stop.send(()).unwrap();
        self.report.await.unwrap().unwrap()
    }
}

/// The data of the events.
fn datas(body: &[u8]) -> Vec<Vec<u8>> {
    let mut decoder = toolgate_core::sse::Decoder::up_to(1 << 26);
    let mut events: Vec<_> = decoder.push(body).into_iter().flatten().collect();
    events.extend(decoder.finish());
    events.into_iter().filter_map(|event| event.data).collect()
}
