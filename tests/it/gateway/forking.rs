//! Forks: a run that begins with a copy of another one.

use reqwest::Method;
use serde_json::json;

use super::served::Served;
use super::streamed::{Stream, events};
use crate::runner::world::{Kept, given_an_agent, on_every_store, say};

on_every_store! {
    async fn a_fork_continues_a_run_without_changing_it(kept: Kept) {
        let turns = json!([say("First."), say("Second.")]);
        let served = Served::to_all(given_an_agent().whose_model_says(turns).kept(kept).await).await;
        let source = served.run(json!({"input": "Hello", "metadata": {"ticket": 9}, "session_id": "s"})).await;
        let before = served.get(&format!("/v1/runs/{source}")).await.body;

        let path = format!("/v1/runs/{source}/fork");
        let fork = served.post(&path, json!({"message": "And now?", "metadata": {"try": 2}})).await;

        assert_eq!((fork.status.as_u16(), fork.text("status")), (201, "completed"), "{fork:?}");
        assert_eq!(fork.body["output"]["text"], "Second.");
        assert_eq!((fork.text("forked_from"), fork.text("created_by")), (source.as_str(), "local"));
        assert_eq!(fork.body["metadata"], json!({"try": 2}));
        assert_eq!(fork.header("location"), format!("/v1/runs/{}", fork.text("id")));
        assert_eq!(served.get(&format!("/v1/runs/{source}")).await.body, before);
    }
}

#[tokio::test]
async fn a_fork_is_streamed_from_its_first_own_event() {
    let turns = json!([say("First."), say("Second.")]);
    let served = Served::to_all(given_an_agent().whose_model_says(turns).kept(Kept::InMemory).await).await;
    let source = served.run(json!({"input": "Hello"})).await;
    let request = served.request(Method::POST, &format!("/v1/runs/{source}/fork")).json(&json!({"message": "More"}));

    let told = Stream::of(request).await.rest().await;

    assert_eq!((events(&told)[0], *events(&told).last().unwrap()), ("execution.resumed", "execution.completed"));
    assert_ne!(told[0].data["run_id"], source.as_str());
}

#[tokio::test]
async fn an_invalid_fork_is_refused_with_a_pointer() {
    let served =
        Served::to_all(given_an_agent().whose_model_says(json!([say("Hi.")])).kept(Kept::InMemory).await).await;
    let source = served.run(json!({"input": "Hello"})).await;
    let path = format!("/v1/runs/{source}/fork");
    let ending = served.get(&format!("/v1/runs/{source}")).await.body["version"].clone();
    for (body, code, pointer) in [
        (json!({"at": 0}), "validation", "/at"),
        (json!({"at": 999}), "validation", "/at"),
        (json!({"at": ending}), "validation", "/at"),
        (json!({"at": ending.as_u64().unwrap() - 1}), "validation", "/at"),
        (json!({"limits": {"max_iterations": 999_999}}), "validation", "/limits/max_iterations"),
        (json!({"message": " "}), "validation", "/message"),
        (json!({"at": "x"}), "invalid_request", "/at"),
        (json!({"at": 1.5}), "invalid_request", "/at"),
    ] {
        let refused = served.post(&path, body.clone()).await;
        assert_eq!(refused.problem(), code, "{body}");
        assert_eq!(refused.body["errors"][0]["pointer"], pointer, "{body}");
    }
}

#[tokio::test]
async fn a_fork_has_limits_and_a_budget_of_its_own() {
    let turns = json!([say("First."), say("Second.")]);
    let served = Served::to_all(given_an_agent().whose_model_says(turns).kept(Kept::InMemory).await).await;
    let source = served.run(json!({"input": "Hello"})).await;
    let body = json!({"message": "More", "limits": {"max_iterations": 3}});

    let fork = served.post(&format!("/v1/runs/{source}/fork"), body).await;

    assert_eq!((fork.text("status"), &fork.body["output"]["text"]), ("completed", &json!("Second.")), "{fork:?}");
    assert_eq!((&fork.body["budget"]["iterations"], &fork.body["budget"]["max_iterations"]), (&json!(1), &json!(3)));
}
