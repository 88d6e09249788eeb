//! Tools: they are listed by agent, and called without a model under the agent's rules.

use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};
use toolgate::core::policy::{Condition, Match, Rule, Verdict};
use toolgate::core::tool::{FailureKind, McpTool, Outcome};
use toolgate::runner::{Agent, Resume};

use super::principals::{self, Person};
use super::served::{HttpAnswer, Served};
use super::test_site::until;
use crate::fakes::tool;
use crate::runner::world::{Given, Kept, given_an_agent, on_every_store, say, yes};

fn clerk() -> Given {
    given_an_agent()
        .with_tools("files", &["read", "delete", "shred"])
        .whose_policy_says(Verdict::Ask, "mcp_files_delete")
        .whose_policy_says(Verdict::Deny, "mcp_files_shred")
}

async fn call(served: &Served, tool: &str, arguments: Value) -> HttpAnswer {
    served.post(&format!("/v1/tools/{tool}/call"), json!({"arguments": arguments})).await
}

#[tokio::test]
async fn tools_are_listed_with_their_verdicts() {
    let looks = |agent: &mut Agent| {
        let matches = Match { tool: Some("mcp_web_get".into()), ..Match::default() };
        let rule = Rule::new("looks", Verdict::Deny, "not that one", matches, Vec::new(), Vec::new()).unwrap();
        let rule = rule.with_condition(Condition::parse("args.path == 'a'").unwrap());
        Arc::make_mut(&mut agent.policy).rules.push(rule);
    };
    let clerk = clerk().with_tools("web", &["get"]).that(looks);
    let served = Served::to_all(clerk.kept(Kept::InMemory).await).await;
    assert_eq!(served.get("/v1/tools?server=web").await.body["data"][0]["verdict"], "depends");
    let listed = served.get("/v1/tools?server=files").await;
    let of = |field: &str| -> Vec<Value> {
        listed.body["data"].as_array().unwrap().iter().map(|tool| tool[field].clone()).collect()
    };
    assert_eq!(of("tool_name"), ["mcp_files_delete", "mcp_files_read", "mcp_files_shred"]);
    assert_eq!(of("verdict"), ["ask", "allow", "deny"]);
    assert_eq!(of("rule")[0], "mcp_files_delete");
    assert!(of("definition_hash").iter().all(|hash| hash.as_str().unwrap().starts_with("sha256:")));
    assert_eq!(served.get("/v1/tools?type=external").await.body["data"], json!([]));
    let unknown = served.get("/v1/tools?agent=unknown").await;
    assert_eq!((unknown.problem(), unknown.text("detail")), ("validation", "`agent`: there is no agent `unknown`"));
    assert_eq!(served.get("/v1/tools?type=odd").await.problem(), "invalid_request");

    let tag = listed.header("etag");
    let known = async || {
        let request = served.request(Method::GET, "/v1/tools?server=files").header("if-none-match", tag);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(known().await, 304);
    served.world.servers.tool_access("files", McpTool { description: "otherwise".into(), ..tool("read") });
    assert_eq!(known().await, 200);
}

on_every_store! {
    async fn an_allowed_call_is_made_and_is_a_run(kept: Kept) {
        let served = Served::to_all(clerk().kept(kept).await).await;

        let made = call(&served, "mcp_files_read", json!({"path": "a b"})).await;

        assert_eq!((made.status.as_u16(), made.text("status")), (200, "completed"), "{made:?}");
        assert_eq!(made.body["result"]["content"][0]["text"], "read done");
        assert_eq!(served.world.servers.arguments_of("call_1"), json!({"path": "a b"}));
        let run = served.get(made.header("location")).await;
        assert_eq!((run.text("id"), &run.body["output"]["text"]), (made.text("run_id"), &json!("read done")));
        let journal = served.world.journal(&made.text("run_id").into()).await;
        let started = journal.iter().position(|name| *name == "tool.started");
        assert!(started < journal.iter().position(|name| *name == "tool.completed") && started.is_some(), "{journal:?}");
    }

    async fn a_call_that_requires_approval_resumes_in_another_process(kept: Kept) {
        let served = Served::to_all(clerk().kept(kept).await).await;

        let waits = call(&served, "mcp_files_delete", json!({"path": "a"})).await;

        assert_eq!((waits.status.as_u16(), waits.text("status")), (202, "pending"), "{waits:?}");
        assert_eq!((&waits.body["pending"][0]["type"], served.world.servers.calls().len()), (&json!("approval"), 0));
        let inbox = served.get("/v1/approvals").await;
        assert_eq!(inbox.body["data"][0]["run_id"], waits.body["run_id"]);
        let run = waits.text("run_id").into();
        let resume = Resume::default().with("call_1", yes());
        let report = served.world.another_process().await.resume(&run, resume).await.unwrap();
        assert_eq!(report.output.unwrap().text, "delete done");
        assert_eq!(served.world.servers.calls().len(), 1);
    }

    // Issue 39, row 17
    async fn a_call_with_a_session_has_the_principal_of_the_session(kept: Kept) {
        let served = principals::served(clerk().whose_model_says(json!([say("One.")])).kept(kept).await).await;
        let ann = Person { served: &served, badge: "key:ann acme all ann" };
        let bob = Person { served: &served, badge: "key:bob acme all bob" };
        ann.post("/v1/sessions", json!({"id": "chat-77"})).await;
        let lone = ann.post("/v1/runs", json!({"input": "First"})).await;
        ann.post("/v1/tools/mcp_files_read/call", json!({"session_id": "chat-78"})).await;

        for session in ["chat-77", lone.text("id"), "chat-78"] {
            let refused = bob.post("/v1/tools/mcp_files_delete/call", json!({"session_id": session})).await;
            assert_eq!((refused.status.as_u16(), refused.problem()), (403, "forbidden"), "{session}: {refused:?}");
            let own = ann.post("/v1/tools/mcp_files_read/call", json!({"session_id": session})).await;
            assert_eq!(own.status, 200, "{session}: {own:?}");
            assert_eq!(ann.delete(&format!("/v1/sessions/{session}")).await.status, 204, "{session}");
        }
        assert_eq!(served.world.servers.calls().len(), 4, "the calls of ann");
    }

    async fn a_deleted_session_has_neither_new_calls_nor_new_grants(kept: Kept) {
        let served = Served::to_all(clerk().kept(kept).await).await;
        served.post("/v1/sessions", json!({"id": "chat-77"})).await;
        let request = served.request(Method::DELETE, "/v1/sessions/chat-77");
        assert_eq!(request.send().await.unwrap().status(), 204);

        let called = served.post("/v1/tools/mcp_files_delete/call", json!({"session_id": "chat-77"})).await;
        let grant = json!({"tool_name": "mcp_files_delete", "session_id": "chat-77", "reason": "a secret"});
        let granted = served.post("/v1/approval-grants", grant).await;

        for gone in [called, granted] {
            assert_eq!((gone.status.as_u16(), gone.problem()), (410, "gone"), "{gone:?}");
        }
        assert_eq!(served.get("/v1/approval-grants?ended=true").await.body["data"], json!([]));
        assert_eq!(served.get("/v1/runs").await.body["data"], json!([]));
    }
}

#[tokio::test]
async fn a_call_that_is_not_made_has_a_reason() {
    let world = clerk().that_checks_arguments().with_an_external_tool("own").kept(Kept::InMemory).await;
    world.servers.tool_access(
        "files",
        McpTool { input_schema: json!({"type": "object", "required": ["path"]}), ..tool("read") },
    );
    let served = Served::to_all(world).await;
    let denied = call(&served, "mcp_files_shred", json!({})).await;
    assert_eq!((denied.status.as_u16(), denied.problem()), (403, "tool_denied"));
    let invalid = call(&served, "mcp_files_read", json!({})).await;
    assert_eq!((invalid.status.as_u16(), invalid.problem()), (422, "validation"));
    assert_eq!(invalid.body["errors"][0]["pointer"], "/arguments");
    assert_eq!(call(&served, "mcp_files_none", json!({})).await.problem(), "not_found");
    let unknown = served.post("/v1/tools/mcp_files_read/call", json!({"agent": "unknown"})).await;
    assert_eq!((unknown.problem(), &unknown.body["errors"][0]["pointer"]), ("validation", &json!("/agent")));
    assert_eq!(served.post("/v1/tools/mcp_files_read/call", json!({"args": {}})).await.problem(), "invalid_request");
    assert_eq!(served.world.servers.calls().len(), 0);

    served.world.servers.answer("read", Outcome::failed(FailureKind::Timeout, "it was too slow"));
    let failed = call(&served, "mcp_files_read", json!({"path": "a"})).await;
    assert_eq!((failed.status.as_u16(), &failed.body["error"]["type"]), (200, &json!("timeout")), "{failed:?}");
    let waits = call(&served, "mcp_files_delete", json!({})).await;
    let decision = format!("/v1/approvals/{}/decision", waits.body["pending"][0]["approval_id"].as_str().unwrap());
    served.post(&decision, json!({"decision": "deny", "reason": "keep it"})).await;
    let run = served.post(&format!("/v1/runs/{}/resume", waits.text("run_id")), json!({})).await;
    assert!(run.body["output"]["text"].as_str().unwrap().contains("keep it"), "{run:?}");
}

#[tokio::test]
async fn calls_need_their_scope_and_belong_to_the_tenant() {
    let served = principals::served(clerk().kept(Kept::InMemory).await).await;
    let ann = Person { served: &served, badge: "ann acme tools:call,runs:read" };
    let made = ann.post("/v1/tools/mcp_files_read/call", json!({})).await;
    assert_eq!(made.status, 200, "{made:?}");
    let run = ann.get(made.header("location")).await;
    assert_eq!(run.text("created_by"), "ann");
    let eve = Person { served: &served, badge: "eve evil all" };
    assert_eq!(eve.get(made.header("location")).await.problem(), "not_found");
    let tim = Person { served: &served, badge: "tim acme tools:read" };
    assert_eq!(tim.post("/v1/tools/mcp_files_read/call", json!({})).await.problem(), "forbidden");
    assert_eq!(ann.get("/v1/tools").await.problem(), "forbidden");
}

#[tokio::test]
async fn a_call_cancelled_in_progress_may_have_taken_effect() {
    let clerk = clerk().where_servers(|servers| servers.hang_in("read"));
    let served = Served::to_all(clerk.kept(Kept::InMemory).await).await;
    let stopped = async {
        until(async || served.world.servers.calls().len() == 1).await;
        let runs = served.get("/v1/runs").await;
        let run = runs.body["data"][0]["id"].as_str().unwrap().to_owned();
        served.post(&format!("/v1/runs/{run}/cancel"), json!({})).await
    };

    let (told, stopped) = tokio::join!(call(&served, "mcp_files_read", json!({"path": "a"})), stopped);

    assert_eq!(stopped.text("status"), "cancelled");
    assert_eq!((told.status.as_u16(), told.text("status")), (200, "cancelled"), "{told:?}");
    assert_eq!(told.body["error"]["type"], "unknown");
}
