//! Server with a recorded stdout, so that the tools that toolgate lists can be compared with the raw messages.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

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

/// One tool as raw JSON, byte by byte.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sent {
    name: String,
    input_schema: Box<RawValue>,
    output_schema: Option<Box<RawValue>>,
}

impl Watched {
    pub(super) async fn start(program: &str, arguments: &[&str]) -> Self {
        Self::start_with(program, arguments, &[], &[]).await
    }

    /// Starts it, lists its tools, and compares them with the raw messages: all are available except `unusable`.
    pub(super) async fn start_with(program: &str, arguments: &[&str], env: &[(&str, &str)], unusable: &[&str]) -> Self {
        let folder = TempDir::new().expect("a directory");
        let wire = folder.path().join("wire");
        let servers = servers([("peer", kept(program, arguments, env, &wire))]);
        // The copy for toolgate may arrive before the one in the file, and some servers add tools after the first
        // list.
        let tools = RefCell::new(Vec::new());
        eventually("what is listed is what is in the file", async || {
            let listed = list(&servers, &["peer"]).await.remove(0);
            let left_out: Vec<Option<&str>> = listed.left_out.iter().map(|left| left.tool.as_deref()).collect();
            assert!(left_out.iter().all(|tool| tool.is_some_and(|tool| unusable.contains(&tool))), "{left_out:?}");
            let is_same = listed.tools.iter().map(|tool| &tool.name).eq(offered(&wire, unusable).keys());
            tools.replace(listed.tools.to_vec());
            is_same && left_out.len() == unusable.len()
        })
        .await;
        let tools = tools.into_inner();
        assert_same(&tools, &offered(&wire, unusable));
        let pid = status(&servers, "peer").pid.expect("a process");
        Self { servers, tools, pid, _folder: folder }
    }

    /// Its tools, in the order of toolgate.
    pub(super) fn tools(&self) -> Vec<&str> {
        self.tools.iter().map(|tool| tool.name.as_str()).collect()
    }

    pub(super) async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        call(&self.servers, "peer", tool, arguments).await
    }

    /// Ends it, and asserts that no process of it is left.
    pub(super) async fn end(self) {
        self.servers.close().await;
        assert!(!is_running(self.pid), "the process is still there");
        let group = rustix::process::Pid::from_raw(self.pid.try_into().expect("a process id")).expect("not zero");
        // A killed process exists until it is reaped; the promise is two seconds.
        let promised = std::time::Instant::now() + std::time::Duration::from_secs(2);
        while rustix::process::test_kill_process_group(group).is_ok() {
            assert!(std::time::Instant::now() < promised, "something of its group is still there");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
}

/// The server with its stdout also written to a file.
fn kept(program: &str, arguments: &[&str], env: &[(&str, &str)], wire: &Path) -> ServerSettings {
    let through = ["-c", r#"wire=$1; shift; "$@" | tee "$wire""#, "sh", wire.to_str().expect("UTF-8"), program];
    let mut settings = ServerSettings::stdio("sh", through.iter().chain(arguments).copied());
    if let Transport::Stdio(stdio) = &mut settings.transport {
        stdio.env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
    }
    settings
}

/// The tools of the last list, except the unusable ones.
fn offered(wire: &Path, unusable: &[&str]) -> BTreeMap<String, Sent> {
    sent(wire).into_iter().filter(|(name, _)| !unusable.contains(&name.as_str())).collect()
}

/// Every tool of the last list, by name: a server may be asked more than once.
fn sent(wire: &Path) -> BTreeMap<String, Sent> {
    #[derive(Deserialize)]
    struct Message {
        result: Listed,
    }
    #[derive(Deserialize)]
    struct Listed {
        tools: Vec<Sent>,
    }
    let wire = std::fs::read_to_string(wire).unwrap_or_default();
    let lists = wire.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok());
    lists.flat_map(|message| message.result.tools).map(|tool| (tool.name.clone(), tool)).collect()
}

fn assert_same(ours: &[McpTool], sent: &BTreeMap<String, Sent>) {
    let names: Vec<&String> = ours.iter().map(|tool| &tool.name).collect();
    assert_eq!(names, sent.keys().collect::<Vec<_>>());
    for (ours, sent) in ours.iter().zip(sent.values()) {
        let (name, output) = (&ours.name, ours.output_schema.as_ref().map(Value::to_string));
        assert_eq!(ours.input_schema.to_string(), sent.input_schema.get(), "inputSchema of {name}");
        assert_eq!(output.as_deref(), sent.output_schema.as_ref().map(|schema| schema.get()), "outputSchema of {name}");
    }
}
