//! `toolgate serve` from the operator's view: a process with a port, a log, and signals.

mod measured;
mod quotas;
mod reload;
mod server;
mod span_catch_up;
mod spending;
mod successor;
mod webhooks;

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use server::{Server, desk};

const GATEWAY: &str = "gateway: { drain_s: 0.05, anonymous: true }\nlease_s: 600\n";

fn with_agents(agents: &str) -> String {
    format!("{GATEWAY}models: {{ played: {{ scripted: {{ file: conversation.yaml }} }} }}\nagents: {{ {agents} }}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_logged_on_one_line_without_secrets() {
    let desk = desk(&with_agents("desk: {}"), "turns: [{ say: Hello. }]");
    let mut server = Server::at(&desk).await;

    let (status, refused) = server.post("/v1/runs?token=hunter2", "wait=20", json!({"input": "my secret"})).await;
    assert_eq!(status, 400, "{refused}");
    let (status, run) = server.post("/v1/runs", "wait=20", json!({"input": "my secret"})).await;

    assert_eq!((status, &run["status"]), (201, &json!("completed")), "{run}");
    let lines = server.lines("\"route\":\"/v1/runs\"", 2).await;
    assert!(lines[0].contains("\"status\":400"), "{lines:?}");
    let line: Value = serde_json::from_str(&lines[1]).unwrap();
    assert_eq!((&line["method"], &line["status"], &line["caller"]), (&json!("POST"), &json!(201), &json!("local")));
    assert!(line["duration_ms"].is_u64() && line["request"].as_str().unwrap().starts_with("req_"), "{line}");
    let serving: Value = serde_json::from_str(&server.line("\"serving\"").await).unwrap();
    assert_eq!(serving["pid"], server.child.id());
    assert!(serving["store"].as_str().unwrap().ends_with("toolgate.db"), "{serving}");
    let said = server.said.lock().unwrap().join("\n");
    assert!(!said.contains("hunter2") && !said.contains("my secret"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_server_resumes_the_runs_of_a_stopped_one_at_once() {
    let turns = "turns: [{ latency_ms: 400, calls: [{ name: nothing_of_that_name }] }, { say: Done. }]";
    let desk = desk(&with_agents("desk: {}"), turns);
    let server = Server::at(&desk).await;
    let (status, run) = server.post("/v1/runs", "respond-async", json!({"input": "Hello"})).await;
    assert_eq!(status, 202, "{run}");

    server.send(Signal::TERM);

    assert_eq!(server.ended().await, Some(0));
    let server = Server::at(&desk).await;
    let began = Instant::now();
    let path = format!("/v1/runs/{}", run["id"].as_str().unwrap());
    while server.get(&path).await.1["status"] != "completed" {
        assert!(began.elapsed() < Duration::from_secs(20), "waited for the lease of ten minutes");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let events = desk.command(&["runs", "export", run["id"].as_str().unwrap()]).output().unwrap();
    let exported = String::from_utf8(events.stdout).unwrap();
    assert_eq!(exported.matches("\"llm.call.completed\"").count(), 2, "nothing was asked twice: {exported}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_the_server_at_once() {
    let desk = desk(&with_agents("desk: {}").replace("drain_s: 0.05", "drain_s: 600"), "turns: [{ hang: true }]");
    let mut server = Server::at(&desk).await;
    server.post("/v1/runs", "respond-async", json!({"input": "Hello"})).await;
    server.send(Signal::TERM);
    server.line("no new runs start").await;
    server.send(Signal::TERM);
    assert_eq!(server.ended().await, Some(130));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_level_of_the_configuration_holds_for_a_server() {
    let desk = desk(&format!("log: warn\n{}", with_agents("desk: {}")), "turns: [{ say: Hello. }]");
    let server = Server::at(&desk).await;
    let (status, _) = server.post("/v1/runs", "wait=20", json!({"input": "Hello"})).await;
    assert_eq!(status, 201);
    server.send(Signal::TERM);
    let said = server.said.clone();
    server.ended().await;
    let said = said.lock().unwrap().join("\n");
    assert!(!said.contains("\"INFO\""), "{said}");
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_store_readable_by_others_gets_a_warning_with_a_remedy() {
    use std::os::unix::fs::PermissionsExt as _;

    let desk = desk(&with_agents("desk: {}"), "turns: [{ say: Hello. }]");
    let mut server = Server::at(&desk).await;
    let serving: Value = serde_json::from_str(&server.line("\"serving\"").await).unwrap();
    let said = server.said.lock().unwrap().join("\n");
    assert!(!said.contains("chmod"), "{said}");
    server.send(Signal::TERM);
    server.ended().await;
    let named = serving["store"].as_str().unwrap();
    std::fs::set_permissions(desk.path().join(named), std::fs::Permissions::from_mode(0o644)).unwrap();

    let remedy = format!("can be read by other users (mode 0644); run `chmod 600 {named}`");
    let mut server = Server::at(&desk).await;
    server.line(&remedy).await;
    let checked = desk.toolgate(&["config", "check"]).expect(0);
    assert!(checked.err.contains(&remedy), "{}", checked.err);
}

/// The responses to this number of requests, each with a long log line.
async fn ask_often(server: &Server, requests: usize) {
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (client, url) = (server.client.clone(), format!("{}/v1/runs/run_unknown", server.url));
        clients.spawn(async move {
            for _ in 0..requests / 8 {
                let request = client.get(&url).header("x-request-id", "x".repeat(128)).timeout(Duration::from_secs(30));
                assert_eq!(request.send().await.expect("it is answered").status(), 404);
            }
        });
    }
    clients.join_all().await;
}

#[tokio::test(flavor = "multi_thread")]
#[allow(clippy::await_holding_lock)] // so that the log is not read meanwhile
async fn a_blocked_log_delays_no_request_and_reports_its_losses() {
    let desk = desk(&with_agents("desk: {}"), "turns: [{ say: Hello. }]");
    let mut server = Server::at(&desk).await;
    let unread = server.said.clone();
    let unread = unread.lock().unwrap();

    // A pipe holds 64 KiB, and the queue before it 1 MiB.
    ask_often(&server, 4_000).await;

    drop(unread);
    let warning: Value = serde_json::from_str(&server.line("log lines dropped").await).unwrap();
    assert!(warning["dropped"].as_u64().unwrap() > 0, "{warning}");
    server.send(Signal::TERM);
    assert_eq!(server.ended().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
#[allow(clippy::await_holding_lock)] // so that the log is not read meanwhile
async fn a_server_whose_log_is_never_read_can_be_stopped() {
    let desk = desk(&with_agents("desk: {}"), "turns: [{ say: Hello. }]");
    let server = Server::at(&desk).await;
    let said = server.said.clone();
    let unread = said.lock().unwrap();
    ask_often(&server, 4_000).await;
    server.send(Signal::TERM);
    let mut server = server;
    let began = Instant::now();
    while server.child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_secs(30), "it waits for its log to be read");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    drop(unread);
}
