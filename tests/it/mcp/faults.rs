//! Servers that misbehave on command (`examples/fault_server`), and the result of each fault in toolgate. In each
//! scenario the tool `count` is the witness: it reports how many calls were executed.

mod call;
mod changes;
mod floods;
mod held_calls;
mod http;
mod http_status;
mod isolation;
mod list;
mod modern_http;
mod negotiation;
mod process;
mod questions;
mod resumed_streams;
mod runs;
mod session_loss;
mod start;
mod stream_loss;
mod tasks;
mod unreadable;
mod unusable;
mod wire;

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use toolgate::core::tool::McpTool;
use toolgate::mcp::{ServerSettings, Servers};

use super::support::*;

/// The tools of a fault server without a list fault, by name.
const TOOLS: [&str; 6] = ["add", "count", "echo", "fail", "mutant", "slow"];

/// A fault server over stdio.
pub(super) fn fault(faults: &[&str]) -> ServerSettings {
    ServerSettings::stdio(program(), [vec!["--stdio".into()], arguments(faults)].concat())
}

/// The same, with its log.
pub(super) fn watched(faults: &[&str]) -> (ServerSettings, Wire) {
    let wire = Wire::new();
    (ServerSettings::stdio(program(), [wire.arguments(), arguments(faults)].concat()), wire)
}

/// The same, of that era.
fn of_era(era: &str, faults: &[&str]) -> (ServerSettings, Wire) {
    let wire = Wire::new();
    let era = vec!["--protocol-version".to_owned(), era.to_owned()];
    (ServerSettings::stdio(program(), [era, wire.arguments(), arguments(faults)].concat()), wire)
}

/// A fault server over HTTP; dropping this value ends it.
pub(super) struct Endpoint {
    pub(super) url: String,
    pub(super) wire: Wire,
    _process: tokio::process::Child,
}

impl Endpoint {
    pub(super) async fn with(faults: &[&str]) -> Self {
        Self::of_era("2025-11-25", faults).await
    }

    async fn of_era(era: &str, faults: &[&str]) -> Self {
        let wire = Wire::new();
        let mut process = tokio::process::Command::new(program())
            .args(["--http", "0", "--protocol-version", era])
            .args([arguments(faults), wire.arguments()].concat())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the fault server starts");
        let mut line = String::new();
        let stdout = process.stdout.take().expect("its stdout");
        BufReader::new(stdout).read_line(&mut line).await.expect("a line");
        let said: Value = serde_json::from_str(&line).expect("JSON");
        Self { url: said["url"].as_str().expect("an address").to_owned(), wire, _process: process }
    }

    pub(super) fn settings(&self) -> ServerSettings {
        ServerSettings::http(&self.url)
    }
}

/// The log of a fault server.
pub(super) struct Wire {
    folder: TempDir,
}

impl Wire {
    fn new() -> Self {
        Self { folder: TempDir::new().expect("a folder") }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("wire.jsonl")
    }

    fn arguments(&self) -> Vec<String> {
        vec!["--log".into(), self.path().to_str().expect("UTF-8").into()]
    }

    /// All log entries with that key, of all processes.
    pub(super) fn noted(&self, what: &str) -> Vec<Value> {
        let log = std::fs::read_to_string(self.path()).unwrap_or_default();
        // The server may be writing the last line at this moment.
        let whole = log.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let lines = whole.map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));
        lines.filter_map(|mut line| line.get_mut(what).map(Value::take)).collect()
    }

    /// The received messages of that method.
    pub(super) fn received(&self, method: &str) -> Vec<Value> {
        self.noted("received").into_iter().filter(|message| message["method"] == method).collect()
    }

    /// The names of the called tools.
    pub(super) fn calls(&self) -> Vec<String> {
        let calls = self.received("tools/call").into_iter();
        calls.map(|call| call["params"]["name"].as_str().expect("a name").to_owned()).collect()
    }
}

/// The names of these tools, in order.
fn sorted(tools: &[McpTool]) -> Vec<&str> {
    let mut names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    names.sort_unstable();
    names
}

/// Asserts that a server lists its tools without a complaint.
async fn assert_lists_its_tools(servers: &Servers, id: &str) {
    let listed = list(servers, &[id]).await.remove(0);
    assert_eq!((sorted(&listed.tools), listed.left_out), (TOOLS.to_vec(), vec![]), "{id}");
}

/// The answer of `echo` to the text.
async fn echo(servers: &Servers, id: &str, text: &str) -> String {
    super::support::text(call(servers, id, "echo", json!({"text": text})).await)
}

/// The witness: how many calls of the other tools were executed.
pub(super) async fn executed(servers: &Servers, id: &str) -> u64 {
    let answer = returned(call(servers, id, "count", json!({})).await).structured.expect("a structured answer");
    answer["calls"].as_u64().expect("a number")
}

/// The same server with a call timeout that a test can wait for.
pub(super) fn impatient(settings: ServerSettings) -> ServerSettings {
    ServerSettings { call_timeout: Duration::from_secs(1), ..settings }
}

/// The same server with time for messages that a loaded machine takes long to read.
pub(super) fn unhurried(settings: ServerSettings) -> ServerSettings {
    ServerSettings { call_timeout: Duration::from_secs(600), ..settings }
}

/// The same server with that start timeout.
pub(super) fn within(start_timeout: Duration, settings: ServerSettings) -> ServerSettings {
    ServerSettings { start_timeout, ..settings }
}

/// `protocol-version=...` is not a fault, but what the server supports.
fn arguments(faults: &[&str]) -> Vec<String> {
    let option = |fault: &&str| match fault.strip_prefix("protocol-version=") {
        Some(era) => ["--protocol-version".to_owned(), era.to_owned()],
        None => ["--fault".to_owned(), (*fault).to_owned()],
    };
    faults.iter().flat_map(option).collect()
}

fn program() -> String {
    let test = std::env::current_exe().expect("the test binary");
    let binary = test.ancestors().nth(2).expect("the target directory").join("examples/fault_server");
    let remedy = "build it with `cargo build --example fault_server`, or run all of `cargo test`";
    assert!(binary.exists(), "the fault server is not at {}: {remedy}", binary.display());
    binary.to_str().expect("UTF-8").to_owned()
}

#[test]
fn the_page_about_the_fault_server_has_a_row_for_each_fault_of_its_help() {
    let help = std::process::Command::new(program()).output().expect("it runs");
    assert!(help.status.success(), "without arguments it prints its usage");
    let help = String::from_utf8(help.stdout).expect("UTF-8");
    let (_, table) = help.split_once("\nFaults:\n").expect("a list of faults");
    let told: Vec<String> = table
        .lines()
        .map(|line| {
            let (usage, what) = line.trim().split_once("  ").expect("a usage and what it does");
            format!("| `{}` | {} |", usage.replace('|', "\\|"), what.trim())
        })
        .collect();
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/fault-server.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(rows, told);
}
