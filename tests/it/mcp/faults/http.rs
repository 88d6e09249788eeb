//! Faults of a server that is dialled.

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
async fn a_session_that_is_lost_between_calls_is_opened_anew_and_no_call_is_executed_twice() {
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
    let servers = servers([("bad", impatient(endpoint.settings()))]);
    let (kind, message) = failed(call(&servers, "bad", "echo", json!({"text": "hello"})).await);
    assert_eq!(kind, FailureKind::Disconnected, "{message}");
    assert_eq!(executed(&servers, "bad").await, 1);
    assert_eq!(endpoint.wire.calls(), ["echo", "count"], "made once");
    servers.close().await;
}

#[tokio::test]
async fn an_http_answer_that_is_no_mcp_ends_the_call_with_what_it_was() {
    for (fault, kind, expected) in [
        ("http-500", FailureKind::Disconnected, "500"),
        ("http-503-retry-after", FailureKind::Disconnected, "it answered HTTP 503, retry after 7"),
        ("http-html", FailureKind::Disconnected, "text/html"),
        ("not-json-content-type", FailureKind::Disconnected, "text/plain"),
        ("error-without-message", FailureKind::Disconnected, r#""error":{"code":-32000}"#),
    ] {
        let endpoint = Endpoint::with(&[fault]).await;
        let servers = servers([("bad", impatient(endpoint.settings()))]);
        let (failed, message) = failed(call(&servers, "bad", "echo", json!({"text": "hello"})).await);
        assert_eq!(failed, kind, "{fault}: {message}");
        assert!(message.contains(expected), "{fault}: {message}");
        assert_eq!(executed(&servers, "bad").await, 1, "{fault}");
        assert_eq!(endpoint.wire.calls(), ["echo", "count"], "{fault}: made once");
        servers.close().await;
    }
}

#[tokio::test]
async fn an_http_answer_that_is_no_mcp_is_why_a_server_is_missing() {
    for (fault, expected) in [
        ("http-500=start", "500"),
        ("http-503-retry-after=start", "it answered HTTP 503, retry after 7"),
        ("http-html=start", "text/html"),
        ("not-json-content-type=start", "text/plain"),
        ("http-500=list", "500"),
        ("http-html=list", "text/html"),
    ] {
        let endpoint = Endpoint::with(&[fault]).await;
        let servers = servers([("bad", within(Duration::from_secs(10), endpoint.settings()))]);
        let reason = missing(&servers, "bad").await;
        assert!(reason.contains(expected), "{fault}: {reason}");
        servers.close().await;
    }
}
