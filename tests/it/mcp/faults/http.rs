//! Faults of HTTP servers.

use toolgate::core::tool::FailureKind;

use super::*;

#[tokio::test]
async fn a_fault_server_without_faults_works_over_http() {
    let endpoint = Endpoint::with(&[]).await;
    let servers = servers([("good", endpoint.settings())]);
    assert_lists_its_tools(&servers, "good").await;
    assert_eq!(echo(&servers, "good", "hello").await, "hello");
    assert_eq!(executed(&servers, "good").await, 1);
    servers.close().await;
    assert_eq!(endpoint.wire.noted("ended").len(), 1, "closing ends the session");
}

#[tokio::test]
async fn a_session_lost_between_calls_is_reopened_and_no_call_runs_twice() {
    let endpoint = Endpoint::with(&["lost-session=2"]).await;
    let servers = servers([("bad", endpoint.settings())]);
    for word in ["one", "two", "three", "four"] {
        assert_eq!(echo(&servers, "bad", word).await, word);
    }
    assert_eq!(executed(&servers, "bad").await, 4);
    assert_eq!(endpoint.wire.received("initialize").len(), 2);
    servers.close().await;
}

#[tokio::test]
async fn a_connection_that_breaks_in_a_call_is_disconnected_and_the_call_is_not_made_again() {
    let endpoint = Endpoint::with(&["connection-reset"]).await;
    let servers = servers([("bad", endpoint.settings())]);
    let (kind, message) = failed(call(&servers, "bad", "echo", json!({"text": "hello"})).await);
    assert_eq!(kind, FailureKind::Disconnected, "{message}");
    assert_eq!(executed(&servers, "bad").await, 1);
    assert_eq!(endpoint.wire.calls(), ["echo", "count"], "made once");
    servers.close().await;
}

const PAGE: &str = "a web page (text/html; charset=utf-8); is the server's `url` right?";
const PLAIN: &str = "`text/plain`, which is neither JSON nor an event stream; is the server's `url` right? If it is, its \
                     author has to correct the content type";
const BROKEN: &str = "HTTP 500 Internal Server Error; its own log says why";
const BUSY: &str = "HTTP 503 Service Unavailable, and wants to be left alone for 7 s; what stands in front of it cannot reach \
                    it, or it is overloaded";

#[tokio::test]
async fn an_http_answer_that_is_not_mcp_ends_the_call_and_is_described() {
    for (fault, expected) in
        [("http-500", BROKEN), ("http-503-retry-after", BUSY), ("http-html", PAGE), ("not-json-content-type", PLAIN)]
    {
        let endpoint = Endpoint::with(&[fault]).await;
        let servers = servers([("bad", endpoint.settings())]);
        let outcome = call(&servers, "bad", "echo", json!({"text": "hello"})).await;
        let told = format!("the MCP server `bad` answered with {expected}");
        assert_eq!(failed(outcome), (FailureKind::Unreadable, told), "{fault}");
        assert_eq!(executed(&servers, "bad").await, 1, "{fault}");
        assert_eq!(endpoint.wire.calls(), ["echo", "count"], "{fault}: made once");
        servers.close().await;
    }
}

#[tokio::test]
async fn an_error_without_a_message_is_a_refusal_over_http_too() {
    let endpoint = Endpoint::with(&["error-without-message"]).await;
    let servers = servers([("bad", endpoint.settings())]);
    let outcome = call(&servers, "bad", "echo", json!({"text": "hello"})).await;
    let expected =
        "the MCP server `bad` refused the request: no message, only {\"code\":-32000} (JSON-RPC error -32000)";
    assert_eq!(failed(outcome), (FailureKind::Refused, expected.into()));
    assert_eq!(executed(&servers, "bad").await, 1);
    servers.close().await;
}

#[tokio::test]
async fn an_http_answer_that_is_no_mcp_is_why_a_server_is_missing() {
    for (fault, what, expected) in [
        ("http-500=start", "the handshake", BROKEN),
        ("http-503-retry-after=start", "the handshake", BUSY),
        ("http-html=start", "the handshake", PAGE),
        ("not-json-content-type=start", "the handshake", PLAIN),
        ("http-500=list", "`tools/list`", BROKEN),
        ("http-html=list", "`tools/list`", PAGE),
        ("not-json-content-type=list", "`tools/list`", PLAIN),
    ] {
        let endpoint = Endpoint::with(&[fault]).await;
        let servers = servers([("bad", within(Duration::from_secs(60), endpoint.settings()))]);
        let told = format!("the MCP server `bad` answered {what} with {expected}");
        assert_eq!(missing(&servers, "bad").await, told, "{fault}");
        servers.close().await;
    }
}

#[tokio::test]
async fn the_error_of_a_hanging_endpoint_names_the_timeout_setting() {
    let endpoint = Endpoint::with(&["hang-at-start"]).await;
    let servers = servers([("bad", within(Duration::from_millis(500), endpoint.settings()))]);
    let expected = "the MCP server `bad` did not answer the handshake within 0.5 s; is its `url` right? Raise its \
                    `start_timeout_s` if it needs longer";
    assert_eq!(missing(&servers, "bad").await, expected);
    servers.close().await;
}
