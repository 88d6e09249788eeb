//! Trace context over HTTP: the caller's trace and baggage reach the servers, and the response names the span of the run.

use reqwest::Method;
use serde_json::json;

use super::served::{HttpAnswer, Served};
use crate::runner::world::{Kept, given_an_agent, say};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[tokio::test]
async fn a_client_continues_its_trace_and_learns_the_span_of_its_run() {
    let agent = given_an_agent().with_tools("files", &["read"]).whose_model_says(json!([say("One."), say("Two.")]));
    let served = Served::to_all(agent.kept(Kept::InMemory).await).await;
    let start = async |headers: &[(&str, &str)]| {
        let mut request = served.request(Method::POST, "/v1/runs").json(&json!({"input": "Hello"}));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        HttpAnswer::of(request.send().await.unwrap()).await
    };

    let traced = start(&[("traceparent", PARENT), ("tracestate", "a=b"), ("baggage", "user=1, =bad, tier=gold")]).await;

    let context = |at: usize| served.world.servers.release_contexts().remove(at);
    let (trace, span) = (traced.text("trace_id"), traced.text("span_id"));
    assert_eq!((trace, traced.status.as_u16()), ("4bf92f3577b34da6a3ce929d0e0e4736", 201));
    assert_eq!(traced.header("traceresponse"), format!("00-{trace}-{span}-01"));
    assert_eq!((context(0).state.as_deref(), context(0).baggage.as_deref()), (Some("a=b"), Some("user=1,tier=gold")));

    let alone = start(&[("traceparent", "00-bad"), ("baggage", "user=2")]).await;

    assert_ne!(alone.text("trace_id"), trace);
    assert!(alone.header("traceresponse").starts_with(&format!("00-{}-", alone.text("trace_id"))), "{alone:?}");
    assert_eq!(context(1).baggage.as_deref(), Some("user=2"));
    let call = served.post("/v1/tools/mcp_files_read/call", json!({"arguments": {"path": "a"}})).await;
    assert!(call.header("traceresponse").starts_with("00-"), "{call:?}");
}
