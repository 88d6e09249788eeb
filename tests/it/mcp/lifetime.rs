//! End of servers: closed, dropped, or killed by another process.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use toolgate::core::tool::FailureKind;
use toolgate::mcp::{ServerSettings, ServerState};

use super::support::*;

#[tokio::test]
async fn no_child_is_left_after_closing_and_stubborn_ones_are_closed_side_by_side() {
    let ids = ["one", "two", "three", "four", "five", "six", "well-behaved"];
    let servers = servers(ids.map(|id| match id {
        "well-behaved" => (id, python("worker.py", &[])),
        stubborn => (stubborn, python("stubborn.py", &[])),
    }));
    list(&servers, &ids).await;
    let pids: Vec<u32> = servers.status().iter().map(|status| status.pid.expect("a process")).collect();
    assert!(pids.iter().all(|pid| is_running(*pid)));
    let started = Instant::now();
    servers.close().await;
    assert_eq!(pids.iter().filter(|pid| is_running(**pid)).count(), 0);
    // Each is given one and a half seconds to end.
    assert!(started.elapsed() < Duration::from_millis(7500), "{:?}: one after the other", started.elapsed());
}

#[tokio::test]
async fn processes_that_a_server_started_end_with_it() {
    let script = format!("sleep 300 & echo $! >&2; exec python3 -B {}", script_path("worker.py"));
    let servers = servers([("shell", ServerSettings::stdio("sh", ["-c", &script]))]);
    list(&servers, &["shell"]).await;
    let grandchild: u32 = status(&servers, "shell").stderr[0].parse().expect("a process id");
    assert!(is_running(grandchild));
    servers.close().await;
    eventually("the grandchild is reaped", async || !is_running(grandchild)).await;
}

#[tokio::test]
async fn closing_ends_a_server_that_is_still_starting() {
    let servers = servers([("mute", mute())]);
    let closing = async {
        eventually("it is starting", async || !status(&servers, "mute").stderr.is_empty()).await;
        assert_eq!(status(&servers, "mute").state, ServerState::Starting);
        servers.close().await;
    };
    let (reason, ()) = tokio::join!(missing(&servers, "mute"), closing);
    assert_eq!(reason, "the MCP server `mute` was shut down while it was starting");
    let later = missing(&servers, "mute").await;
    assert!(later.contains("was shut down, because toolgate is ending"), "{later}");
}

#[tokio::test]
async fn servers_that_are_dropped_unclosed_still_end() {
    let servers = servers([("worker", python("worker.py", &[]))]);
    list(&servers, &["worker"]).await;
    let pid = status(&servers, "worker").pid.expect("a process");
    drop(servers);
    eventually("the process ended", async || !is_running(pid)).await;
}

#[tokio::test]
async fn a_start_outlives_its_request_but_not_the_servers() {
    let servers = servers([("mute", mute())]);
    let asked = tokio::time::timeout(Duration::from_millis(50), list(&servers, &["mute"])).await;
    assert!(asked.is_err(), "it never answers");
    eventually("it is installing", async || !status(&servers, "mute").stderr.is_empty()).await;
    assert_eq!(status(&servers, "mute").state, ServerState::Starting);
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_was_killed_comes_back_by_itself() {
    let servers = servers([("worker", python("worker.py", &[]))]);
    list(&servers, &["worker"]).await;
    let first = status(&servers, "worker").pid.expect("a process");
    kill(first);
    eventually("it is back", async || status(&servers, "worker").pid.is_some_and(|pid| pid != first)).await;
    let back = status(&servers, "worker");
    assert_eq!((back.state, back.restarts), (ServerState::Ready, 1));
    let lost = back.last_error.expect("it was lost").message;
    assert!(
        lost.starts_with("the MCP server `worker` lost its connection: its process ended with signal: 9"),
        "{lost}"
    );
    assert!(!is_running(first), "and it was reaped");
    servers.close().await;
    assert_eq!(failed(call(&servers, "worker", "report", json!({})).await).0, FailureKind::Unavailable);
}

#[tokio::test]
async fn a_call_right_after_a_crash_waits_for_the_next_start() {
    let servers = servers([("worker", python("worker.py", &[]))]);
    list(&servers, &["worker"]).await;
    kill(status(&servers, "worker").pid.expect("a process"));
    eventually("the loss is noticed", async || status(&servers, "worker").pid.is_none()).await;
    report(&servers, "worker").await;
    assert_eq!(list(&servers, &["worker"]).await[0].tools.len(), 8);
    servers.close().await;
}

fn kill(pid: u32) {
    let pid = Pid::from_raw(pid.try_into().expect("a process id")).expect("not zero");
    kill_process(pid, Signal::KILL).expect("killed");
}
