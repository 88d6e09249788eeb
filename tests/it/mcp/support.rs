//! Helpers of the scenarios: servers and calls.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};
use toolgate::core::id::{CallId, RunId, ServerId};
use toolgate::core::tool::{CallReply, FailureKind, Outcome, Progress, ServerTools, ToolOutput};
use toolgate::core::trace::{SpanContext, Trace};
use toolgate::mcp::{ServerSettings, ServerStatus, Servers};
use toolgate::ports::{McpCall, McpServers};

/// The trace id that tests compare with.
pub(super) const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// A fixture server, written in Python with nothing but its standard library.
pub(super) fn python(script: &str, args: &[&str]) -> ServerSettings {
    static PYTHON: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    let runs = || std::process::Command::new("python3").arg("--version").output().is_ok_and(|out| out.status.success());
    assert!(*PYTHON.get_or_init(runs), "python3 is needed for the fixture servers of these tests; install it");
    ServerSettings::stdio("python3", ["-B", &script_path(script)].iter().chain(args).copied())
}

/// A server that prints to stderr that it is installing, and never answers.
pub(super) fn mute() -> ServerSettings {
    ServerSettings::stdio("sh", ["-c", "echo 'installing 212 packages' >&2; while read -r _; do :; done"])
}

/// The path of a fixture server.
pub(super) fn script_path(script: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/mcp").join(script);
    path.to_str().expect("a path in UTF-8").to_owned()
}

/// The demo server, as a process.
pub(super) fn demo() -> ServerSettings {
    let test = std::env::current_exe().expect("the test binary");
    let binary: PathBuf = test.ancestors().nth(2).expect("the target directory").join("examples/mcp_demo_server");
    let remedy = "build it with `cargo build --example mcp_demo_server`, or run all of `cargo test`";
    assert!(binary.exists(), "the example server is not at {}: {remedy}", binary.display());
    ServerSettings::stdio(binary.to_str().expect("a path in UTF-8"), Vec::<String>::new())
}

/// Servers with these ids.
pub(super) fn servers<const N: usize>(settings: [(&str, ServerSettings); N]) -> Servers {
    Servers::new(settings.map(|(id, settings)| (ServerId::from(id), settings)))
}

/// A trace context with a `tracestate` and `baggage`.
pub(super) fn trace() -> SpanContext {
    let mut trace = Trace::from_traceparent(&format!("00-{TRACE}-00f067aa0ba902b7-01")).expect("valid");
    trace.state = Some("vendor=1".into());
    trace.baggage = Some("user=ada,tier=gold".into());
    trace.context("test")
}

/// The tool lists of these servers.
pub(super) async fn list(servers: &Servers, ids: &[&str]) -> Vec<ServerTools> {
    let ids: Vec<ServerId> = ids.iter().map(|id| ServerId::from(*id)).collect();
    servers.list(&ids, &trace()).await
}

/// The tools of one server, by name; asserts that nothing was left out.
pub(super) async fn names(servers: &Servers, id: &str) -> Vec<String> {
    let listed = list(servers, &[id]).await.remove(0);
    assert_eq!(listed.left_out, []);
    listed.tools.iter().map(|tool| tool.name.clone()).collect()
}

/// The only reason why a server has no tools.
pub(super) async fn missing(servers: &Servers, id: &str) -> String {
    let listed = list(servers, &[id]).await.remove(0);
    assert_eq!((listed.tools.len(), listed.left_out.len()), (0, 1), "{listed:?}");
    assert_eq!((listed.left_out[0].server.as_ref(), &listed.left_out[0].tool), (Some(&ServerId::from(id)), &None));
    listed.left_out[0].reason.clone()
}

/// Calls a tool without looking at its progress.
pub(super) async fn call(servers: &Servers, server: &str, tool: &str, arguments: Value) -> Outcome {
    call_with(servers, server, tool, arguments, None, &|_| {}).await
}

/// Calls a tool.
pub(super) async fn call_with(
    servers: &Servers,
    server: &str,
    tool: &str,
    arguments: Value,
    deadline: Option<Duration>,
    progress: &(dyn Fn(Progress) + Send + Sync),
) -> Outcome {
    ended(servers, server, tool, arguments, deadline, progress).await.0
}

/// Calls a tool. Returns the outcome, and the server's stderr output if it failed.
pub(super) async fn ended(
    servers: &Servers,
    server: &str,
    tool: &str,
    arguments: Value,
    deadline: Option<Duration>,
    progress: &(dyn Fn(Progress) + Send + Sync),
) -> (Outcome, Vec<String>) {
    let Value::Object(arguments): Value = arguments else { panic!("arguments are an object") };
    let (run, call) = (RunId::from("run_1"), CallId::from("call_1"));
    let (server, trace) = (ServerId::from(server), trace());
    let call = McpCall {
        run: &run,
        call: &call,
        server: &server,
        tool,
        arguments: &arguments,
        is_repeatable: false,
        trace: &trace,
        deadline,
        answered: None,
        elicitation: None,
    };
    match servers.call(call, progress).await.reply {
        CallReply::Ended { outcome, stderr } => (outcome, stderr),
        other => panic!("expected the end of the call, got {other:?}"),
    }
}

/// The output of a successful call.
pub(super) fn returned(outcome: Outcome) -> ToolOutput {
    match outcome {
        Outcome::Returned(output) => output,
        other => panic!("expected an answer, got {other:?}"),
    }
}

/// The text of a successful call.
pub(super) fn text(outcome: Outcome) -> String {
    returned(outcome).content.iter().filter_map(|part| part.as_text()).collect()
}

/// Kind and message of a failed call.
pub(super) fn failed(outcome: Outcome) -> (FailureKind, String) {
    match outcome {
        Outcome::Failed(failure) => (failure.kind, failure.message),
        other => panic!("expected a failure, got {other:?}"),
    }
}

/// The report of the worker fixture: its environment and its received messages.
pub(super) async fn report(servers: &Servers, server: &str) -> Map<String, Value> {
    match returned(call(servers, server, "report", serde_json::json!({})).await).structured {
        Some(Value::Object(report)) => report,
        other => panic!("expected a report, got {other:?}"),
    }
}

/// The status of one server.
pub(super) fn status(servers: &Servers, id: &str) -> ServerStatus {
    servers.status().into_iter().find(|status| status.id == ServerId::from(id)).expect("a configured server")
}

/// Whether the process exists, even as a zombie.
pub(super) fn is_running(pid: u32) -> bool {
    let pid = rustix::process::Pid::from_raw(pid.try_into().expect("a process id")).expect("not zero");
    rustix::process::test_kill_process(pid).is_ok()
}

/// The time limit for what should come about at once, on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits for a future, and fails when it takes too long.
pub(super) async fn soon(what: &str, coming: impl Future<Output = ()>) {
    let came = tokio::time::timeout(PATIENCE, coming).await;
    assert!(came.is_ok(), "it never came about that {what}");
}

/// Waits until a condition holds, and fails when it never does.
pub(super) async fn eventually<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !is_so().await {
        assert!(tokio::time::Instant::now() < deadline, "it never came about that {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
