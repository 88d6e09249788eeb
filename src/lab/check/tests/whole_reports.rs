//! Servers whose errors and warnings are known as a whole: each mistake is told once, and as what it is.

use futures::StreamExt;

use super::harness::How::{self, Http};
use super::harness::{check_server, lines};
use crate::check::Severity;

/// The server in words, its flaws, all errors and warnings of its report, and how it is checked.
type Server = (&'static str, &'static [&'static str], &'static [&'static str], How);

const SERVERS: [Server; 7] = [
    ("no metadata", &["auth"], &["error server-not-started", "error http-auth-metadata"], Http),
    ("metadata at the root", &["auth-root"], &["error server-not-started", "warning http-auth-metadata"], Http),
    ("metadata below the path", &["auth-path"], &["error server-not-started", "warning http-auth-metadata"], Http),
    ("metadata that the challenge names", &["auth-named"], &["error server-not-started"], Http),
    ("an unknown version refused as text", &["unknown-version-400"], &["warning version-refused"], Http),
    ("initialize refused as text by a stateless server", &["--modern-only", "initialize-400"], &[], Http),
    ("a ping of the server before its answer", &["asks-in-stream"], &[], Http),
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
