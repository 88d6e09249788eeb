//! Call faults: no answer, a late one, a wrong one, a huge one, and a crash in the middle.

use std::sync::Mutex;

use toolgate::core::chat::Part;
use toolgate::core::tool::FailureKind;
use toolgate::mcp::ServerState;

use super::*;

const SILENT: &str = "the MCP server `bad` gave neither an answer nor progress for 1 s; the request was cancelled. Raise \
                      its `call_timeout_s` if it needs longer";

#[tokio::test]
async fn a_call_that_hangs_is_cancelled_after_its_silence_and_the_server_stays_usable() {
    let (settings, wire) = watched(&["hang-at-call"]);
    let servers = servers([("bad", impatient(settings))]);
    let outcome = call(&servers, "bad", "echo", json!({"text": "hello"})).await;
    assert_eq!(failed(outcome), (FailureKind::Timeout, SILENT.into()));
    eventually("the server receives the cancellation", async || wire.received("notifications/cancelled").len() == 1)
        .await;
    let (called, cancelled) = (wire.received("tools/call"), wire.received("notifications/cancelled"));
    assert_eq!(cancelled[0]["params"]["requestId"], called[0]["id"]);
    assert_eq!(executed(&servers, "bad").await, 1);
    assert_eq!(wire.calls(), ["echo", "count"], "made once");
    servers.close().await;
}

#[tokio::test]
async fn a_wait_that_the_caller_ends_blames_no_setting_of_the_server() {
    let servers = servers([("bad", fault(&["hang-at-call"]))]);
    list(&servers, &["bad"]).await;
    let deadline = Some(Duration::from_nanos(411_069_682));
    let outcome = call_with(&servers, "bad", "echo", json!({"text": "hello"}), deadline, &|_| {}).await;
    let expected =
        "the MCP server `bad` gave no answer within the 0.41 s that were left for the call; the request was cancelled";
    assert_eq!(failed(outcome), (FailureKind::Timeout, expected.into()));
    servers.close().await;
}

#[tokio::test]
async fn a_call_over_its_total_time_names_the_limit() {
    let mut settings = fault(&["slow-call=5", "progress-every=50"]);
    settings.total_timeout = Duration::from_millis(400);
    let servers = servers([("bad", settings)]);
    let outcome = call(&servers, "bad", "echo", json!({"text": "hello"})).await;
    let expected = "the MCP server `bad` gave no answer within 0.4 s; the request was cancelled. Raise its \
                    `total_timeout_s` if it needs longer";
    assert_eq!(failed(outcome), (FailureKind::Timeout, expected.into()));
    servers.close().await;
}

#[tokio::test]
async fn progress_keeps_a_slow_call_alive_and_silence_ends_it() {
    let servers = servers([
        ("talking", impatient(fault(&["slow-call=2.3", "progress-every=500"]))),
        ("bad", impatient(fault(&["slow-call=2.3"]))),
    ]);
    let steps = Mutex::new(Vec::new());
    let note = |progress: toolgate::core::tool::Progress| steps.lock().unwrap().push(progress.progress);
    let answer = call_with(&servers, "talking", "echo", json!({"text": "done"}), None, &note).await;
    assert_eq!(text(answer), "done", "2.3 s of work within an idle limit of 1 s");
    assert_eq!(*steps.lock().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    let outcome = call(&servers, "bad", "echo", json!({"text": "hello"})).await;
    assert_eq!(failed(outcome), (FailureKind::Timeout, SILENT.into()));
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_is_started_again_and_the_call_is_not_made_again() {
    let (settings, wire) = watched(&["die-in-call"]);
    let servers = servers([("bad", settings)]);
    list(&servers, &["bad"]).await;
    let first = status(&servers, "bad").pid;
    let outcome = call(&servers, "bad", "echo", json!({"text": "hello"})).await;
    let expected = "the MCP server `bad` broke off the connection: its process ended with exit status: 4; last on its \
                    stderr:\n  fatal: the roof is on fire";
    assert_eq!(failed(outcome), (FailureKind::Disconnected, expected.into()));
    assert_eq!(executed(&servers, "bad").await, 0, "a new process, which did not receive the call");
    assert_eq!(wire.calls(), ["echo", "count"], "over both processes");
    let second = status(&servers, "bad");
    assert!(second.state == ServerState::Ready && second.pid != first, "{second:?}");
    servers.close().await;
}

#[tokio::test]
async fn an_answer_that_comes_after_the_cancellation_is_taken_for_no_other_call() {
    let (settings, wire) = watched(&["late-reply"]);
    let servers = servers([("bad", impatient(settings))]);
    let outcome = call(&servers, "bad", "echo", json!({"text": "too late"})).await;
    assert_eq!(failed(outcome), (FailureKind::Timeout, SILENT.into()));
    let late = || wire.noted("sent").iter().filter(|sent| sent["result"]["content"][0]["text"] == "too late").count();
    eventually("the answer comes after all", async || late() == 1).await;
    assert_eq!(executed(&servers, "bad").await, 1);
    servers.close().await;
}

#[tokio::test]
async fn an_answer_that_names_no_request_fails_the_only_call_and_one_to_another_request_does_not() {
    let (settings, wire) = watched(&["wrong-ids"]);
    let servers = servers([("bad", settings)]);
    let outcome = call(&servers, "bad", "echo", json!({"text": "hello"})).await;
    let expected = "the MCP server `bad` answered with something that cannot be read: it has no id that can be one: \
                    `{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"hello\"}]}}`";
    assert_eq!(failed(outcome), (FailureKind::Unreadable, expected.into()));
    assert_eq!(executed(&servers, "bad").await, 1);
    assert_eq!(wire.calls(), ["echo", "count"]);
    servers.close().await;
}

#[tokio::test]
async fn a_failing_tool_and_one_that_always_says_so_are_answers() {
    let servers = servers([("good", fault(&[])), ("bad", fault(&["is-error"]))]);
    for (id, tool, said) in [("good", "fail", "the till is closed"), ("bad", "echo", "the tool says that it failed")] {
        let answer = returned(call(&servers, id, tool, json!({"text": "hello"})).await);
        assert_eq!((answer.is_error, answer.content[0].as_text()), (true, Some(said)));
    }
    let (kind, message) = failed(call(&servers, "good", "nonsense", json!({})).await);
    assert_eq!(kind, FailureKind::Refused);
    assert!(message.contains("there is no tool `nonsense` (JSON-RPC error -32602)"), "{message}");
    servers.close().await;
}

#[tokio::test]
async fn a_result_that_is_null_is_no_result() {
    let servers = servers([("bad", fault(&["result-null"]))]);
    let (kind, message) = failed(call(&servers, "bad", "echo", json!({"text": "hello"})).await);
    assert_eq!(
        (kind, message.as_str()),
        (
            FailureKind::Unreadable,
            "the MCP server `bad` answered with something that is no MCP result: expected an object, got null"
        )
    );
    assert_eq!(executed(&servers, "bad").await, 1);
    servers.close().await;
}

#[tokio::test]
async fn broken_content_is_found_part_by_part_and_the_rest_is_kept() {
    let servers = servers([("bad", fault(&["broken-content"]))]);
    let output = returned(call(&servers, "bad", "echo", json!({"text": "hello"})).await);
    let found: Vec<(&str, &str)> =
        output.problems.iter().map(|problem| (problem.path.as_str(), problem.message.as_str())).collect();
    assert_eq!(
        found,
        [
            ("/content/1/text", "`text` is missing"),
            ("/content/2/mimeType", "`mimeType` is missing"),
            ("/content/3", "this is not an object"),
            ("/content/4/data", "`data` is not base64"),
        ]
    );
    assert!(output.problems.iter().all(|problem| problem.rule == "unreadable_content"), "{:?}", output.problems);
    assert!(!output.is_error, "the tool did not say so");
    let texts: Vec<&str> = output.content.iter().filter_map(Part::as_text).collect();
    assert_eq!(texts[..2], ["hello", r#"[content that violates MCP, as JSON] {"type":"text"}"#]);
    assert_eq!(texts.len(), 5, "{texts:?}");
    assert_eq!(executed(&servers, "bad").await, 1);
    servers.close().await;
}

#[tokio::test]
async fn an_error_without_a_message_ends_the_call_at_once() {
    let servers = servers([("bad", fault(&["error-without-message"]))]);
    let outcome = call(&servers, "bad", "echo", json!({"text": "hello"})).await;
    let expected =
        "the MCP server `bad` refused the request: no message, only {\"code\":-32000} (JSON-RPC error -32000)";
    assert_eq!(failed(outcome), (FailureKind::Refused, expected.into()));
    assert_eq!(executed(&servers, "bad").await, 1);
    servers.close().await;
}

#[tokio::test]
async fn twenty_megabytes_arrive_whole_be_they_sent_once_or_twice_in_a_line() {
    let servers = servers([
        ("once", unhurried(fault(&["huge-result=20"]))),
        ("twice", unhurried(fault(&["huge-line-structured=20"]))),
    ]);
    for id in ["once", "twice"] {
        let answer = returned(call(&servers, id, "echo", json!({"text": "more"})).await);
        let length: usize = answer.content.iter().filter_map(|part| part.as_text()).map(str::len).sum();
        assert!(length >= 20 << 20, "{length}");
        assert_eq!(executed(&servers, id).await, 1);
    }
    servers.close().await;
}

#[tokio::test]
async fn a_message_beyond_the_bound_ends_its_call_at_once_and_says_how_large_it_may_be() {
    let (settings, wire) = watched(&["huge-result=65"]);
    let servers = servers([("bad", unhurried(settings))]);
    let outcome = call(&servers, "bad", "echo", json!({"text": "more"})).await;
    let expected = "the MCP server `bad` broke off the connection: it sent a message longer than 64 MiB; let the tool \
                    return less, or in pieces";
    assert_eq!(failed(outcome), (FailureKind::Disconnected, expected.into()));
    executed(&servers, "bad").await;
    assert_eq!(wire.calls(), ["echo", "count"], "made once");
    servers.close().await;
}

#[tokio::test]
async fn progress_under_a_token_as_text_keeps_a_call_alive() {
    for era in ["2025-11-25", "2026-07-28"] {
        let (settings, _wire) = of_era(era, &["progress-every=50", "progress-token-as-text"]);
        let servers = servers([("slow", impatient(settings))]);
        list(&servers, &["slow"]).await;
        assert_eq!(text(call(&servers, "slow", "slow", json!({"ms": 1500})).await), "that took 1500 ms", "{era}");
        servers.close().await;
    }
}
