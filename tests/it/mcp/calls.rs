//! Calls: what is sent, how they end, and the cancellation at the server when the caller stops waiting.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::sync::Notify;
use toolgate::core::chat::Part;
use toolgate::core::tool::FailureKind;
use toolgate::mcp::{ServerSettings, Servers, Transport};

use super::support::*;

/// The messages of that method that the worker received.
async fn heard(servers: &Servers, method: &str) -> Vec<Value> {
    heard_by(servers, "worker", method).await
}

async fn heard_by(servers: &Servers, server: &str, method: &str) -> Vec<Value> {
    let report = report(servers, server).await;
    let all = report["heard"].as_array().expect("a list");
    all.iter().filter(|message| message["method"] == method).cloned().collect()
}

fn worker() -> ServerSettings {
    python("worker.py", &[])
}

#[tokio::test]
async fn the_handshake_offers_elicitation_unless_it_is_switched_off_and_never_anything_else() {
    let mut silent = worker();
    silent.elicitation = false;
    let servers = servers([("worker", worker()), ("silent", silent)]);
    for (id, capabilities) in [("worker", json!({"elicitation": {"form": {}, "url": {}}})), ("silent", json!({}))] {
        let params = heard_by(&servers, id, "initialize").await.remove(0)["params"].take();
        assert_eq!((&params["protocolVersion"], &params["capabilities"]), (&json!("2025-11-25"), &capabilities));
        assert_eq!(params["clientInfo"]["name"], "toolgate");
    }
    servers.close().await;
}

#[tokio::test]
async fn a_call_carries_its_arguments_its_trace_and_its_idempotency_key() {
    let servers = servers([("worker", worker())]);
    let report = heard(&servers, "tools/call").await.remove(0);
    let params = &report["params"];
    assert_eq!(params["arguments"], json!({}), "sent also when empty");
    let meta = params["_meta"].as_object().expect("_meta");
    assert_eq!(meta["traceparent"], trace().traceparent());
    assert!(meta["traceparent"].as_str().expect("text").contains(TRACE));
    assert_eq!(meta["tracestate"], "vendor=1");
    assert_eq!(meta["io.toolgate/idempotency-key"], "run_1/call_1");
    assert!(meta.contains_key("progressToken"));
    servers.close().await;
}

#[tokio::test]
async fn a_child_has_only_its_configured_environment() {
    let mut settings = worker();
    if let Transport::Stdio(stdio) = &mut settings.transport {
        stdio.env.insert("SHOP_TOKEN".into(), SecretString::from("s3cret"));
    }
    let mut inheriting = worker();
    if let Transport::Stdio(stdio) = &mut inheriting.transport {
        stdio.inherit_env = true;
    }
    assert!(!format!("{settings:?}").contains("s3cret"), "settings can be logged");
    // Cargo sets this variable for every test; here it represents a secret in the environment of toolgate.
    let canary = "CARGO_MANIFEST_DIR";
    assert!(
        std::env::var_os(canary).is_some(),
        "run the tests through cargo: the canary has to be there to be absent below"
    );

    let servers = servers([("worker", settings), ("inheriting", inheriting)]);
    let clean = report(&servers, "worker").await["environment"].take();
    assert_eq!(clean["SHOP_TOKEN"], "s3cret");
    let path = std::env::var("PATH").expect("PATH");
    assert!(
        clean["PATH"].as_str().expect("text").ends_with(&path),
        "a wrapper of python3 may have put itself in front"
    );
    assert_eq!(clean.get(canary), None);
    let full = report(&servers, "inheriting").await["environment"].take();
    assert_eq!(full[canary], env!("CARGO_MANIFEST_DIR"));
    servers.close().await;
}

#[tokio::test]
async fn dropping_a_call_cancels_it_at_the_server() {
    let servers = servers([("worker", worker())]);
    let started = Notify::new();
    let tell = |_| started.notify_one();
    tokio::select! {
        outcome = call_with(&servers, "worker", "slow", json!({}), None, &tell) => panic!("it ended: {outcome:?}"),
        () = soon("the call starts", started.notified()) => {}
    }
    eventually("the server hears of the cancellation", async || {
        !heard(&servers, "notifications/cancelled").await.is_empty()
    })
    .await;
    let slow = heard(&servers, "tools/call").await.remove(0);
    let cancelled = heard(&servers, "notifications/cancelled").await;
    assert_eq!(slow["params"]["name"], "slow");
    assert_eq!(cancelled.len(), 1, "{cancelled:?}");
    assert_eq!(cancelled[0]["params"]["requestId"], slow["id"]);
    servers.close().await;
}

#[tokio::test]
async fn a_silent_call_times_out_and_is_cancelled_at_the_server() {
    let mut settings = worker();
    settings.call_timeout = Duration::from_millis(200);
    let servers = servers([("worker", settings)]);
    let (kind, message) = failed(call(&servers, "worker", "silent", json!({})).await);
    assert_eq!(kind, FailureKind::Timeout);
    assert!(message.starts_with("the MCP server `worker` gave neither an answer nor progress for 0.2 s"), "{message}");
    eventually("the server hears of the cancellation", async || {
        heard(&servers, "notifications/cancelled").await.len() == 1
    })
    .await;
    servers.close().await;
}

#[tokio::test]
async fn progress_keeps_a_call_alive_but_not_beyond_its_total() {
    let mut settings = worker();
    settings.call_timeout = Duration::from_millis(350);
    let servers = servers([("worker", settings)]);
    let steps = Mutex::new(Vec::new());
    let note = |progress: toolgate::core::tool::Progress| steps.lock().unwrap().push(progress.progress);
    let outcome = call_with(&servers, "worker", "steady", json!({}), None, &note).await;
    assert_eq!(text(outcome), "done", "half a second of work within an idle limit of 350 ms");
    assert_eq!(*steps.lock().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0]);

    let deadline = Some(Duration::from_millis(250));
    let (kind, message) = failed(call_with(&servers, "worker", "steady", json!({}), deadline, &|_| {}).await);
    assert_eq!(kind, FailureKind::Timeout);
    assert!(message.contains("gave no answer within the 0.25 s that were left"), "{message}");
    servers.close().await;
}

#[tokio::test]
async fn a_call_that_waits_for_its_turn_in_vain_was_never_made_and_says_so() {
    let mut settings = worker();
    settings.max_concurrency = 1;
    let servers = servers([("worker", settings)]);
    list(&servers, &["worker"]).await;
    let short = |ms| Some(Duration::from_millis(ms));
    let (first, second) = tokio::join!(
        call_with(&servers, "worker", "slow", json!({}), short(400), &|_| {}),
        call_with(&servers, "worker", "nothing", json!({}), short(200), &|_| {}),
    );
    assert_eq!(failed(first).0, FailureKind::Timeout);
    let (kind, message) = failed(second);
    assert_eq!(kind, FailureKind::Unavailable);
    assert!(
        message.contains("was busy with other calls for 0.2 s; the call was not made. A higher `max_concurrency`"),
        "{message}"
    );
    let names: Vec<Value> =
        heard(&servers, "tools/call").await.into_iter().map(|mut call| call["params"]["name"].take()).collect();
    assert_eq!(names, ["slow", "report"]);
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_disconnects_it_and_the_call_is_not_made_again() {
    let servers = servers([("worker", worker())]);
    let (kind, message) = failed(call(&servers, "worker", "die", json!({})).await);
    assert_eq!(kind, FailureKind::Disconnected);
    assert_eq!(
        message,
        "the MCP server `worker` broke off the connection: its process ended with exit status: 7; last on its \
         stderr:\n  the roof is on fire"
    );
    let calls = heard(&servers, "tools/call").await;
    assert_eq!(calls.len(), 1, "the next request starts the server again, and it received only that one: {calls:?}");
    assert_eq!(calls[0]["params"]["name"], "report");
    servers.close().await;
}

#[tokio::test]
async fn refusals_unreadable_answers_and_unknown_content_are_distinguished() {
    let servers = servers([("worker", worker())]);
    assert_eq!(
        failed(call(&servers, "worker", "refuse", json!({})).await),
        (
            FailureKind::Refused,
            "the MCP server `worker` refused the request: the till is closed (JSON-RPC error -32000)".into()
        )
    );
    let (kind, message) = failed(call(&servers, "worker", "nothing", json!({})).await);
    assert_eq!(kind, FailureKind::Unreadable);
    assert!(message.ends_with("it has neither `content` nor `structuredContent`: {}"), "{message}");
    let content = returned(call(&servers, "worker", "hologram", json!({})).await).content;
    let kept = r#"[content of type `hologram` that toolgate cannot interpret, as JSON] {"type":"hologram","beam":1}"#;
    assert_eq!(content, [Part::text(kept), Part::text("and text")]);
    servers.close().await;
}

#[tokio::test]
async fn a_call_to_a_server_that_cannot_be_had_is_unavailable() {
    let servers = servers([("dead", python("dies.py", &[]))]);
    let (kind, message) = failed(call(&servers, "dead", "anything", json!({})).await);
    assert_eq!(kind, FailureKind::Unavailable);
    assert!(message.contains("SHOP_TOKEN is not set"), "{message}");
    let (kind, message) = failed(call(&servers, "unheard-of", "anything", json!({})).await);
    assert_eq!(kind, FailureKind::Unavailable);
    assert!(message.contains("there is no MCP server `unheard-of`"), "{message}");
    let started = Instant::now();
    servers.close().await;
    assert!(started.elapsed() < Duration::from_secs(1), "there is nothing to shut down");
}
