//! Servers whose errors and warnings are known as a whole: each mistake is told once, and as what it is.

use std::time::Duration;

use futures::StreamExt;
use serde_json::{Value, json};
use toolgate_core::redact::Secrets;
use toolgate_settings::mcp::StdioSettings;

use super::harness::How::{self, Calls, Http, HttpCalls, Stdio};
use super::harness::{check_server, limits, lines};
use crate::check::context::Context;
use crate::check::finding::Findings;
use crate::check::wire::answer::NoAnswer;
use crate::check::wire::log::WireLog;
use crate::check::{CheckTarget, Severity};

/// The server in words, its flaws, all errors and warnings of its report, and how it is checked.
type Server = (&'static str, &'static [&'static str], &'static [&'static str], How);

const SERVERS: [Server; 18] = [
    ("parameters that headers repeat", &["--modern-only", "--mirrored"], &[], HttpCalls),
    ("a stream of GET", &["get-stream"], &[], Http),
    ("calls that run as tasks", &["--tasks"], &[], Calls),
    ("the same without sessions", &["--modern-only", "--tasks"], &[], Calls),
    ("calls that wait for an approval", &["--modern-only", "--tasks", "--approval"], &[], Calls),
    ("a call that is denied", &["denied"], &[], Calls),
    ("no metadata", &["auth"], &["error server-not-started", "error http-auth-metadata"], Http),
    ("metadata at the root", &["auth-root"], &["error server-not-started", "warning http-auth-metadata"], Http),
    ("metadata below the path", &["auth-path"], &["error server-not-started", "warning http-auth-metadata"], Http),
    ("metadata that the challenge names", &["auth-named"], &["error server-not-started"], Http),
    ("an unknown version refused as text", &["unknown-version-400"], &["warning version-refused"], Http),
    ("initialize refused as text by a stateless server", &["--modern-only", "initialize-400"], &[], Http),
    ("a ping of the server before its answer", &["asks-in-stream"], &[], Http),
    ("a call that blocks the server", &["call-hangs"], &["error call-unanswered"], Calls),
    ("an exit in a list", &["list-dies", "prompts-missing"], &["error server-crashed"], Stdio),
    ("calls that fail after many others", &["rate-limited"], &[], Calls),
    ("calls that ask for input", &["--modern-only", "asks-input"], &[], Calls),
    ("a line that is too long", &["huge-line"], &["error message-too-large"], Calls),
];

#[tokio::test]
async fn each_mistake_is_told_once_and_as_what_it_is() {
    let checks = SERVERS.iter().map(|(what, flaws, expected, how)| async move {
        let report = check_server(flaws, *how).await;
        let serious = report.findings.iter().filter(|finding| finding.severity >= Severity::Warning);
        let told: Vec<String> = serious.map(|finding| format!("{} {}", finding.severity, finding.rule)).collect();
        (told != *expected).then(|| format!("{what} ({flaws:?}): expected {expected:?}, found:\n{}", lines(&report)))
    });
    let wrong: Vec<String> =
        futures::stream::iter(checks).buffer_unordered(4).filter_map(|wrong| async { wrong }).collect().await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn tools_that_are_no_longer_called_are_listed_with_the_reason() {
    let report = check_server(&["many-dying-tools"], Calls).await;
    let skipped = report.calls.unwrap().skipped;
    assert!(skipped.iter().any(|(tool, reason)| tool == "slow" && reason.contains("30 times")), "{skipped:?}");
}

#[tokio::test]
async fn the_load_leaves_out_tools_that_ask_for_input() {
    let report = check_server(&["--modern-only", "asks-input"], Calls).await;
    let load = report.calls.unwrap().load;
    assert!(!load.is_empty() && load.iter().all(|row| row.tool == "slow"), "{load:?}");
}

#[tokio::test]
async fn a_server_that_does_not_read_its_input_holds_up_no_message() {
    let target = CheckTarget::Stdio(StdioSettings::new("sleep", ["60"]));
    let secrets = Secrets::default();
    let context = Context {
        findings: Findings::without(secrets.clone()),
        log: WireLog::new(None, secrets),
        limits: limits(),
        target,
    };
    let connection = context.connect("test").unwrap();
    let large = json!({"reason": "x".repeat(1 << 20)});
    let notified = connection.notify("notifications/cancelled", large);
    assert!(tokio::time::timeout(Duration::from_secs(20), notified).await.is_ok());
    let answered = connection.request_within("ping", Value::Null, Duration::from_millis(50)).await;
    assert!(matches!(answered, Err(NoAnswer::TimedOut(_))), "{answered:?}");
}
