//! Answers that violate JSON-RPC, over every transport and in both eras. An unambiguous answer is read; an ambiguous
//! one fails its request at once, and in a list it costs one tool.

use toolgate::core::tool::{FailureKind, Outcome};

use super::*;

/// The transport of a server.
#[derive(Clone, Copy, Debug)]
enum Way {
    Stdio,
    HttpJson,
    HttpEvents,
}

const WAYS: [Way; 3] = [Way::Stdio, Way::HttpJson, Way::HttpEvents];
const ERAS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// A server with these faults, and the value that keeps it alive.
async fn reached(way: Way, era: &str, faults: &[&str]) -> (Servers, Kept) {
    let over_http = async |faults: &[&str]| {
        let endpoint = Endpoint::of_era(era, faults).await;
        (endpoint.settings(), Kept::Endpoint { _endpoint: Box::new(endpoint) })
    };
    let (settings, kept) = match way {
        Way::Stdio => {
            let (settings, wire) = of_era(era, faults);
            (settings, Kept::Wire { _wire: wire })
        }
        Way::HttpJson => over_http(faults).await,
        Way::HttpEvents => over_http(&[faults, &["answers-as-events"]].concat()).await,
    };
    (servers([("bad", bounded(settings))]), kept)
}

/// A value that has to live as long as the server.
enum Kept {
    Endpoint { _endpoint: Box<Endpoint> },
    Wire { _wire: Wire },
}

/// Short timeouts: a test can distinguish a timeout from an answer, and takes less than a minute.
fn bounded(settings: ServerSettings) -> ServerSettings {
    let limit = Duration::from_secs(8);
    ServerSettings { call_timeout: limit, start_timeout: limit, ..settings }
}

/// The outcome of a call whose answer has this fault.
async fn called(way: Way, era: &str, fault: &str) -> Outcome {
    let (servers, _endpoint) = reached(way, era, &[fault]).await;
    assert_lists_its_tools(&servers, "bad").await;
    let outcome = call(&servers, "bad", "echo", json!({"text": "hello"})).await;
    assert_eq!(executed(&servers, "bad").await, 1, "{fault} {way:?} {era}: made once, and the server is still there");
    servers.close().await;
    outcome
}

#[tokio::test]
async fn an_unambiguous_answer_is_read() {
    for (fault, expected) in [
        ("lone-surrogate", "cut \u{fffd}"),
        ("latin-1", "caf\u{fffd}"),
        ("byte-order-mark", "hello"),
        ("indented", "hello"),
        ("batch", "hello"),
        ("second-message", "hello"),
        ("text-id", "hello"),
        ("no-jsonrpc", "hello"),
        ("duplicate-keys", "hello"),
    ] {
        for way in WAYS {
            for era in ERAS {
                let outcome = called(way, era, fault).await;
                assert!(matches!(outcome, Outcome::Returned(_)), "{fault} {way:?} {era}: {outcome:?}");
                assert_eq!(text(outcome), expected, "{fault} {way:?} {era}");
            }
        }
    }
}

#[tokio::test]
async fn an_ambiguous_answer_fails_its_call_and_is_quoted() {
    for (fault, complaint) in [
        ("nan", "`/structuredContent/value` is `NaN`"),
        ("large-number", "`/structuredContent/value` is `1e400`"),
        ("deep-nesting", "nested more than 100 levels deep"),
        ("result-and-error", "(and yet it failed, -32000): `{"),
        ("truncated", "{\"jsonrpc\":\"2.0\""),
        ("id-only", "`{\"jsonrpc\":\"2.0\",\"id\":"),
        ("error-null", "neither a `result` nor an `error`: `{\"jsonrpc\""),
        ("no-id", "no id that can be one: `{\"jsonrpc\""),
    ] {
        for way in WAYS {
            for era in ERAS {
                let (kind, message) = failed(called(way, era, fault).await);
                assert_eq!(kind, FailureKind::Unreadable, "{fault} {way:?} {era}: {message}");
                assert!(message.contains(complaint), "{fault} {way:?} {era}: {message}");
            }
        }
    }
}

#[tokio::test]
async fn a_value_that_cannot_be_read_in_a_list_costs_its_tool() {
    for (fault, complaint) in [
        ("nan=list", "`/inputSchema/default` is `NaN`"),
        ("large-number=list", "`/inputSchema/default` is `1e400`"),
        ("deep-nesting=list", "nested more than 100 levels deep"),
    ] {
        for way in WAYS {
            let (servers, _endpoint) = reached(way, "2025-11-25", &[fault]).await;
            let listed = list(&servers, &["bad"]).await.remove(0);
            assert_eq!(sorted(&listed.tools), ["add", "count", "echo", "fail", "slow"], "{fault} {way:?}");
            let [left] = &listed.left_out[..] else { panic!("{fault} {way:?}: {:?}", listed.left_out) };
            assert_eq!(left.tool.as_deref(), Some("mutant"), "{fault} {way:?}");
            assert!(left.reason.contains(complaint), "{fault} {way:?}: {}", left.reason);
            servers.close().await;
        }
    }
}

#[tokio::test]
async fn a_list_that_cannot_be_read_is_a_reason_at_once() {
    for fault in ["result-and-error=list", "truncated=list", "id-only=list", "error-null=list", "no-id=list"] {
        for way in WAYS {
            let (servers, _endpoint) = reached(way, "2025-11-25", &[fault]).await;
            let reason = missing(&servers, "bad").await;
            assert!(reason.contains("answered `tools/list` with"), "{fault} {way:?}: {reason}");
            assert!(!reason.contains("did not"), "{fault} {way:?}: {reason}");
            servers.close().await;
        }
    }
}

#[tokio::test]
async fn an_unambiguous_handshake_is_read() {
    for fault in [
        "lone-surrogate=start",
        "latin-1=start",
        "nan=start",
        "indented=start",
        "batch=start",
        "second-message=start",
        "text-id=start",
    ] {
        for way in WAYS {
            for era in ERAS {
                let (servers, _endpoint) = reached(way, era, &[fault]).await;
                let listed = list(&servers, &["bad"]).await.remove(0);
                assert_eq!((sorted(&listed.tools), listed.left_out), (TOOLS.to_vec(), vec![]), "{fault} {way:?} {era}");
                servers.close().await;
            }
        }
    }
}

#[tokio::test]
async fn a_handshake_that_cannot_be_read_is_a_reason_before_the_start_budget_is_over() {
    for fault in ["result-and-error=start", "truncated=start", "id-only=start", "error-null=start", "no-id=start"] {
        for way in WAYS {
            for era in ERAS {
                let (servers, _endpoint) = reached(way, era, &[fault]).await;
                let reason = missing(&servers, "bad").await;
                assert!(!reason.contains("did not answer"), "{fault} {way:?} {era}: {reason}");
                servers.close().await;
            }
        }
    }
}

#[tokio::test]
async fn a_result_of_an_unknown_type_is_invalid() {
    for way in WAYS {
        for fault in ["unknown-result-type=start", "unknown-result-type=list"] {
            let (servers, _endpoint) = reached(way, "2026-07-28", &[fault]).await;
            let reason = missing(&servers, "bad").await;
            assert!(reason.contains("`resultType` is \"later\""), "{fault} {way:?}: {reason}");
            servers.close().await;
        }
        let (kind, message) = failed(called(way, "2026-07-28", "unknown-result-type").await);
        assert_eq!(kind, FailureKind::Unreadable, "{way:?}: {message}");
        assert!(message.contains("`later`"), "{way:?}: {message}");
    }
}

#[tokio::test]
async fn the_right_answer_counts_after_answers_without_a_request() {
    for era in ERAS {
        let outcome = called(Way::Stdio, era, "stray-answers").await;
        assert_eq!(text(outcome), "hello", "{era}");
    }
}

#[tokio::test]
async fn an_unreadable_answer_fails_the_call_of_its_id_and_no_other() {
    let (servers, _endpoint) = reached(Way::Stdio, "2025-11-25", &["nan", "slow-call=0.3"]).await;
    let (one, two) = tokio::join!(
        call(&servers, "bad", "echo", json!({"text": "one"})),
        call(&servers, "bad", "echo", json!({"text": "two"})),
    );
    for outcome in [one, two] {
        assert_eq!(failed(outcome).0, FailureKind::Unreadable);
    }
    servers.close().await;
}

#[tokio::test]
async fn an_answer_in_another_encoding_or_place_is_told_as_what_it_is_before_the_timeout() {
    for (fault, complaint) in [
        ("utf-16", "it is in UTF-16, and messages have to be in UTF-8"),
        ("behind-log-prefix", "it stands behind other text on its line"),
        ("no-line-feed", "the line feed after it is missing"),
    ] {
        for era in ERAS {
            let (kind, message) = failed(called(Way::Stdio, era, fault).await);
            assert_eq!(kind, FailureKind::Unreadable, "{fault} {era}: {message}");
            assert!(message.contains(complaint), "{fault} {era}: {message}");
        }
        for moment in ["start", "list"] {
            let fault = format!("{fault}={moment}");
            let (servers, _endpoint) = reached(Way::Stdio, "2025-11-25", &[&fault]).await;
            let reason = missing(&servers, "bad").await;
            assert!(reason.contains(complaint) && !reason.contains("did not"), "{fault}: {reason}");
            servers.close().await;
        }
    }
    for (fault, complaint) in [("utf-16", "UTF-16"), ("behind-log-prefix", "`[INFO] answered with {")] {
        for way in [Way::HttpJson, Way::HttpEvents] {
            let (_, message) = failed(called(way, "2025-11-25", fault).await);
            assert!(message.contains(complaint), "{fault} {way:?}: {message}");
        }
    }
}
