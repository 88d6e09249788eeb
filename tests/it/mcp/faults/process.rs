//! Process faults: a server that does not exit, orphans its children, floods, or leaks its secrets.

use std::time::{Duration, Instant};

use secrecy::SecretString;
use toolgate::core::tool::FailureKind;
use toolgate::mcp::Transport;

use super::*;

#[tokio::test]
async fn a_server_that_ignores_every_signal_to_go_is_gone_after_closing() {
    let ids = ["one", "two", "three", "four"];
    let servers = servers(ids.map(|id| (id, fault(&["ignores-sigterm"]))));
    list(&servers, &ids).await;
    let pids: Vec<u32> = servers.status().iter().map(|status| status.pid.expect("a process")).collect();
    let started = Instant::now();
    servers.close().await;
    assert_eq!(pids.iter().filter(|pid| is_running(**pid)).count(), 0);
    // Each is given three seconds to end.
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}: one after the other", started.elapsed());
}

#[tokio::test]
async fn a_grandchild_that_holds_stderr_delays_neither_the_verdict_nor_the_close() {
    let servers = servers([("bad", fault(&["spawns-grandchild", "die-in-call"]))]);
    list(&servers, &["bad"]).await;
    let line = status(&servers, "bad").stderr.remove(0);
    let grandchild: u32 = line.strip_prefix("grandchild ").and_then(|pid| pid.parse().ok()).expect("its process id");
    assert!(is_running(grandchild));
    let started = Instant::now();
    let (kind, message) = failed(call(&servers, "bad", "echo", json!({"text": "hello"})).await);
    assert_eq!(kind, FailureKind::Disconnected);
    assert!(message.contains("its process ended with exit status: 4"), "{message}");
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    eventually("the grandchild is gone", async || !is_running(grandchild)).await;
    servers.close().await;
}

#[tokio::test]
async fn megabytes_on_stderr_stop_nothing_and_are_kept_as_their_last_lines() {
    let servers = servers([("bad", fault(&["stderr-flood=8"]))]);
    assert_lists_its_tools(&servers, "bad").await;
    assert_eq!(echo(&servers, "bad", "hello").await, "hello");
    let stderr = status(&servers, "bad").stderr;
    let length: usize = stderr.iter().map(String::len).sum();
    assert!(!stderr.is_empty() && length <= 16 * 1024, "{} lines, {length} bytes", stderr.len());
    servers.close().await;
}

#[tokio::test]
async fn secrets_of_a_server_are_never_repeated() {
    let mut settings = fault(&["secrets-on-stderr", "die-at-start"]);
    if let Transport::Stdio(stdio) = &mut settings.transport {
        stdio.env.insert("SHOP_TOKEN".into(), SecretString::from("s3cret-s3cret"));
    }
    let servers = servers([("bad", settings)]);
    let reason = missing(&servers, "bad").await;
    let status = format!("{:?}", status(&servers, "bad"));
    assert!(status.contains("SHOP_TOKEN=[redacted]"), "{status}");
    assert!(!reason.contains("s3cret") && !status.contains("s3cret"), "{reason}\n{status}");
    servers.close().await;
}

#[tokio::test]
async fn a_process_that_ends_in_the_middle_of_an_answer_is_quoted_with_its_exit_status() {
    let (settings, wire) = watched(&["die-in-answer"]);
    let servers = servers([("bad", settings)]);
    assert_lists_its_tools(&servers, "bad").await;
    let (kind, message) = failed(call(&servers, "bad", "echo", json!({"text": "hello"})).await);
    assert_eq!(kind, FailureKind::Disconnected, "{message}");
    let expected = "its process ended with exit status: 3; its stdout ended in the middle of a message: `{\"jsonrpc\":";
    assert!(message.contains(expected), "{message}");
    assert_eq!(wire.calls(), ["echo"]);
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_its_launcher_left_behind_is_used_until_its_output_ends() {
    let servers = servers([("forked", fault(&["forks"]))]);
    assert_lists_its_tools(&servers, "forked").await;
    for word in ["one", "two"] {
        assert_eq!(echo(&servers, "forked", word).await, word);
    }
    assert_eq!(executed(&servers, "forked").await, 2, "it is the same process");
    assert_eq!(status(&servers, "forked").restarts, 0);
    servers.close().await;
}

#[tokio::test]
async fn a_forked_server_that_dies_is_started_again() {
    let servers = servers([("forked", fault(&["forks", "die-in-call"]))]);
    assert_lists_its_tools(&servers, "forked").await;
    let (kind, message) = failed(call(&servers, "forked", "echo", json!({"text": "hello"})).await);
    assert_eq!(kind, FailureKind::Disconnected, "{message}");
    assert!(message.contains("the roof is on fire"), "{message}");
    assert_lists_its_tools(&servers, "forked").await;
    servers.close().await;
}

#[tokio::test]
async fn a_forked_server_is_gone_after_closing() {
    let servers = servers([("forked", fault(&["forks", "spawns-grandchild", "ignores-sigterm"]))]);
    list(&servers, &["forked"]).await;
    let line = status(&servers, "forked").stderr.remove(0);
    let grandchild: u32 = line.strip_prefix("grandchild ").and_then(|pid| pid.parse().ok()).expect("its process id");
    assert!(is_running(grandchild));
    servers.close().await;
    eventually("the grandchild is gone", async || !is_running(grandchild)).await;
}
