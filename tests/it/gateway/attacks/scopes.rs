//! Scopes: every endpoint of the OpenAPI description refuses exactly the callers that lack its scope.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use toolgate::gateway::description;
use toolgate::service::Scope;

use crate::gateway::principals::{self, Person};
use crate::gateway::served::{HttpAnswer, Served};
use crate::runner::world::{Kept, given_an_agent, say};

/// The scope of each operation.
const SCOPES: &[(&str, &[&str])] = &[
    ("tools:read", &["listAgents", "readAgent", "listModels", "listServers", "readServer", "listTools"]),
    ("tools:call", &["callTool"]),
    ("approvals:read", &["listApprovals", "watchApprovals", "readApproval", "listApprovalGrants"]),
    ("approvals:decide", &["decideApproval", "extendApproval", "createApprovalGrant", "revokeApprovalGrant"]),
    (
        "runs:read",
        &[
            "listRuns",
            "readRun",
            "readBlob",
            "watchRun",
            "watchEvents",
            "exportRun",
            "listMessages",
            "listFeedback",
            "listSessions",
            "readSession",
            "listSessionMessages",
            "listFiles",
            "readFile",
            "downloadFile",
        ],
    ),
    (
        "runs:write",
        &[
            "createRun",
            "deleteRun",
            "cancelRun",
            "pauseRun",
            "forkRun",
            "retryRun",
            "addMessage",
            "addFeedback",
            "deleteFeedback",
            "resumeRun",
            "createSession",
            "changeSession",
            "deleteSession",
            "createSessionRun",
            "compactSession",
            "uploadFile",
            "deleteFile",
        ],
    ),
    ("admin", &["listKeys", "createKey", "readKey", "revokeKey", "rotateKey", "refreshServer", "restartServer"]),
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

/// A readable body, for operations that do not accept an empty one.
fn body_of(operation: &str) -> Value {
    match operation {
        "createRun" | "createSessionRun" => json!({"input": "Hello"}),
        "resumeRun" => json!({"answers": [{"type": "answer", "call_id": "call_1", "text": "Yes"}]}),
        "addMessage" => json!({"text": "Hello"}),
        "createKey" => json!({"name": "mine", "scopes": ["runs:read"]}),
        "decideApproval" => json!({"decision": "approve"}),
        "createApprovalGrant" => json!({"tool_name": "mcp_files_delete"}),
        "createWebhookEndpoint" => json!({"url": "https://example.com/"}),
        _ => json!({}),
    }
}

/// Every operation of the description: its id, method and path, with `x` for each parameter.
fn operations() -> Vec<(String, Method, String)> {
    let description = serde_json::to_value(description()).unwrap();
    let mut found = Vec::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        let path = path.split('/').map(|step| if step.starts_with('{') { "x" } else { step }).collect::<Vec<_>>();
        for (method, operation) in item.as_object().unwrap() {
            let Some(id) = operation["operationId"].as_str() else { continue };
            // Every caller may read itself. A ticket needs the scope of its stream, which its body names.
            if ["readMe", "createStreamTicket"].contains(&id) {
                continue;
            }
            found.push((id.to_owned(), method.to_uppercase().parse().unwrap(), path.join("/")));
        }
    }
    found
}

#[tokio::test]
async fn an_endpoint_accepts_its_scope_and_no_other() {
    let world = given_an_agent().whose_model_says(json!([say("Hi.")])).kept(Kept::InMemory).await;
    let served = principals::served(world).await;
    let operations = operations();
    let known: BTreeSet<&str> = SCOPES.iter().flat_map(|(_, operations)| operations.iter().copied()).collect();
    let described: BTreeSet<&str> = operations.iter().map(|(id, ..)| id.as_str()).collect();
    assert_eq!(described, known, "an operation has no scope, or a scope has no operation");

    for (id, method, path) in &operations {
        let (own, _) = SCOPES.iter().find(|(_, operations)| operations.contains(&id.as_str())).unwrap();
        let ask = async |scopes: &str| {
            let request = served.request(method.clone(), path).header("x-badge", format!("eve acme {scopes}"));
            // A stream does not end.
            let request = request.header("accept", "application/json");
            let request = if *method == Method::GET { request } else { request.json(&body_of(id)) };
            HttpAnswer::of(request.send().await.unwrap()).await
        };
        let others = Scope::ALL.into_iter().map(Scope::as_str).filter(|scope| scope != own).collect::<Vec<_>>();
        let refused = ask(&others.join(",")).await;
        assert_eq!((refused.status.as_u16(), refused.problem()), (403, "forbidden"), "{id}");
        assert!(refused.text("detail").contains(&format!("`{own}`")), "{id}: {refused:?}");
        let lacks = |answer: &HttpAnswer| answer.body.to_string().contains("lack the scope");
        let answer = ask(own).await;
        assert!(!lacks(&answer) || id == "createKey", "{id}: {answer:?}");
    }
}

#[tokio::test]
async fn a_missing_scope_is_reported_before_the_body_is_read() {
    let served = principals::served(given_an_agent().kept(Kept::InMemory).await).await;
    for (id, method, path) in operations().iter().filter(|(_, method, _)| *method != Method::GET) {
        let (own, _) = SCOPES.iter().find(|(_, operations)| operations.contains(&id.as_str())).unwrap();
        let others = Scope::ALL.into_iter().map(Scope::as_str).filter(|scope| scope != own).collect::<Vec<_>>();
        let badge = format!("eve acme {}", others.join(","));
        let ask = async |name: &'static str, value: &str, body: &'static str| {
            let request = served.request(method.clone(), path).header("x-badge", &badge).header(name, value);
            HttpAnswer::of(request.body(body).send().await.unwrap()).await
        };
        for answer in [
            ask("content-type", "text/plain", "{").await,
            ask("content-type", "application/json", "{").await,
            ask("content-encoding", "gzip", "{}").await,
            ask("idempotency-key", "not a key", "{}").await,
        ] {
            assert_eq!((answer.status.as_u16(), answer.problem()), (403, "forbidden"), "{id}: {answer:?}");
        }
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nx-badge: {badge}\r\ncontent-length: 9000000000\r\n\r\n"
        );
        assert!(answer_to(&served, &head).await.starts_with("HTTP/1.1 403 "), "{id}");
    }
}

/// The status line of the response to a request of which only the head is sent.
async fn answer_to(served: &Served, head: &str) -> String {
    let mut socket = TcpStream::connect(served.address).await.unwrap();
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 13];
    socket.read_exact(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn a_body_with_too_large_a_length_is_refused_unread() {
    let served = principals::served(given_an_agent().kept(Kept::InMemory).await).await;
    let head = "POST /v1/runs HTTP/1.1\r\nhost: localhost\r\nx-badge: ann acme all\r\ncontent-length: 4194305\r\n\r\n";
    assert_eq!(answer_to(&served, head).await, "HTTP/1.1 413 ");
}

#[tokio::test]
async fn a_compressed_body_is_refused_with_accept_encoding() {
    let served =
        principals::served(given_an_agent().whose_model_says(json!([say("Hi.")])).kept(Kept::InMemory).await).await;
    let ask = async |encoding: &str| {
        let request = served.request(Method::POST, "/v1/runs").header("x-badge", "ann acme all");
        let request = request.header("content-encoding", encoding).json(&json!({"input": "Hello"}));
        HttpAnswer::of(request.send().await.unwrap()).await
    };
    for encoding in ["gzip", "br", "identity, gzip"] {
        let refused = ask(encoding).await;
        assert_eq!((refused.status.as_u16(), refused.problem()), (415, "unsupported_media_type"), "{encoding}");
        assert_eq!(refused.header("accept-encoding"), "identity");
    }
    assert_eq!(ask("identity").await.status, 201);
}

#[tokio::test]
async fn a_key_sent_as_an_id_is_redacted() {
    let served = principals::served(given_an_agent().kept(Kept::InMemory).await).await;
    let key = format!("tg_{}", "aB3-_".repeat(9));
    for path in
        [format!("/v1/runs/{key}"), format!("/v1/keys/{key}"), format!("/v1/runs?after={key}"), format!("/{key}")]
    {
        let request = served.request(Method::GET, &path).header("x-badge", "ann acme all").header("x-request-id", &key);
        let answer = HttpAnswer::of(request.send().await.unwrap()).await;
        assert!(answer.status.is_client_error(), "{path}: {answer:?}");
        assert!(!format!("{answer:?}").contains(&key), "{path}: {answer:?}");
    }
}

#[tokio::test]
async fn requests_that_only_read_need_the_read_scope() {
    let turns = json!([{"calls": [{"name": "ext_lookup"}]}, say("A secret.")]);
    let served = principals::served(given_an_agent().whose_model_says(turns).kept(Kept::InMemory).await).await;
    let writes = Person { served: &served, badge: "ann acme runs:write" };
    let run = writes.post("/v1/runs", json!({"input": "Hello", "external_tools": [{"name": "lookup"}]})).await;
    let path = format!("/v1/runs/{}", run.text("id"));
    let result = json!({"answers": [{"type": "result", "call_id": run.body["pending"][0]["call_id"], "output": 1}]});

    for (what, body) in [
        ("resume", json!({})),
        ("resume?include=content", result.clone()),
        ("fork?include=content", json!({})),
        ("retry?include=content", json!({})),
    ] {
        let refused = writes.post(&format!("{path}/{what}"), body).await;
        assert_eq!((refused.status.as_u16(), refused.problem()), (403, "forbidden"), "{what}");
        assert!(refused.text("detail").contains("`runs:read`"), "{what}: {refused:?}");
    }
    assert_eq!(writes.post(&format!("{path}/resume"), result).await.text("status"), "completed");
    let over = writes.post(&format!("{path}/cancel"), json!({})).await;
    assert!(over.problem() == "forbidden" && !over.body.to_string().contains("secret"), "{over:?}");
}
