//! A server whose every line to us is kept, so that what we say it offers can be held against what it sent.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tempfile::TempDir;
use toolgate::core::tool::{McpTool, Outcome};
use toolgate::mcp::{ServerSettings, Servers, Transport};

use super::super::support::*;

/// The server, connected and listed.
pub(super) struct Watched {
    servers: Servers,
    tools: Vec<McpTool>,
    pid: u32,
    _folder: TempDir,
}

/// One tool as it stood on the wire, byte by byte.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sent {
    name: String,
    input_schema: Box<RawValue>,
    output_schema: Option<Box<RawValue>>,
}

impl Watched {
    pub(super) async fn start(program: &str, arguments: &[&str]) -> Self {
        Self::start_with(program, arguments, &[]).await
    }

    /// Starts it, lists its tools, and holds them against the wire.
    pub(super) async fn start_with(program: &str, arguments: &[&str], env: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().expect("a directory");
        let wire = folder.path().join("wire");
        let servers = servers([("peer", kept(program, arguments, env, &wire))]);
        let listed = list(&servers, &["peer"]).await.remove(0);
        assert_eq!(listed.left_out, []);
        assert_same(&listed.tools, &sent(&wire));
        let pid = status(&servers, "peer").pid.expect("a process");
        Self { servers, tools: listed.tools, pid, _folder: folder }
    }

    /// Its tools, in its order.
    pub(super) fn tools(&self) -> Vec<&str> {
        self.tools.iter().map(|tool| tool.name.as_str()).collect()
    }

    pub(super) async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        call(&self.servers, "peer", tool, arguments).await
    }

    /// Ends it, and sees to it that nothing of it is left.
    pub(super) async fn end(self) {
        self.servers.close().await;
        assert!(!is_running(self.pid), "the process is still there");
        let group = rustix::process::Pid::from_raw(self.pid.try_into().expect("a process id")).expect("not zero");
        assert!(rustix::process::test_kill_process_group(group).is_err(), "something of its group is still there");
    }
}

/// The server with its stdout written to a file as well.
fn kept(program: &str, arguments: &[&str], env: &[(&str, &str)], wire: &Path) -> ServerSettings {
    let through = ["-c", r#"wire=$1; shift; "$@" | tee "$wire""#, "sh", wire.to_str().expect("UTF-8"), program];
    let mut settings = ServerSettings::stdio("sh", through.iter().chain(arguments).copied());
    if let Transport::Stdio(stdio) = &mut settings.transport {
        stdio.env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
    }
    settings
}

/// Every tool that any list on the wire had.
fn sent(wire: &PathBuf) -> Vec<Sent> {
    let wire = std::fs::read_to_string(wire).expect("the wire was kept");
    let results = wire.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok().map(|value| (line, value)));
    let lists = results.filter(|(_, message)| message["result"]["tools"].is_array());
    let tools = lists.flat_map(|(line, _)| {
        #[derive(Deserialize)]
        struct Message {
            result: Result,
        }
        #[derive(Deserialize)]
        struct Result {
            tools: Vec<Sent>,
        }
        serde_json::from_str::<Message>(line).expect("tools with schemas").result.tools
    });
    tools.collect()
}

fn assert_same(ours: &[McpTool], sent: &[Sent]) {
    let names = |tools: Vec<&String>| tools.into_iter().cloned().collect::<Vec<_>>();
    assert_eq!(
        names(ours.iter().map(|tool| &tool.name).collect()),
        names(sent.iter().map(|tool| &tool.name).collect())
    );
    for (ours, sent) in ours.iter().zip(sent) {
        assert_eq!(ours.input_schema.to_string(), sent.input_schema.get(), "inputSchema of {}", ours.name);
        let output = ours.output_schema.as_ref().map(Value::to_string);
        assert_eq!(
            output.as_deref(),
            sent.output_schema.as_ref().map(|schema| schema.get()),
            "outputSchema of {}",
            ours.name
        );
    }
}
