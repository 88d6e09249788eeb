//! Agents: they are listed, only administrators see their instructions, and aliases are other names of them (row 1.29).

use serde_json::json;
use toolgate::core::policy::Verdict;

use super::principals::{self, Person};
use super::served::Served;
use crate::runner::world::{Kept, given_an_agent, say};

#[tokio::test]
async fn only_administrators_see_the_instructions_of_agents() {
    let clerk = given_an_agent()
        .with_tools("files", &["read"])
        .whose_policy_says(Verdict::Ask, "*")
        .that(|agent| agent.instructions = "Be brief.".into());
    let served = principals::served(clerk.kept(Kept::InMemory).await).await;
    let tim = Person { served: &served, badge: "tim acme tools:read" };
    let root = Person { served: &served, badge: "root acme all" };

    let listed = tim.get("/v1/agents").await;
    let shown = &listed.body["data"][0];
    assert_eq!(
        (&shown["id"], &shown["model"], &shown["servers"]),
        (&json!("clerk"), &json!("scripted"), &json!(["files"]))
    );
    assert_eq!((&shown["policy"]["name"], shown.get("instructions")), (&json!("allow"), None));
    assert_eq!(tim.get("/v1/agents/clerk").await.body, *shown);
    assert_eq!(root.get("/v1/agents/clerk").await.text("instructions"), "Be brief.");
    assert_eq!(tim.get("/v1/agents/unknown").await.problem(), "not_found");
    let ann = Person { served: &served, badge: "ann acme runs:write" };
    for path in ["/v1/agents", "/v1/agents/clerk", "/v1/models", "/v1/servers", "/v1/servers/files"] {
        assert_eq!(ann.get(path).await.problem(), "forbidden", "{path}");
    }
    assert_eq!(tim.post("/v1/servers/files/restart", json!({})).await.problem(), "forbidden");
    assert_eq!(tim.get("/v1/servers/files").await.problem(), "not_found", "this gateway has no servers");
    assert_eq!(tim.get("/v1/models").await.body, json!({"object": "list", "data": []}));
}

#[tokio::test]
async fn a_run_that_is_requested_by_an_alias_is_one_of_the_agent() {
    let world = given_an_agent().that(|agent| agent.aliases = vec!["helper".into()]);
    let world = world.whose_model_says(json!([say("Hi.")])).kept(Kept::InMemory).await;
    let served = Served::to_all(world).await;

    let run = served.post("/v1/runs", json!({"agent": "helper", "input": "Hello"})).await;

    assert_eq!((run.text("status"), run.text("agent")), ("completed", "clerk"));
    assert_eq!(served.get("/v1/agents").await.body["data"].as_array().unwrap().len(), 1);
    assert_eq!(served.get("/v1/agents/helper").await.text("id"), "clerk");
}
