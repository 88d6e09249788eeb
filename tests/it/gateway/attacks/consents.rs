//! Ways around four eyes, and around the owner of a grant.

use serde_json::json;
use toolgate::core::policy::Verdict;

use crate::gateway::principals::{self, Person};
use crate::runner::world::{Given, Kept, given_an_agent, say};

fn guarded() -> Given {
    let turn = json!({"calls": [{"name": "mcp_files_delete", "arguments": {"path": "a"}}]});
    given_an_agent()
        .with_tools("files", &["delete"])
        .whose_policy_says(Verdict::Ask, "mcp_files_delete")
        .whose_model_says(json!([turn, say("Done."), turn, say("Done again.")]))
}

#[tokio::test]
async fn with_four_eyes_an_approver_cannot_influence_the_call() {
    let served = principals::served_with_four_eyes(guarded().kept(Kept::InMemory).await).await;
    let ann = Person { served: &served, badge: "key:ann acme runs:read,runs:write" };
    let carl = Person { served: &served, badge: "key:carl acme all" };
    let run = ann.post("/v1/runs", json!({"input": "One"})).await;
    let path = format!("/v1/runs/{}", run.text("id"));
    let decision = format!("/v1/approvals/{}/decision", run.body["pending"][0]["approval_id"].as_str().unwrap());

    let steered = carl.post(&format!("{path}/messages"), json!({"text": "Delete the backups as well"})).await;
    assert_eq!(steered.problem(), "forbidden");
    let edited = json!({"decision": "approve", "edited_arguments": {"path": "backups"}});
    assert_eq!(carl.post(&decision, edited).await.problem(), "forbidden");
    assert_eq!(ann.post(&format!("{path}/messages"), json!({"text": "But be careful"})).await.status, 202);

    let fork = carl.post(&format!("{path}/fork"), json!({})).await;
    let own = format!("/v1/approvals/{}/decision", fork.body["pending"][0]["approval_id"].as_str().unwrap());
    assert_eq!(carl.post(&own, json!({"decision": "approve"})).await.problem(), "forbidden", "the fork is his");
    assert_eq!(served.world.servers.calls().len(), 0);
    assert_eq!(carl.post(&decision, json!({"decision": "approve"})).await.text("status"), "decided");
}

#[tokio::test]
async fn with_four_eyes_a_foreign_fork_gives_no_right_to_approve() {
    let served = principals::served_with_four_eyes(guarded().kept(Kept::InMemory).await).await;
    let ann = Person { served: &served, badge: "key:ann acme all" };
    let carl = Person { served: &served, badge: "key:carl acme all" };
    let eve = Person { served: &served, badge: "key:eve acme all" };
    let run = ann.post("/v1/runs", json!({"input": "Delete the backups"})).await;
    let fork = carl.post(&format!("/v1/runs/{}/fork", run.text("id")), json!({})).await;
    let again = eve.post(&format!("/v1/runs/{}/fork", fork.text("id")), json!({})).await;

    for fork in [&fork, &again] {
        let decision = format!("/v1/approvals/{}/decision", fork.body["pending"][0]["approval_id"].as_str().unwrap());
        assert_eq!(ann.post(&decision, json!({"decision": "approve"})).await.problem(), "forbidden", "{fork:?}");
    }
    assert_eq!(served.world.servers.calls().len(), 0);
    let decision = format!("/v1/approvals/{}/decision", fork.body["pending"][0]["approval_id"].as_str().unwrap());
    assert_eq!(eve.post(&decision, json!({"decision": "approve"})).await.text("status"), "decided");
}

#[tokio::test]
async fn sessions_of_the_same_name_in_two_tenants_share_nothing() {
    let served = principals::served(guarded().kept(Kept::InMemory).await).await;
    let ann = Person { served: &served, badge: "key:ci acme all" };
    let eve = Person { served: &served, badge: "key:ci evil all" };
    let run = || json!({"input": "Clean up", "session_id": "s"});
    let asked = ann.post("/v1/runs", run()).await;
    let decision = format!("/v1/approvals/{}/decision", asked.body["pending"][0]["approval_id"].as_str().unwrap());
    let yes = json!({"decision": "approve", "scope": "session", "match": "tool"});
    assert_eq!(ann.post(&decision, yes).await.text("status"), "decided");

    assert_eq!(ann.post("/v1/runs", run()).await.text("status"), "completed");
    assert_eq!(eve.post("/v1/runs", run()).await.text("status"), "pending");
    for list in ["/v1/runs?session_id=s", "/v1/approvals?session_id=s"] {
        assert_eq!(eve.get(list).await.body["data"].as_array().unwrap().len(), 1, "{list}");
    }
    assert_eq!(eve.get("/v1/approval-grants?session_id=s").await.body["data"], json!([]));
}
