//! Start faults: no answer, a late one, a crash, and unexpected requests from the server.

use std::time::{Duration, Instant};

use serde_json::json;
use toolgate::mcp::ServerState;

use super::*;

#[tokio::test]
async fn a_server_that_hangs_at_start_is_given_up_after_its_start_budget_with_a_remedy() {
    let servers = servers([("bad", within(Duration::from_millis(500), fault(&["hang-at-start"])))]);
    assert_eq!(
        missing(&servers, "bad").await,
        "the MCP server `bad` did not answer the handshake within 0.5 s; does it speak MCP on its stdin and stdout? \
         If it is still installing, install it beforehand, or raise its `start_timeout_s`; it wrote nothing to stderr"
    );
    let bad = status(&servers, "bad").state;
    assert!(matches!(bad, ServerState::BackingOff { failures: 1.., .. } | ServerState::Starting), "{bad:?}");
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_starts_slowly_is_waited_for_within_its_budget() {
    let servers = servers([("slow", fault(&["slow-start=0.6"]))]);
    let started = Instant::now();
    assert_lists_its_tools(&servers, "slow").await;
    assert!(started.elapsed() >= Duration::from_millis(600), "{:?}", started.elapsed());
    assert_eq!(echo(&servers, "slow", "at last").await, "at last");
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_dies_at_start_is_missing_with_its_exit_status_and_its_last_words() {
    let servers = servers([("bad", fault(&["die-at-start"]))]);
    assert_eq!(
        missing(&servers, "bad").await,
        "the MCP server `bad` ended before it was ready: its process ended with exit status: 3; last on its stderr:\n  \
         fatal: FAULT_TOKEN is not set"
    );
    let bad = status(&servers, "bad");
    assert!(matches!(bad.state, ServerState::BackingOff { failures: 1.., .. } | ServerState::Starting), "{bad:?}");
    assert!(bad.last_error.is_some_and(|error| error.message.contains("exit status: 3")));
    servers.close().await;
}

#[tokio::test]
async fn a_program_that_prints_its_reason_to_stdout_and_ends_is_missing_with_that_reason() {
    let arguments = ["-c", "echo 'SHOP_TOKEN is not set'; exit 2"];
    let servers = servers([("bad", ServerSettings::stdio("sh", arguments.map(str::to_owned)))]);
    let reason = missing(&servers, "bad").await;
    assert!(reason.contains("exit status: 2") && reason.contains("SHOP_TOKEN is not set"), "{reason}");
    servers.close().await;
}

#[tokio::test]
async fn the_reason_above_a_long_stack_is_quoted() {
    let servers = servers([("bad", fault(&["node-stack"]))]);
    let reason = missing(&servers, "bad").await;
    assert!(reason.contains("Error: SHOP_TOKEN is not set"), "{reason}");
    servers.close().await;
}

#[tokio::test]
async fn a_revision_that_was_not_announced_is_refused() {
    let servers = servers([("bad", fault(&["unknown-version"]))]);
    let reason = missing(&servers, "bad").await;
    assert!(reason.contains("2099-01-01") && reason.contains("was not announced"), "{reason}");
    servers.close().await;
}

#[tokio::test]
async fn servers_that_cannot_bear_the_probe_for_the_newer_era_are_spoken_to_in_the_older_one() {
    let budget = Duration::from_secs(3);
    let servers = servers([
        ("silent", within(budget, fault(&["hang-at-discover"]))),
        ("dying", within(budget, fault(&["die-at-discover"]))),
    ]);
    for id in ["silent", "dying"] {
        assert_lists_its_tools(&servers, id).await;
        assert_eq!(echo(&servers, id, "hello").await, "hello");
        assert_eq!(status(&servers, id).protocol_version.as_deref(), Some("2025-11-25"));
    }
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_asks_for_roots_is_refused_them_and_works_all_the_same() {
    assert_refuses("asks-roots", "roots-1").await;
}

#[tokio::test]
async fn a_server_that_asks_with_parameters_in_a_list_is_refused_and_works_all_the_same() {
    assert_refuses("asks-in-a-list", "list-1").await;
}

/// Asserts that a server with this fault gets the error "no such method", once.
async fn assert_refuses(fault: &str, id: &str) {
    let (settings, wire) = watched(&[fault]);
    let servers = servers([("curious", settings)]);
    assert_lists_its_tools(&servers, "curious").await;
    assert_eq!(echo(&servers, "curious", "hello").await, "hello");
    let answers = || wire.noted("received").into_iter().filter(|message| message["id"] == id).collect::<Vec<_>>();
    eventually("it is refused", async || !answers().is_empty()).await;
    let answers = answers();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!((&answers[0]["error"]["code"], answers[0].get("result")), (&json!(-32601), None));
    servers.close().await;
}
