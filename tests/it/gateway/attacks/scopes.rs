//! Every endpoint that the description names is refused to whoever lacks its scope, and to nobody else.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};
use toolgate::gateway::{Scope, description};

use crate::gateway::people::{self, Person};
use crate::gateway::served::Answer;
use crate::runner::world::{Kept, given_an_agent, say};

/// The scope of each operation.
const SCOPES: &[(&str, &[&str])] = &[
    ("tools:read", &["listAgents", "readAgent", "listModels", "listServers", "readServer", "listTools"]),
    ("tools:call", &["callTool"]),
    ("approvals:read", &["listApprovals", "readApproval", "listApprovalGrants"]),
    ("approvals:decide", &["decideApproval", "extendApproval", "createApprovalGrant", "revokeApprovalGrant"]),
    ("runs:read", &["listRuns", "readRun", "readBlob", "watchRun", "exportRun", "listMessages"]),
    ("runs:write", &["createRun", "deleteRun", "cancelRun", "forkRun", "addMessage", "resumeRun"]),
    ("admin", &["listKeys", "createKey", "readKey", "revokeKey", "refreshServer", "restartServer"]),
    (
        "webhooks",
        &[
            "listWebhookEndpoints",
            "createWebhookEndpoint",
            "readWebhookEndpoint",
            "removeWebhookEndpoint",
            "changeWebhookEndpoint",
            "listWebhookDeliveries",
            "redeliverWebhook",
            "rotateWebhookSecret",
            "testWebhookEndpoint",
        ],
    ),
];

/// A body that can be read, for operations that do not take an empty one.
fn body_of(operation: &str) -> Value {
    match operation {
        "createRun" => json!({"input": "Hello"}),
        "resumeRun" => json!({"answers": [{"call_id": "call_1", "text": "Yes"}]}),
        "addMessage" => json!({"text": "Hello"}),
        "createKey" => json!({"name": "mine", "scopes": ["runs:read"]}),
        "decideApproval" => json!({"decision": "approve"}),
        "createApprovalGrant" => json!({"tool": "mcp_files_delete"}),
        "createWebhookEndpoint" => json!({"url": "https://example.com/"}),
        _ => json!({}),
    }
}

/// Every operation of the description: its id, method and path, with `x` for what is variable.
fn operations() -> Vec<(String, Method, String)> {
    let description = serde_json::to_value(description()).unwrap();
    let mut found = Vec::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        let path = path.split('/').map(|step| if step.starts_with('{') { "x" } else { step }).collect::<Vec<_>>();
        for (method, operation) in item.as_object().unwrap() {
            let Some(id) = operation["operationId"].as_str() else { continue };
            found.push((id.to_owned(), method.to_uppercase().parse().unwrap(), path.join("/")));
        }
    }
    found
}

#[tokio::test]
async fn an_endpoint_is_open_to_its_scope_and_to_no_other() {
    let world = given_an_agent().whose_model_says(json!([say("Hi.")])).kept(Kept::InMemory).await;
    let served = people::served(world).await;
    let operations = operations();
    let known: BTreeSet<&str> = SCOPES.iter().flat_map(|(_, operations)| operations.iter().copied()).collect();
    let described: BTreeSet<&str> = operations.iter().map(|(id, ..)| id.as_str()).collect();
    assert_eq!(described, known, "an operation has no scope, or a scope has no operation");

    for (id, method, path) in &operations {
        let (own, _) = SCOPES.iter().find(|(_, operations)| operations.contains(&id.as_str())).unwrap();
        let ask = async |scopes: &str| {
            let request = served.request(method.clone(), path).header("x-badge", format!("eve acme {scopes}"));
            let request = if *method == Method::GET { request } else { request.json(&body_of(id)) };
            Answer::of(request.send().await.unwrap()).await
        };
        let others = Scope::ALL.into_iter().map(Scope::as_str).filter(|scope| scope != own).collect::<Vec<_>>();
        let refused = ask(&others.join(",")).await;
        assert_eq!((refused.status.as_u16(), refused.problem()), (403, "forbidden"), "{id}");
        assert!(refused.text("detail").contains(&format!("`{own}`")), "{id}: {refused:?}");
        let lacks = |answer: &Answer| answer.body.to_string().contains("lack the scope");
        let answer = ask(own).await;
        assert!(!lacks(&answer) || id == "createKey", "{id}: {answer:?}");
    }
}

#[tokio::test]
async fn what_changes_nothing_reads_and_wants_the_scope_for_it() {
    let turns = json!([{"calls": [{"name": "ext_lookup"}]}, say("A secret.")]);
    let served = people::served(given_an_agent().whose_model_says(turns).kept(Kept::InMemory).await).await;
    let writes = Person { served: &served, badge: "ann acme runs:write" };
    let run = writes.post("/v1/runs", json!({"input": "Hello", "external_tools": [{"name": "lookup"}]})).await;
    let path = format!("/v1/runs/{}", run.text("id"));
    let result = json!({"results": [{"call_id": run.body["pending"][0]["call_id"], "output": 1}]});

    for (what, body) in
        [("resume", json!({})), ("resume?include=content", result.clone()), ("fork?include=content", json!({}))]
    {
        let refused = writes.post(&format!("{path}/{what}"), body).await;
        assert_eq!((refused.status.as_u16(), refused.problem()), (403, "forbidden"), "{what}");
        assert!(refused.text("detail").contains("`runs:read`"), "{what}: {refused:?}");
    }
    assert_eq!(writes.post(&format!("{path}/resume"), result).await.text("status"), "completed");
    let over = writes.post(&format!("{path}/cancel"), json!({})).await;
    assert!(over.problem() == "forbidden" && !over.body.to_string().contains("secret"), "{over:?}");
}
