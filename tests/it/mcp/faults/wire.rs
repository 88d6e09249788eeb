//! Faults of stdout: lines that are not messages, and a closed stdout.

use std::time::Duration;

use toolgate::core::tool::FailureKind;
use toolgate::mcp::ProtocolVersionChoice;

use super::*;

#[tokio::test]
async fn lines_that_are_not_messages_are_skipped() {
    let ((chatty, chat), (logging, log)) = (watched(&["stdout-garbage"]), watched(&["stdout-json-noise"]));
    let servers = servers([("chatty", chatty), ("logging", logging)]);
    for (id, wire) in [("chatty", chat), ("logging", log)] {
        assert_lists_its_tools(&servers, id).await;
        assert_eq!(echo(&servers, id, "hello").await, "hello");
        assert_eq!(executed(&servers, id).await, 1);
        let methods = wire.noted("received").into_iter().map(|mut message| message["method"].take());
        let heard: Vec<Value> = methods.filter(|method| method != "server/discover").collect();
        assert_eq!(
            heard,
            ["initialize", "notifications/initialized", "tools/list", "tools/call", "tools/call"],
            "{id}"
        );
    }
    servers.close().await;
}

#[tokio::test]
async fn answers_that_come_twice_are_taken_once() {
    let servers = servers([("bad", fault(&["duplicate-replies"]))]);
    assert_lists_its_tools(&servers, "bad").await;
    for word in ["one", "two", "three"] {
        assert_eq!(echo(&servers, "bad", word).await, word);
    }
    assert_eq!(executed(&servers, "bad").await, 3);
    servers.close().await;
}

#[tokio::test]
async fn a_banner_that_swallows_the_handshake_answer_costs_the_start_budget() {
    let settings = within(Duration::from_millis(600), fault(&["stdout-banner-without-newline"]));
    let servers = servers([("bad", ServerSettings { protocol_version: ProtocolVersionChoice::Legacy, ..settings })]);
    let reason = missing(&servers, "bad").await;
    assert!(reason.starts_with("the MCP server `bad` did not answer the handshake within 0.6 s"), "{reason}");
    let told = r#"it writes log lines to stdout (1 so far, the first: `Fault Server ready. {"jsonrpc":"2.0","id":"#;
    assert!(reason.contains(told), "what was swallowed can be read: {reason}");
    servers.close().await;
}

#[tokio::test]
async fn a_banner_that_swallows_only_the_probe_answer_is_survived() {
    let servers = servers([("bad", fault(&["stdout-banner-without-newline"]))]);
    assert_lists_its_tools(&servers, "bad").await;
    assert_eq!(echo(&servers, "bad", "hello").await, "hello");
    let noise = status(&servers, "bad").stdout_noise;
    assert!(noise.first[0].starts_with("Fault Server ready. "), "{noise:?}");
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_closes_its_stdout_and_lives_on_is_disconnected_and_started_again() {
    let (settings, wire) = watched(&["connection-reset"]);
    let servers = servers([("bad", settings)]);
    list(&servers, &["bad"]).await;
    let first = status(&servers, "bad").pid.expect("a process");
    let outcome = call(&servers, "bad", "echo", json!({"text": "hello"})).await;
    let expected =
        "the MCP server `bad` broke off the connection: it closed its stdout; it wrote nothing to stderr".to_owned();
    assert_eq!(failed(outcome), (FailureKind::Disconnected, expected));
    assert_eq!(executed(&servers, "bad").await, 0, "a new process, which did not receive the call");
    assert_eq!(wire.calls(), ["echo", "count"], "over both processes");
    eventually("the first process is gone", async || !is_running(first)).await;
    servers.close().await;
}
