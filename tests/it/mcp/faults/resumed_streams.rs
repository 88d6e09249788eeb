//! Event streams that end before the answer, and answers that arrive on the stream of another request.

use futures::future::join_all;
use toolgate::core::tool::FailureKind;

use super::*;

#[tokio::test]
async fn a_stream_that_ends_again_and_again_is_resumed_with_growing_pauses() {
    let endpoint = Endpoint::with(&["stream-ends"]).await;
    let settings = ServerSettings { call_timeout: Duration::from_secs(1), ..endpoint.settings() };
    let servers = servers([("bad", settings)]);
    let (kind, message) = failed(call(&servers, "bad", "echo", json!({"text": "hello"})).await);
    assert_eq!(kind, FailureKind::Timeout, "{message}");
    let resumed = endpoint.wire.noted("resumed").len();
    assert!((2..=8).contains(&resumed), "{resumed} times within a second");
    assert_eq!(executed(&servers, "bad").await, 1);
    servers.close().await;
}

#[tokio::test]
async fn a_refusal_to_resume_a_stream_is_told_at_once_with_its_words() {
    for (fault, told) in [
        ("resume-refused", "was not resumed: it answered with HTTP 401 Unauthorized (the badge has expired)"),
        ("resume-refused=403", "was not resumed: it answered with HTTP 403 Forbidden (the badge has expired)"),
        ("resume-refused=404", "was not resumed: it does not know the session any more (HTTP 404)"),
        (
            "resumed-as-json",
            r#"was not resumed: it answered with JSON that is no JSON-RPC message: {"detail":"streams are"#,
        ),
    ] {
        let endpoint = Endpoint::with(&[fault]).await;
        let servers = servers([("bad", endpoint.settings())]);
        let (kind, message) = failed(call(&servers, "bad", "echo", json!({"text": "hello"})).await);
        assert_eq!(kind, FailureKind::Disconnected, "{fault}: {message}");
        assert!(message.contains(told), "{fault}: {message}");
        assert_eq!(endpoint.wire.noted("resumed").len(), 1, "{fault}");
        assert_eq!(executed(&servers, "bad").await, 1, "{fault}: not made again");
        servers.close().await;
    }
}

#[tokio::test]
async fn answers_of_parallel_calls_on_one_stream_reach_their_calls() {
    for era in ["2025-11-25", "2026-07-28"] {
        for times in [[300, 600], [600, 300], [400, 400]] {
            let endpoint = Endpoint::of_era(era, &["answers-on-one-stream"]).await;
            let servers = servers([("bad", endpoint.settings())]);
            list(&servers, &["bad"]).await;
            let calls = join_all(times.map(|time| call(&servers, "bad", "slow", json!({"ms": time})))).await;
            for (outcome, time) in calls.into_iter().zip(times) {
                assert_eq!(text(outcome), format!("that took {time} ms"), "{era} {times:?}");
            }
            assert_eq!(executed(&servers, "bad").await, 2, "{era} {times:?}");
            servers.close().await;
        }
    }
}
