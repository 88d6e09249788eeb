//! Fair admission of tenants, observed over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::Client;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use toolgate::gateway::Gateway;
use toolgate::runner::{AgentRunner, Capacity};
use toolgate::stores::MemoryStore;

use super::principals::Badges;
use super::queueing::agent;
use super::served::HttpAnswer;

#[tokio::test]
async fn a_tenant_with_many_runs_delays_another_by_one() {
    let capacity = Capacity { driven: 1, ..Capacity::default() };
    let builder = AgentRunner::builder().store(Arc::new(MemoryStore::new())).capacity(capacity);
    let runner = builder.agent(agent(&json!([{"latency_ms": 300, "say": "Done."}]))).build().unwrap();
    let gateway = Gateway::builder(runner.clone()).authenticator(Arc::new(Badges)).build();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/runs", listener.local_addr().unwrap());
    let mut serving = JoinSet::new();
    let router = gateway.router().into_make_service_with_connect_info::<SocketAddr>();
    serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
    let client = Client::new();
    let start = async |tenant: &str, prefer: &str| {
        let request = client.post(&url).header("x-badge", format!("ann {tenant} all")).header("prefer", prefer);
        HttpAnswer::of(request.json(&json!({"input": "Hello"})).send().await.unwrap()).await
    };
    for _ in 0..12 {
        assert_eq!(start("greedy", "respond-async").await.status, 202);
    }

    let modest = start("modest", "wait=20").await;

    assert_eq!(modest.text("status"), "completed");
    let behind = runner.activity();
    assert!(behind.driven + behind.waiting >= 8, "it ran before runs that were queued earlier: {behind:?}");
}
