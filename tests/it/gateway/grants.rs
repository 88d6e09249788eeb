//! Grants are created before any call, listed, and revoked.

use serde_json::{Value, json};
use toolgate::core::policy::Verdict;
use toolgate::core::tool::McpTool;

use super::principals::{self, Person};
use super::served::Served;
use crate::fakes::tool;
use crate::runner::world::{Given, Kept, given_an_agent, on_every_store, say};

fn guarded() -> Given {
    given_an_agent()
        .with_tools("files", &["delete"])
        .whose_policy_says(Verdict::Ask, "mcp_files_delete")
        .whose_model_says(json!([{"calls": [{"name": "mcp_files_delete", "arguments": {"path": "a"}}]}, say("Done.")]))
}

async fn outcome(who: &Person<'_>, body: Value) -> String {
    who.post("/v1/runs", body).await.text("status").to_owned()
}

on_every_store! {
    async fn a_granted_call_runs_without_approval_until_revocation(kept: Kept) {
        let served = principals::served(guarded().kept(kept).await).await;
        let ann = Person { served: &served, badge: "ann acme all" };
        let eve = Person { served: &served, badge: "eve evil all" };
        let run = || json!({"input": "Clean up"});

        let given = ann.post("/v1/approval-grants", json!({"tool_name": "mcp_files_delete", "reason": "they are old"})).await;

        assert_eq!(given.status, 201, "{given:?}");
        assert_eq!((given.text("scope"), given.text("by"), given.text("agent")), ("always", "ann", "clerk"));
        assert_eq!((&given.body["active"], &given.body["call_id"]), (&json!(true), &json!(null)));
        assert!(!given.text("expires_at").is_empty(), "it expires after 90 days");
        assert_eq!(outcome(&ann, run()).await, "completed");
        assert_eq!(outcome(&eve, run()).await, "pending", "the grant belongs to another tenant");
        let path = format!("/v1/approval-grants/{}/revoke", given.text("id"));
        assert_eq!(eve.get("/v1/approval-grants?ended=true").await.body["data"], json!([]));
        assert_eq!(eve.post(&path, json!({})).await.problem(), "not_found");
        assert_eq!(outcome(&ann, run()).await, "completed", "another tenant did not revoke it");

        let revoked = ann.post(&path, json!({})).await;
        assert_eq!((&revoked.body["active"], &revoked.body["revoked"]["by"]), (&json!(false), &json!("ann")), "{revoked:?}");
        assert_eq!(ann.post(&path, json!({})).await.body, revoked.body, "a second revocation has no further effect");
        assert_eq!(outcome(&ann, run()).await, "pending");
        assert_eq!(ann.get("/v1/approval-grants").await.body["data"], json!([]));
        assert_eq!(ann.get("/v1/approval-grants?ended=true").await.body["data"][0]["id"], given.body["id"]);
    }
}

#[tokio::test]
async fn a_grant_covers_no_other_calls() {
    let served = principals::served(guarded().kept(Kept::InMemory).await).await;
    let ann = Person { served: &served, badge: "ann acme all" };
    let grant = async |body: Value| {
        let given = ann.post("/v1/approval-grants", body).await;
        assert_eq!(given.status, 201, "{given:?}");
    };
    grant(json!({"tool_name": "mcp_files_delete", "arguments": {"path": "b"}})).await;
    assert_eq!(outcome(&ann, json!({"input": "x"})).await, "pending", "other arguments");
    grant(json!({"tool_name": "mcp_files_delete", "session_id": "s", "arguments": {"path": "a"}})).await;
    assert_eq!(outcome(&ann, json!({"input": "x"})).await, "pending", "another session");
    assert_eq!(outcome(&ann, json!({"input": "x", "session_id": "s"})).await, "completed");
    grant(json!({"tool_name": "mcp_files_delete", "principal": "user:tim"})).await;
    assert_eq!(outcome(&ann, json!({"input": "x"})).await, "pending", "the run has no principal");
    assert_eq!(outcome(&ann, json!({"input": "x", "principal": "user:tim"})).await, "completed");
    served.world.servers.tool_access("files", McpTool { description: "sends it away".into(), ..tool("delete") });
    assert_eq!(outcome(&ann, json!({"input": "x", "principal": "user:tim"})).await, "pending", "the tool has changed");

    let first = ann.get("/v1/approval-grants?limit=1").await;
    assert_eq!((&first.body["has_more"], &first.body["data"][0]["principal"]), (&json!(true), &json!("user:tim")));
    let rest = ann.get(&format!("/v1/approval-grants?after={}", first.text("last_id"))).await;
    assert_eq!(rest.body["data"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn row_1_39_a_grant_may_have_a_condition() {
    let delete = |path: &str| json!({"calls": [{"name": "mcp_files_delete", "arguments": {"path": path}}]});
    let given = guarded().whose_model_says(json!([delete("/tmp/a"), delete("/etc/a"), say("Done.")]));
    let served = principals::served(given.kept(Kept::InMemory).await).await;
    let ann = Person { served: &served, badge: "ann acme all" };

    // The grant of a decision covers the first call and not the second.
    let asked = ann.post("/v1/runs", json!({"input": "x"})).await;
    let approval = &asked.body["pending"][0];
    let decide = |when: &str| {
        let matched = json!({"when": when});
        json!({"answers": [{"type": "decision", "call_id": approval["call_id"], "decision": "approve", "scope": "always", "match": matched}]})
    };
    let resume = format!("/v1/runs/{}/resume", asked.text("id"));
    for unusable in ["args.path.startsWith('/etc')", "args.path.within('/tmp')", "arg.path", "args.amount > 1"] {
        let refused = ann.post(&resume, decide(unusable)).await;
        assert!(refused.status.is_client_error(), "{unusable}: {refused:?}");
    }
    let second = ann.post(&resume, decide("args.path.lexicallyWithin('/tmp')")).await;
    assert_eq!(
        (second.text("status"), &second.body["pending"][0]["arguments"]),
        ("pending", &json!({"path": "/etc/a"}))
    );
    let grants = ann.get("/v1/approval-grants").await;
    assert_eq!(grants.body["data"][0]["when"], "args.path.lexicallyWithin('/tmp')");
    let again = ann.post("/v1/runs", json!({"input": "x"})).await;
    assert_eq!(again.body["pending"][0]["arguments"], json!({"path": "/etc/a"}), "the first call is covered");

    // One that was created before any call.
    let both = json!({"tool_name": "mcp_files_delete", "arguments": {"path": "a"}, "when": "args.path == 'a'"});
    assert_eq!(ann.post("/v1/approval-grants", both).await.body["errors"][0]["pointer"], "/when");
    let when = json!({"tool_name": "mcp_files_delete", "when": "args.path.startsWith('/etc/')"});
    assert_eq!(ann.post("/v1/approval-grants", when).await.status, 201);
    assert_eq!(outcome(&ann, json!({"input": "x"})).await, "completed");
}

#[tokio::test]
async fn an_invalid_grant_is_refused() {
    let served = Served::to_all(guarded().that_checks_arguments().kept(Kept::InMemory).await).await;
    served.world.servers.tool_access(
        "files",
        McpTool { input_schema: json!({"type": "object", "required": ["path"]}), ..tool("delete") },
    );
    let refused = async |body: Value| served.post("/v1/approval-grants", body).await.problem().to_owned();
    for (field, value) in
        [("tool_name", "mcp_files_shred"), ("agent", "unknown"), ("expires_at", "2001-01-01T00:00:00Z")]
    {
        let mut wrong = json!({"tool_name": "mcp_files_delete"});
        wrong[field] = value.into();
        let refused = served.post("/v1/approval-grants", wrong).await;
        let place = format!("/{field}");
        assert_eq!((refused.problem(), &refused.body["errors"][0]["pointer"]), ("validation", &json!(place)));
    }
    assert_eq!(served.get("/v1/approval-grants?after=grant_of_unknown").await.problem(), "validation");
    assert_eq!(refused(json!({"tool_name": "mcp_files_delete", "arguments": {}})).await, "validation");
    assert_eq!(refused(json!({"tool_name": "mcp_files_delete", "scope": "always"})).await, "invalid_request");
    assert_eq!(served.get("/v1/approval-grants").await.body["data"], json!([]));
    let people = principals::served(guarded().kept(Kept::InMemory).await).await;
    let tim = Person { served: &people, badge: "tim acme approvals:read" };
    assert_eq!(tim.post("/v1/approval-grants", json!({"tool_name": "mcp_files_delete"})).await.problem(), "forbidden");
    assert_eq!(tim.post("/v1/approval-grants/x/revoke", json!({})).await.problem(), "forbidden");
}
