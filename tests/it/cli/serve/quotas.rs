//! Daily quotas of the configuration, in a server that is reloaded.

use rustix::process::Signal;
use serde_json::json;

use super::server::{Server, desk};
use super::with_agents;

fn with_quotas(quotas: &str) -> String {
    with_agents("desk: {}").replace("gateway: {", &format!("gateway: {{ quotas: {quotas},"))
}

#[tokio::test(flavor = "multi_thread")]
async fn quotas_of_a_reloaded_configuration_hold_at_once() {
    let desk = desk(&with_quotas("{ keys: { local: { runs: 0 } } }"), "turns: [{ say: Done. }]");
    let mut server = Server::at(&desk).await;
    let (status, refused) = server.post("/v1/runs", "wait=30", json!({"input": "Hello"})).await;
    assert_eq!((status, &refused["reason"]), (429, &json!("quota_exceeded")), "{refused}");
    assert_eq!(server.get("/v1/me").await.1["quotas"]["key"]["runs"]["remaining"], 0);

    desk.write("toolgate.yaml", &with_quotas("{ tenants: { '*': { tokens: 1, cost_usd: '0.5' } } }"));
    server.send(Signal::HUP);
    server.line("configuration reloaded").await;

    let (status, run) = server.post("/v1/runs", "wait=30", json!({"input": "Hello"})).await;
    assert_eq!((status, &run["status"]), (201, &json!("completed")), "{run}");
    let quotas = server.get("/v1/me").await.1["quotas"].clone();
    assert_eq!((&quotas["key"], &quotas["tenant"]["cost_usd"]["limit"]), (&json!(null), &json!("0.5")));
}
