//! Answers over the size limit.

use serde_json::json;
use toolgate::core::tool::FailureKind;

use super::elicitation::{ended, scripted, send};
use super::support::*;

#[tokio::test]
async fn an_oversized_http_response_is_reported_with_a_remedy() {
    let text = "x".repeat(17 * 1024 * 1024);
    let huge = json!({"result": {"resultType": "complete", "content": [{"type": "text", "text": text}]}});
    let (settings, _) = scripted(vec![huge]).await;
    let servers = servers([("huge", settings)]);
    let (kind, message) = failed(ended(send(&servers, "huge", "dump", None).await));
    assert_eq!(kind, FailureKind::Unreadable, "{message}");
    assert!(message.starts_with("the MCP server `huge` answered with more than 16 MiB of JSON"), "{message}");
    servers.close().await;
}

#[tokio::test]
async fn an_oversized_question_of_a_modern_server_fails_its_call() {
    let form = |schema| json!({"method": "elicitation/create", "params": {"message": "m", "requestedSchema": schema}});
    let deep = (0..120).fold(json!({}), |inner, _| json!({"not": inner}));
    let required = |more: serde_json::Value| {
        let mut result = json!({"resultType": "input_required"});
        result.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        json!({"result": result})
    };
    for (answer, complaint) in [
        (required(json!({"inputRequests": {"k": form(deep)}})), "nested more than 32 levels deep"),
        (required(json!({"inputRequests": {"k": form(json!({"title": "x".repeat(300_000)}))}})), "longer than 256 KiB"),
        (
            required(json!({"requestState": "x".repeat(2_000_000)})),
            "a `requestState` kept that is longer than 1024 KiB",
        ),
    ] {
        let (settings, _) = scripted(vec![answer]).await;
        let servers = servers([("asks", settings)]);
        let (kind, message) = failed(ended(send(&servers, "asks", "act", None).await));
        assert_eq!(kind, FailureKind::Refused, "{message}");
        assert!(message.contains(complaint), "{message}");
        servers.close().await;
    }
}
