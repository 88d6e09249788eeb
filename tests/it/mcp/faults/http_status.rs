//! HTTP responses whose status or id does not fit the call. A response belongs to one request, so its status decides.

use toolgate::core::tool::FailureKind;

use super::*;

/// Short timeouts: a test can distinguish a timeout from an answer, and takes less than a minute.
fn bounded(endpoint: &Endpoint) -> ServerSettings {
    ServerSettings { call_timeout: Duration::from_secs(8), ..endpoint.settings() }
}

#[tokio::test]
async fn a_session_lost_in_a_restart_is_renewed_whatever_status_and_id_say_so() {
    for status in [&[][..], &["sessions-end-with-400"]] {
        for id in [&[][..], &["error-id-null"], &["error-id-missing"], &["error-id-text"]] {
            let faults = [status, id, &["lost-session=1"]].concat();
            let endpoint = Endpoint::with(&faults).await;
            let servers = servers([("bad", bounded(&endpoint))]);
            for word in ["one", "two", "three"] {
                assert_eq!(echo(&servers, "bad", word).await, word, "{faults:?}");
            }
            assert_eq!(executed(&servers, "bad").await, 3, "{faults:?}");
            assert_eq!(endpoint.wire.received("initialize").len(), 2, "{faults:?}");
            servers.close().await;
        }
    }
}

#[tokio::test]
async fn an_error_with_an_http_status_fails_its_call_whatever_its_id() {
    for era in ["2025-11-25", "2026-07-28"] {
        for id in [&[][..], &["error-id-null"], &["error-id-missing"], &["error-id-text"]] {
            let faults = [id, &["http-error"]].concat();
            let endpoint = Endpoint::of_era(era, &faults).await;
            let servers = servers([("bad", bounded(&endpoint))]);
            let outcome = call(&servers, "bad", "echo", json!({"text": "anna"})).await;
            let expected =
                "the MCP server `bad` refused the request: `text` must not be a palindrome (JSON-RPC error -32602)";
            assert_eq!(failed(outcome), (FailureKind::Refused, expected.into()), "{era} {id:?}");
            assert_eq!(executed(&servers, "bad").await, 1, "{era} {id:?}: not made again");
            servers.close().await;
        }
    }
}

#[tokio::test]
async fn a_call_that_is_answered_with_nothing_fails_at_once() {
    for (fault, expected) in [("http-202", "HTTP 202 Accepted"), ("http-204", "HTTP 204 No Content")] {
        for era in ["2025-11-25", "2026-07-28"] {
            let endpoint = Endpoint::of_era(era, &[fault]).await;
            let servers = servers([("bad", bounded(&endpoint))]);
            let (kind, message) = failed(call(&servers, "bad", "echo", json!({"text": "hello"})).await);
            assert_eq!(kind, FailureKind::Unreadable, "{fault} {era}: {message}");
            assert!(message.contains(expected) && message.contains("without an answer"), "{fault} {era}: {message}");
            assert_eq!(executed(&servers, "bad").await, 1, "{fault} {era}");
            servers.close().await;
        }
    }
}

#[tokio::test]
async fn a_handshake_or_a_list_that_is_answered_with_nothing_is_a_reason_at_once() {
    for fault in ["http-202=start", "http-204=start", "http-202=list", "http-204=list"] {
        let endpoint = Endpoint::with(&[fault]).await;
        let servers = servers([("bad", within(Duration::from_secs(8), endpoint.settings()))]);
        let reason = missing(&servers, "bad").await;
        assert!(reason.contains("HTTP 20") && !reason.contains("did not"), "{fault}: {reason}");
        servers.close().await;
    }
}

#[tokio::test]
async fn an_answer_under_another_id_fails_its_call_at_once() {
    for faults in [&["wrong-ids"][..], &["wrong-ids", "answers-as-events"]] {
        for era in ["2025-11-25", "2026-07-28"] {
            let endpoint = Endpoint::of_era(era, faults).await;
            let servers = servers([("bad", bounded(&endpoint))]);
            let (kind, message) = failed(call(&servers, "bad", "echo", json!({"text": "hello"})).await);
            assert_eq!(kind, FailureKind::Unreadable, "{faults:?} {era}: {message}");
            assert!(message.contains("987654321"), "{faults:?} {era}: {message}");
            assert_eq!(executed(&servers, "bad").await, 1, "{faults:?} {era}");
            servers.close().await;
        }
    }
}

#[tokio::test]
async fn event_streams_may_hold_all_that_their_standard_allows() {
    for era in ["2025-11-25", "2026-07-28"] {
        let endpoint = Endpoint::of_era(era, &["odd-events", "odd-content-types"]).await;
        let servers = servers([("good", bounded(&endpoint))]);
        assert_lists_its_tools(&servers, "good").await;
        assert_eq!(echo(&servers, "good", "hello").await, "hello", "{era}");
        servers.close().await;
    }
}

#[tokio::test]
async fn content_types_are_read_without_their_case_and_with_their_parameters() {
    let endpoint = Endpoint::with(&["odd-content-types"]).await;
    let servers = servers([("good", bounded(&endpoint))]);
    assert_lists_its_tools(&servers, "good").await;
    assert_eq!(echo(&servers, "good", "hello").await, "hello");
    servers.close().await;
}
