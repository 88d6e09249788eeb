//! Retries over HTTP: a run takes the place of an ended one in its session.

use reqwest::Method;
use serde_json::{Value, json};

use super::principals::{self, Person};
use super::served::{HttpAnswer, Served};
use super::streamed::{Stream, events};
use crate::runner::world::{Given, Kept, given_an_agent, on_every_store, say};

fn chat(text: &str) -> Value {
    json!({"input": text, "session_id": "chat-77"})
}

fn talker() -> Given {
    given_an_agent().whose_model_says(json!([say("One."), say("Two."), say("Three.")]))
}

/// The messages of the session, each with its run.
fn texts(messages: &HttpAnswer) -> Vec<(String, String)> {
    let messages = messages.body["data"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    messages.map(|message| (text(&message["run_id"]), text(&message["content"][0]["text"]))).collect()
}

on_every_store! {
    async fn row_4_23_a_retry_takes_the_place_of_its_run_in_the_session(kept: Kept) {
        let served = Served::to_all(talker().kept(kept).await).await;
        let first = served.run(chat("First")).await;
        let second = served.run(chat("Second")).await;
        let before = served.get(&format!("/v1/runs/{second}")).await.body;

        let retried = served.post(&format!("/v1/runs/{second}/retry"), json!({"metadata": {"try": 2}})).await;

        assert_eq!((retried.status.as_u16(), retried.text("status")), (201, "completed"), "{retried:?}");
        assert_eq!((retried.text("retry_of"), retried.text("session_id")), (second.as_str(), "chat-77"));
        assert_eq!((&retried.body["metadata"], &retried.body["forked_from"]), (&json!({"try": 2}), &json!(null)));
        assert_eq!(retried.header("location"), format!("/v1/runs/{}", retried.text("id")));
        assert_eq!(served.get(&format!("/v1/runs/{second}")).await.body, before, "its source has not changed");
        let messages = texts(&served.get("/v1/sessions/chat-77/messages").await);
        let run = retried.text("id");
        let expected = [(first.as_str(), "First"), (&first, "One."), (run, "Second"), (run, "Two.")];
        assert_eq!(messages, expected.map(|(run, text)| (run.to_owned(), text.to_owned())));
        assert_eq!(served.get("/v1/sessions/chat-77").await.body["head"]["id"], run);
    }
}

#[tokio::test]
async fn a_retry_asks_a_model_of_the_agent_that_it_names_unless_the_run_has_a_reply() {
    let given = given_an_agent().whose_model_says(json!([{"fail": {"code": "provider_rejected"}}, say("One.")]));
    let backup = json!([say("Ho."), say("Again.")]);
    let served = Served::to_all(given.with_a_fallback("backup", backup).kept(Kept::InMemory).await).await;
    let failed = served.run(chat("First")).await;
    let unknown = served.post(&format!("/v1/runs/{failed}/retry"), json!({"model": "other"})).await;
    assert_eq!((unknown.problem(), &unknown.body["errors"][0]["pointer"]), ("validation", &json!("/model")));

    let retried = served.post(&format!("/v1/runs/{failed}/retry"), json!({"model": "backup"})).await;
    assert_eq!(retried.body["output"]["text"], "Ho.", "{retried:?}");

    let replied = retried.text("id");
    let again = json!({"model": "clerk", "message": "More"});
    let unknown = served.post(&format!("/v1/runs/{replied}/retry"), again).await;
    assert_eq!(unknown.problem(), "validation");
    let again = json!({"model": "scripted", "message": "More"});
    let going_on = served.post(&format!("/v1/runs/{replied}/retry"), again).await;
    assert_eq!(going_on.body["output"]["text"], "Again.", "the model of the reply goes on: {going_on:?}");
}

#[tokio::test]
async fn a_retry_of_an_earlier_run_reads_the_latest_as_current() {
    let served = Served::to_all(talker().kept(Kept::InMemory).await).await;
    let first = served.run(chat("First")).await;
    let second = served.run(chat("Second")).await;

    let refused = served.post(&format!("/v1/runs/{first}/retry"), json!({})).await;

    assert_eq!((refused.status.as_u16(), refused.problem()), (409, "conflict"));
    assert_eq!(refused.text("detail"), format!("run `{first}` is not the latest of its session; fork it"));
    let version = served.get(&format!("/v1/runs/{second}")).await.body["version"].clone();
    let current = json!({"object": "run", "id": second, "status": "completed", "version": version});
    assert_eq!((&refused.body["current"], &refused.body["retryable"]), (&current, &json!(false)));
}

#[tokio::test]
async fn a_retry_of_a_live_run_is_a_conflict_with_its_state() {
    let world = given_an_agent().whose_model_says(json!([{"calls": [{"name": "ext_order"}]}]));
    let served = Served::to_all(world.kept(Kept::InMemory).await).await;
    let new = json!({"input": "Order", "external_tools": [{"name": "order"}]});
    let live = served.run(new).await;

    let refused = served.post(&format!("/v1/runs/{live}/retry"), json!({})).await;

    assert_eq!((refused.status.as_u16(), refused.problem()), (409, "conflict"));
    assert_eq!((&refused.body["current"]["id"], &refused.body["current"]["status"]), (&json!(live), &json!("pending")));
}

#[tokio::test]
async fn a_retry_is_streamed_from_its_first_own_event() {
    let served = Served::to_all(talker().kept(Kept::InMemory).await).await;
    let source = served.run(chat("First")).await;
    let path = format!("/v1/runs/{source}/retry");

    let told = Stream::of(served.request(Method::POST, &path).json(&json!({"message": "More"}))).await.rest().await;

    assert_eq!((events(&told)[0], *events(&told).last().unwrap()), ("execution.resumed", "execution.completed"));
}

#[tokio::test]
async fn an_invalid_retry_is_refused_with_a_pointer() {
    let served = Served::to_all(talker().kept(Kept::InMemory).await).await;
    let source = served.run(chat("First")).await;
    for (body, code, pointer) in [
        (json!({"limits": {"max_iterations": 999_999}}), "validation", "/limits/max_iterations"),
        (json!({"message": " "}), "validation", "/message"),
        (json!({"at": 1}), "invalid_request", "/at"),
    ] {
        let refused = served.post(&format!("/v1/runs/{source}/retry"), body.clone()).await;
        assert_eq!(refused.problem(), code, "{body}");
        assert_eq!(refused.body["errors"][0]["pointer"], pointer, "{body} {refused:?}");
    }
}

#[tokio::test]
async fn a_retry_by_another_caller_is_theirs() {
    let served = principals::served(talker().kept(Kept::InMemory).await).await;
    let ann = Person { served: &served, badge: "key:ann acme all" };
    let eve = Person { served: &served, badge: "key:eve acme all" };
    let source = ann.post("/v1/runs", chat("First")).await;

    let retried = eve.post(&format!("/v1/runs/{}/retry", source.text("id")), json!({})).await;

    assert_eq!((source.text("created_by"), retried.text("created_by")), ("key:ann", "key:eve"), "{retried:?}");
}
