//! Harness: checks of the flawed server, over stdio and over HTTP.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use toolgate_settings::mcp::{ProtocolVersionChoice, StdioSettings};

use crate::check::{Calls, CheckOptions, CheckTarget, Limits, Report, Severity, check};

/// How a server is reached, and whether its tools are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Stdio,
    /// With `--call`.
    Calls,
    Http,
    /// Over HTTP, with `--call`.
    HttpCalls,
    /// Below a shell that ignores SIGTERM, which the server inherits.
    Deaf,
}

impl How {
    /// The way that a row of the comparison names.
    pub(super) fn parse(word: &str) -> Self {
        match word {
            "stdio" => Self::Stdio,
            "calls" => Self::Calls,
            "http" => Self::Http,
            "deaf" => Self::Deaf,
            other => panic!("no way to check a server is called {other}"),
        }
    }
}

/// The program of the flawed server.
pub(super) fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("examples/flawed_server");
    assert!(
        program.exists(),
        "build it with `cargo build -p toolgate-lab --example flawed_server`, or run all of `cargo test`"
    );
    program
}

/// Short limits, which still leave a loaded machine time to answer.
pub(super) fn limits() -> Limits {
    Limits {
        start: Duration::from_secs(8),
        request: Duration::from_millis(1_500),
        call: Duration::from_secs(8),
        exit: Duration::from_millis(700),
        slow_start: Duration::from_millis(1_200),
        slow_list: Duration::from_millis(500),
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

fn http_server(flaws: &[&str]) -> (HttpServer, String) {
    let mut child = Command::new(program()).arg("--http").args(flaws).stdout(Stdio::piped()).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    (HttpServer(child), url.trim().to_owned())
}

/// Checks the flawed server in these versions of the protocol.
pub(super) async fn check_versions(flaws: &[&str], versions: ProtocolVersionChoice) -> Report {
    let settings = StdioSettings::new(program().to_string_lossy(), flaws.iter().copied());
    let options = CheckOptions::new(CheckTarget::Stdio(settings));
    check(CheckOptions { versions, limits: limits(), ..options }, &|_| {}).await
}

/// Checks a command.
pub(super) async fn check_command(settings: StdioSettings, calls: Calls) -> Report {
    check(CheckOptions { calls, limits: limits(), ..CheckOptions::new(CheckTarget::Stdio(settings)) }, &|_| {}).await
}

/// Checks the flawed server.
pub(super) async fn check_server(flaws: &[&str], how: How) -> Report {
    if matches!(how, How::Http | How::HttpCalls) {
        let (_server, url) = http_server(flaws);
        let calls = if how == How::HttpCalls { Calls::ReadOnly } else { Calls::Never };
        let options = CheckOptions::new(CheckTarget::Http { url, headers: Vec::new() });
        return check(CheckOptions { calls, limits: limits(), ..options }, &|_| {}).await;
    }
    if how == How::Deaf {
        let line = format!("trap '' TERM; exec '{}' {}", program().display(), flaws.join(" "));
        return check_command(StdioSettings::new("sh", ["-c", &line]), Calls::Never).await;
    }
    let settings = StdioSettings::new(program().to_string_lossy(), flaws.iter().copied());
    check_command(settings, if how == How::Calls { Calls::ReadOnly } else { Calls::Never }).await
}

/// The findings of a report as lines, for messages of failed tests.
pub(super) fn lines(report: &Report) -> String {
    let lines = report.findings.iter().map(|finding| {
        let place = [finding.tool.as_deref(), finding.pointer.as_deref()].map(|part| part.unwrap_or("-")).join(" ");
        format!("{} {} {place}: {}\n", finding.severity, finding.rule, finding.message)
    });
    lines.collect()
}

/// Whether a report has a finding of a rule.
pub(super) fn has(report: &Report, rule: &str) -> bool {
    report.findings.iter().any(|finding| finding.rule == rule)
}

/// The ids of the findings that are errors or warnings.
pub(super) fn serious(report: &Report) -> Vec<&'static str> {
    report.findings.iter().filter(|finding| finding.severity >= Severity::Warning).map(|finding| finding.rule).collect()
}
