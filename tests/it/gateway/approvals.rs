//! Approvals inbox: pending approvals are listed, read, decided and extended by callers with the scope.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate::core::policy::{Policy, Verdict};
use toolgate::core::tool::McpTool;

use super::principals::{self, Person};
use super::served::{HttpAnswer, Served};
use crate::fakes::tool;
use crate::runner::world::{Given, Kept, given_an_agent, on_every_store, say};

fn guarded() -> Given {
    let delete = |path: &str| json!({"name": "mcp_files_delete", "arguments": {"path": path}});
    given_an_agent()
        .with_tools("files", &["delete"])
        .whose_policy_says(Verdict::Ask, "mcp_files_delete")
        .whose_model_says(json!([{"say": "I will.", "calls": [delete("a"), delete("b")]}, say("Done.")]))
}

fn guarded_once() -> Given {
    guarded().whose_model_says(json!([{"calls": [{"name": "mcp_files_delete"}]}, say("Done.")]))
}

async fn inbox(served: &Served) -> Vec<Value> {
    served.get("/v1/approvals").await.body["data"].as_array().unwrap().clone()
}

fn decision_of(approval: &Value) -> String {
    format!("/v1/approvals/{}/decision", approval["id"].as_str().unwrap())
}

/// The run when it is pending or has ended: an empty resume joins the process that drives it.
async fn rested(served: &Served, run: &str) -> HttpAnswer {
    served.post(&format!("/v1/runs/{run}/resume"), json!({})).await
}

on_every_store! {
    async fn a_decision_in_the_inbox_resumes_the_run(kept: Kept) {
        let served = Served::to_all(guarded().kept(kept).await).await;
        let run = served.run(json!({"input": "Clean up", "session_id": "s1"})).await;

        let waiting = inbox(&served).await;
        let [first, second] = &waiting[..] else { panic!("two calls are pending: {waiting:?}") };
        assert_eq!((&first["status"], &first["run_id"], &first["run_status"]), (&json!("pending"), &json!(run), &json!("pending")));
        assert_eq!((&first["agent"], &first["session_id"], &first["task"]), (&json!("clerk"), &json!("s1"), &json!("Clean up")));
        assert_eq!((&first["model_text"], &first["description"]), (&json!("I will."), &json!("does delete")));
        assert_eq!((&first["arguments"], &second["arguments"]), (&json!({"path": "a"}), &json!({"path": "b"})));
        assert_eq!(first["id"], first["approval_id"]);
        let read = served.get(&format!("/v1/approvals/{}", first["id"].as_str().unwrap())).await;
        assert_eq!(&read.body, first);

        let yes = json!({"decision": "approve", "reason": "it is old", "digest": first["digest"]});
        let decided = served.post(&decision_of(first), yes.clone()).await;
        assert_eq!((decided.status.as_u16(), decided.text("status")), (200, "decided"), "{decided:?}");
        assert_eq!((&decided.body["decision"]["decision"], &decided.body["decision"]["by"]), (&json!("approve"), &json!("local")));
        rested(&served, &run).await;
        assert_eq!(inbox(&served).await.len(), 1, "the other call is still pending");
        let again = served.post(&decision_of(first), yes).await;
        assert_eq!((again.status.as_u16(), &again.body["decision"]), (200, &decided.body["decision"]));
        let otherwise = served.post(&decision_of(first), json!({"decision": "deny"})).await;
        assert_eq!((otherwise.status.as_u16(), otherwise.problem()), (409, "conflict"));
        assert_eq!(otherwise.body["retryable"], false, "a retry changes nothing");

        served.post(&decision_of(second), json!({"decision": "deny", "reason": "keep it"})).await;
        let done = rested(&served, &run).await;
        assert_eq!((done.text("status"), served.world.servers.calls().len()), ("completed", 1), "{done:?}");
        assert_eq!(inbox(&served).await, Vec::<Value>::new());
    }

    async fn the_pages_of_the_inbox_hold_each_approval_once(kept: Kept) {
        let served = Served::to_all(guarded().kept(kept).await).await;
        for _ in 0..3 {
            served.run(json!({"input": "Clean up"})).await;
        }
        let (mut seen, mut after) = (Vec::new(), String::new());
        loop {
            let page = served.get(&format!("/v1/approvals?limit=1{after}")).await;
            seen.extend(page.body["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()));
            if page.body["has_more"] == false {
                break;
            }
            after = format!("&after={}", page.text("last_id"));
        }
        let all: Vec<String> = inbox(&served).await.iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect();
        assert_eq!((seen.len(), &seen), (6, &all));
        assert!(seen[0].starts_with("appr_3_") && seen[5].starts_with("appr_1_"), "the newest run first: {seen:?}");
    }
}

#[tokio::test]
async fn unknown_approvals_and_invalid_decisions_are_refused() {
    let served = Served::to_all(guarded().kept(Kept::InMemory).await).await;
    let run = served.run(json!({"input": "Clean up"})).await;
    let number = run.trim_start_matches("run_");
    for none in ["appr_9_1".to_owned(), format!("appr_{number}_0"), format!("appr_{number}_9999"), "x".to_owned()] {
        assert_eq!(served.get(&format!("/v1/approvals/{none}")).await.problem(), "not_found", "{none}");
    }
    assert_eq!(served.get("/v1/approvals?status=decided").await.problem(), "invalid_request");
    assert_eq!(served.get("/v1/approvals?after=x").await.problem(), "validation");
    let first = &inbox(&served).await[0];
    let seen = served.post(&decision_of(first), json!({"decision": "approve", "digest": "sha256:other"})).await;
    assert_eq!((seen.problem(), &seen.body["retryable"]), ("conflict", &json!(false)));
    let extend = format!("/v1/approvals/{}/extend", first["id"].as_str().unwrap());
    assert_eq!(served.post(&extend, json!({})).await.problem(), "validation");
    assert_eq!(served.post(&extend, json!({"seconds": 5})).await.problem(), "conflict", "it has no deadline");
    served.post(&format!("/v1/runs/{run}/cancel"), json!({})).await;
    let gone = served.post(&decision_of(first), json!({"decision": "approve"})).await;
    assert_eq!((gone.status.as_u16(), gone.problem()), (410, "gone"));
    let read = served.get(&format!("/v1/approvals/{}", first["id"].as_str().unwrap())).await;
    assert_eq!((read.text("status"), read.text("run_status")), ("withdrawn", "cancelled"));
}

#[tokio::test(start_paused = true)]
async fn an_approval_expires_unless_its_deadline_is_extended() {
    let within = |agent: &mut toolgate::runner::Agent| {
        agent.policy = Policy { answer_timeout_s: Some(60), ..Policy::ask_always() }.into();
    };
    let served = Served::to_all(guarded_once().that(within).kept(Kept::InMemory).await).await;
    let run = served.run(json!({"input": "Clean up"})).await;
    let first = inbox(&served).await.remove(0);
    let extend = format!("/v1/approvals/{}/extend", first["id"].as_str().unwrap());

    let extended = served.post(&extend, json!({"seconds": 3600})).await;
    assert_eq!(extended.status, 200, "{extended:?}");
    assert_ne!(extended.body["expires_at"], first["expires_at"]);
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(inbox(&served).await[0]["status"], "pending");
    tokio::time::advance(Duration::from_secs(3600)).await;

    let read = served.get(&format!("/v1/approvals/{}", first["id"].as_str().unwrap())).await;
    assert_eq!(read.text("status"), "expired", "{read:?}");
    let late = served.post(&decision_of(&first), json!({"decision": "approve"})).await;
    assert_eq!((late.status.as_u16(), late.problem()), (410, "gone"));
    assert_eq!(served.post(&extend, json!({"seconds": 60})).await.problem(), "gone");
    served.world.runner.expire_due().await.unwrap();
    assert_eq!(rested(&served, &run).await.text("status"), "completed");
    let read = served.get(&format!("/v1/approvals/{}", first["id"].as_str().unwrap())).await;
    assert_eq!((read.text("status"), read.text("run_status")), ("expired", "completed"));
}

#[tokio::test]
async fn a_changed_call_requires_another_approval() {
    let served = Served::to_all(guarded_once().kept(Kept::InMemory).await).await;
    let run = served.run(json!({"input": "Clean up"})).await;
    let first = inbox(&served).await.remove(0);
    served.world.servers.tool_access("files", McpTool { description: "sends it away".into(), ..tool("delete") });
    let yes = json!({"decision": "approve"});

    served.post(&decision_of(&first), yes.clone()).await;
    assert_eq!(rested(&served, &run).await.text("status"), "pending");

    let second = inbox(&served).await.remove(0);
    assert_ne!(second["id"], first["id"]);
    assert_eq!(second["differences"].as_array().unwrap().len(), 1, "{second:#}");
    let repeated = served.post(&decision_of(&first), yes.clone()).await;
    assert_eq!((repeated.status.as_u16(), repeated.text("status")), (200, "decided"));
    assert_eq!((inbox(&served).await[0]["id"].clone(), served.world.servers.calls().len()), (second["id"].clone(), 0));
    served.post(&decision_of(&second), yes).await;
    assert_eq!(rested(&served, &run).await.text("status"), "completed");
}

#[tokio::test]
async fn an_approval_is_decided_by_its_tenant_with_the_scope_only() {
    let served = principals::served(guarded_once().kept(Kept::InMemory).await).await;
    let ann = Person { served: &served, badge: "ann acme runs:read,runs:write,approvals:read" };
    let eve = Person { served: &served, badge: "eve evil all" };
    ann.post("/v1/runs", json!({"input": "Clean up"})).await;
    let waiting = ann.get("/v1/approvals").await;
    let path = format!("/v1/approvals/{}", waiting.text("first_id"));
    let (decision, extend) = (format!("{path}/decision"), format!("{path}/extend"));

    assert_eq!(eve.get("/v1/approvals").await.body["data"], json!([]));
    assert_eq!(eve.get(&path).await.problem(), "not_found");
    assert_eq!(eve.post(&decision, json!({"decision": "approve"})).await.problem(), "not_found");
    assert_eq!(eve.post(&extend, json!({"seconds": 60})).await.problem(), "not_found");
    assert_eq!(ann.post(&decision, json!({"decision": "approve"})).await.problem(), "forbidden");
    assert_eq!(ann.post(&extend, json!({"seconds": 60})).await.problem(), "forbidden");
    let without_scope = Person { served: &served, badge: "tim acme runs:read" };
    assert_eq!(without_scope.get("/v1/approvals").await.problem(), "forbidden");
    assert_eq!(without_scope.get(&path).await.problem(), "forbidden");
    assert_eq!(served.world.servers.calls().len(), 0);
}

#[tokio::test]
async fn with_four_eyes_the_creator_of_a_run_may_only_deny() {
    let served = principals::served_with_four_eyes(guarded_once().kept(Kept::InMemory).await).await;
    let ann = Person { served: &served, badge: "ann acme all" };
    let carl = Person { served: &served, badge: "carl acme all" };
    let carls_other_key = Person { served: &served, badge: "key:c acme all user:carl" };
    let bob = Person { served: &served, badge: "bob acme approvals:read,approvals:decide" };
    let started = async |who: &Person<'_>, body: Value| {
        let created = who.post("/v1/runs", body).await;
        let approval = bob.get("/v1/approvals").await.text("first_id").to_owned();
        (
            created.text("id").to_owned(),
            format!("/v1/approvals/{approval}/decision"),
            created.body["pending"][0].clone(),
        )
    };
    let (yes, always) = (json!({"decision": "approve"}), json!({"decision": "approve", "scope": "always"}));

    let (run, decision, owed) = started(&ann, json!({"input": "One"})).await;
    let own = ann.post(&decision, yes.clone()).await;
    assert_eq!((own.status.as_u16(), own.problem()), (403, "forbidden"));
    let given = json!({"answers": [{"type": "decision", "call_id": owed["call_id"], "decision": "approve"}]});
    assert_eq!(ann.post(&format!("/v1/runs/{run}/resume"), given).await.problem(), "forbidden");
    assert_eq!(carl.post(&decision, always.clone()).await.problem(), "forbidden", "it would cover runs of his own");
    assert_eq!(carl.post(&decision, yes.clone()).await.text("status"), "decided");

    let (_, decision, _) = started(&ann, json!({"input": "Two"})).await;
    assert_eq!(ann.post(&decision, json!({"decision": "deny"})).await.text("status"), "decided");

    let (_, decision, _) = started(&ann, json!({"input": "Three", "principal": "user:carl"})).await;
    assert_eq!(carls_other_key.post(&decision, yes.clone()).await.problem(), "forbidden", "the run acts for carl");
    assert_eq!(bob.post(&decision, always).await.text("status"), "decided");

    let grant = json!({"tool_name": "mcp_files_delete"});
    assert_eq!(ann.post("/v1/approval-grants", grant.clone()).await.problem(), "forbidden");
    assert_eq!(bob.post("/v1/approval-grants", grant).await.status, 201);
}

#[tokio::test]
async fn an_approval_with_a_past_expiry_is_refused_with_a_pointer() {
    let served = Served::to_all(guarded_once().kept(Kept::InMemory).await).await;
    let run = served.run(json!({"input": "Clean up"})).await;
    let waiting = inbox(&served).await.remove(0);
    let past = json!({"decision": "approve", "scope": "always", "expires_at": "2020-01-01T00:00:00Z"});

    let refused = served.post(&decision_of(&waiting), past.clone()).await;
    assert_eq!((refused.problem(), &refused.body["errors"][0]["pointer"]), ("validation", &json!("/expires_at")));
    let mut decision = past;
    decision["type"] = json!("decision");
    decision["call_id"] = waiting["call_id"].clone();
    let resumed = served.post(&format!("/v1/runs/{run}/resume"), json!({"answers": [decision]})).await;
    let pointer = &resumed.body["errors"][0]["pointer"];
    assert_eq!((resumed.problem(), pointer), ("validation", &json!("/answers/0/expires_at")));
    assert_eq!(inbox(&served).await.len(), 1, "the call is still pending");
}
