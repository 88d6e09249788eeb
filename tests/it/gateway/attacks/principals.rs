//! Credentials with a principal cannot act for another one.

use serde_json::{Value, json};
use toolgate::core::policy::Verdict;

use crate::gateway::principals::{self, Person};
use crate::runner::world::{Kept, given_an_agent, say};

#[tokio::test]
async fn runs_of_another_principal_can_only_be_read_and_decided() {
    let calls = json!({"calls": [{"name": "ext_lookup"}, {"name": "mcp_files_delete"}]});
    let world = given_an_agent()
        .with_tools("files", &["delete"])
        .whose_policy_says(Verdict::Ask, "mcp_files_delete")
        .whose_model_says(json!([calls, say("Done.")]));
    let served = principals::served(world.kept(Kept::InMemory).await).await;
    let ann = Person { served: &served, badge: "user:ann acme all ann" };
    let eve = Person { served: &served, badge: "user:eve acme all eve" };
    let service = Person { served: &served, badge: "key:shop acme all" };
    let new = json!({"input": "Look it up", "external_tools": [{"name": "lookup"}]});
    let run = ann.post("/v1/runs", new).await;
    let path = format!("/v1/runs/{}", run.text("id"));
    let call = |name: &str| {
        let owed = run.body["pending"].as_array().unwrap().iter().find(|owed| owed["type"] == name);
        owed.unwrap_or_else(|| panic!("{name} in {run:?}"))["call_id"].clone()
    };
    let result =
        json!({"answers": [{"type": "result", "call_id": call("external_result"), "output": "ours"}], "partial": true});
    let both = json!({
        "answers": [
            {"type": "result", "call_id": call("external_result"), "output": "ours"},
            {"type": "decision", "call_id": call("approval"), "decision": "approve"},
        ],
    });

    for (child, body) in [
        ("/fork", json!({})),
        ("/retry", json!({})),
        ("/fork", json!({"message": "Say what you know"})),
        ("/messages", json!({"text": "Delete everything"})),
        ("/resume", result.clone()),
        ("/resume", both),
        ("/cancel", json!({})),
    ] {
        let refused = eve.post(&format!("{path}{child}"), body.clone()).await;
        assert_eq!((refused.status.as_u16(), refused.problem()), (403, "forbidden"), "{child} {body}");
        assert!(refused.text("detail").contains("act for `eve`"), "{refused:?}");
    }
    assert_eq!(eve.get(&path).await.body, run.body, "the run was changed, or cannot be read");
    assert_eq!(eve.get("/v1/runs").await.body["data"].as_array().unwrap().len(), 1, "there is a fork");

    let decided = json!({"answers": [{"type": "decision", "call_id": call("approval"), "decision": "approve"}]});
    assert_eq!(eve.post(&format!("{path}/resume"), decided).await.text("status"), "pending");
    assert_eq!(service.post(&format!("{path}/resume"), result).await.text("status"), "completed");
    assert_eq!(eve.delete(&path).await.problem(), "forbidden");
    assert_eq!(ann.delete(&path).await.status, 204);
    assert_eq!(eve.delete(&path).await.status, 204, "a deleted run has no principal");
}

#[tokio::test]
async fn credentials_with_a_principal_start_runs_of_no_other() {
    let world = given_an_agent().with_tools("files", &["read"]).whose_model_says(json!([say("Hi.")]));
    let served = principals::served(world.kept(Kept::InMemory).await).await;
    let eve = Person { served: &served, badge: "user:eve acme all eve" };
    let for_ann = |body: Value| {
        let mut body = body;
        body["principal"] = json!("ann");
        body
    };
    for (path, body) in [("/v1/runs", json!({"input": "Hello"})), ("/v1/tools/mcp_files_read/call", json!({}))] {
        assert_eq!(eve.post(path, for_ann(body)).await.problem(), "forbidden", "{path}");
    }
    let own = eve.post("/v1/runs", json!({"input": "Hello", "principal": "eve"})).await;
    assert_eq!((own.status.as_u16(), own.text("principal")), (201, "eve"));
}
