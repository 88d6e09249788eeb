//! Sessions over HTTP: a run with a session id continues the conversation.

use serde_json::json;

use super::principals::{self, Person};
use crate::runner::world::{Given, Kept, given_an_agent, say};

fn chat(text: &str) -> serde_json::Value {
    json!({"input": text, "session_id": "chat-77"})
}

fn talker() -> Given {
    given_an_agent().whose_model_says(json!([say("One."), say("Two."), say("Three.")]))
}

#[tokio::test]
async fn a_run_with_a_session_id_reads_the_runs_before_it() {
    let served = principals::served(talker().kept(Kept::InMemory).await).await;
    let ann = Person { served: &served, badge: "key:ann acme all" };

    assert_eq!(ann.post("/v1/runs", chat("First")).await.text("status"), "completed");
    let second = ann.post("/v1/runs", chat("Second")).await;

    let messages = ann.get(&format!("/v1/runs/{}/messages", second.text("id"))).await;
    let texts: Vec<&str> = messages.body["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["content"][0]["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["First", "One.", "Second", "Two."]);
}

#[tokio::test]
async fn a_second_run_of_a_live_session_reads_which_run_is_live() {
    let world = given_an_agent()
        .with_an_external_tool("order")
        .whose_model_says(json!([{"calls": [{"name": "ext_order"}]}, say("Ordered.")]));
    let served = principals::served(world.kept(Kept::InMemory).await).await;
    let ann = Person { served: &served, badge: "key:ann acme all" };
    let tool = json!([{"name": "order", "input_schema": {"type": "object"}}]);
    let first = json!({"input": "First", "session_id": "chat-77", "external_tools": tool});
    let first = ann.post("/v1/runs", first).await;
    assert_eq!(first.text("status"), "pending");

    let refused = ann.post("/v1/runs", chat("Second")).await;

    assert_eq!((refused.status.as_u16(), refused.problem()), (409, "conflict"));
    let current =
        json!({"object": "run", "id": first.text("id"), "status": "pending", "version": first.body["version"]});
    assert_eq!(refused.body["current"], current, "{refused:?}");
}

#[tokio::test]
async fn a_session_takes_the_new_message_alone_and_belongs_to_one_principal() {
    let served = principals::served(talker().kept(Kept::InMemory).await).await;
    let ann = Person { served: &served, badge: "key:ann acme all" };
    ann.post("/v1/runs", chat("First")).await;

    let history = json!([
        {"role": "user", "content": "First"},
        {"role": "assistant", "content": "One."},
        {"role": "user", "content": "Second"},
    ]);
    let refused = ann.post("/v1/runs", json!({"input": history, "session_id": "chat-77"})).await;
    assert_eq!(
        (refused.status.as_u16(), refused.body["errors"][0]["pointer"].as_str()),
        (422, Some("/input")),
        "{refused:?}"
    );
    let other = json!({"input": "What was said?", "session_id": "chat-77", "principal": "bob"});
    assert_eq!(ann.post("/v1/runs", other).await.problem(), "forbidden");
    let eve = Person { served: &served, badge: "key:eve evil all" };
    let alone = eve.post("/v1/runs", chat("What was said?")).await;
    let messages = eve.get(&format!("/v1/runs/{}/messages", alone.text("id"))).await;
    assert_eq!(messages.body["data"].as_array().unwrap().len(), 2, "a session of the same name in another tenant");
}
