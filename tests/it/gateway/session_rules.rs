//! Rules of requests about sessions: conditions, scopes, names, and the sessions of runs without one (issue 39, row 22).

use reqwest::Method;
use serde_json::{Value, json};

use super::principals::{self, Person};
use super::served::{HttpAnswer, Served};
use crate::runner::world::{Kept, given_an_agent, on_every_store, say};

const ANN: &str = "key:ann acme all";

async fn served(kept: Kept) -> Served {
    let turns = json!([say("One."), say("Two."), say("Three."), say("Four."), say("Five.")]);
    principals::served(given_an_agent().whose_model_says(turns).kept(kept).await).await
}

/// A request of ann with a condition.
async fn conditional(served: &Served, method: Method, path: &str, condition: &str, body: Value) -> HttpAnswer {
    let request = served.request(method, path).header("x-badge", ANN).header("if-match", condition);
    HttpAnswer::of(request.json(&body).send().await.unwrap()).await
}

fn texts(answer: &HttpAnswer) -> Vec<&str> {
    let messages = answer.body["data"].as_array().unwrap();
    messages.iter().map(|message| message["content"][0]["text"].as_str().unwrap()).collect()
}

on_every_store! {
    async fn every_change_of_a_session_or_run_obeys_its_condition(kept: Kept) {
        let served = served(kept).await;
        let ann = Person { served: &served, badge: ANN };
        let run = ann.post("/v1/runs", json!({"input": "First", "session_id": "chat-77"})).await;
        let run = format!("/v1/runs/{}", run.text("id"));
        let session = "/v1/sessions/chat-77".to_owned();
        let runs_before = ann.get("/v1/runs").await.body["data"].as_array().unwrap().len();

        for stale in ["\"9.9\"", "\"seven\"", "W/\"1\""] {
            for (method, path, body) in [
                (Method::DELETE, run.clone(), json!({})),
                (Method::POST, format!("{run}/fork"), json!({})),
                (Method::POST, format!("{run}/retry"), json!({})),
                (Method::DELETE, session.clone(), json!({})),
                (Method::POST, format!("{session}/compact"), json!({})),
                (Method::POST, format!("{session}/runs"), json!({"input": "Second"})),
                (Method::PATCH, session.clone(), json!({"title": "Late"})),
            ] {
                let refused = conditional(&served, method.clone(), &path, stale, body).await;
                let problem = (refused.status.as_u16(), refused.problem());
                assert_eq!(problem, (412, "precondition_failed"), "{method} {path} {stale}: {refused:?}");
                assert!(refused.body["current"].is_object(), "{method} {path}: {refused:?}");
            }
        }
        assert_eq!(ann.get("/v1/runs").await.body["data"].as_array().unwrap().len(), runs_before);

        let seen = ann.get(&session).await.header("etag").to_owned();
        let second = conditional(&served, Method::POST, &format!("{session}/runs"), &seen, json!({"input": "Second"})).await;
        assert_eq!(second.status, 201, "{second:?}");
        let again = conditional(&served, Method::POST, &format!("{session}/runs"), &seen, json!({"input": "Again"})).await;
        assert_eq!(again.status, 412, "{again:?}");
        let latest = format!("/v1/runs/{}", second.text("id"));
        let retry = conditional(&served, Method::POST, &format!("{latest}/retry"), second.header("etag"), json!({})).await;
        assert_eq!(retry.status, 201, "{retry:?}");
        let seen = ann.get(&session).await.header("etag").to_owned();
        assert_eq!(conditional(&served, Method::DELETE, &session, &seen, json!({})).await.status, 204);
        assert_eq!(conditional(&served, Method::DELETE, &session, &seen, json!({})).await.status, 204, "a repeat");
    }

    async fn a_run_without_a_session_is_a_session_of_its_own(kept: Kept) {
        let served = served(kept).await;
        let ann = Person { served: &served, badge: ANN };
        let lone = ann.post("/v1/runs", json!({"input": "First"})).await;
        let path = format!("/v1/sessions/{}", lone.text("session_id"));

        let read = ann.get(&path).await;

        assert_eq!((read.status.as_u16(), read.text("title"), &read.body["runs"]), (200, "First", &json!(1)), "{read:?}");
        assert_eq!((read.text("status"), &read.body["head"]["id"]), ("idle", &lone.body["id"]));
        assert_eq!(texts(&ann.get(&format!("{path}/messages")).await), ["First", "One."]);
        assert_eq!(ann.get("/v1/sessions").await.body["data"], json!([]));
        let titled = conditional(&served, Method::PATCH, &path, read.header("etag"), json!({"title": "Refund"})).await;
        assert_eq!((titled.text("title"), &titled.body["head"]), ("Refund", &read.body["head"]), "{titled:?}");
        let second = ann.post(&format!("{path}/runs"), json!({"input": "Second"})).await;
        assert_eq!(second.status, 201, "{second:?}");
        assert_eq!(texts(&ann.get(&format!("{path}/messages")).await), ["First", "One.", "Second", "Two."]);

        let fork = ann.post(&format!("/v1/runs/{}/fork", lone.text("id")), json!({"message": "Or"})).await;
        let of_fork = ann.get(&format!("/v1/sessions/{}", fork.text("session_id"))).await;
        assert_eq!((of_fork.status.as_u16(), &of_fork.body["head"]["id"]), (200, &fork.body["id"]), "{of_fork:?}");
        let third = ann.post("/v1/runs", json!({"input": "Third"})).await;
        let path = format!("/v1/sessions/{}", third.text("id"));
        assert_eq!(ann.delete(&path).await.status, 204);
        assert_eq!(ann.get(&path).await.problem(), "gone");
        assert_eq!(ann.get(&format!("/v1/runs/{}", third.text("id"))).await.problem(), "gone");
    }
}

#[tokio::test]
async fn a_change_by_a_caller_that_may_not_read_shows_nothing() {
    let served = served(Kept::InMemory).await;
    let ann = Person { served: &served, badge: ANN };
    ann.post("/v1/sessions", json!({"id": "chat-77", "title": "A secret", "metadata": {"a": "secret"}})).await;

    for body in [json!({}), json!({"metadata": {"b": 1}})] {
        let request = served.request(Method::PATCH, "/v1/sessions/chat-77").header("x-badge", "key:w acme runs:write");
        let changed = request.json(&body).send().await.unwrap();
        assert_eq!((changed.status().as_u16(), changed.headers().contains_key("etag")), (204, true));
        assert_eq!(changed.text().await.unwrap(), "");
    }
    assert_eq!(ann.get("/v1/sessions/chat-77").await.body["metadata"], json!({"a": "secret", "b": 1}));
}

#[tokio::test]
async fn a_patch_has_the_media_type_of_merge_patches_too() {
    let served = served(Kept::InMemory).await;
    let ann = Person { served: &served, badge: ANN };
    ann.post("/v1/sessions", json!({"id": "chat-77"})).await;
    let send = async |method: Method, path: &str| {
        let request = served.request(method, path).header("x-badge", ANN);
        let request = request.header("content-type", "application/merge-patch+json; charset=utf-8");
        request.body(r#"{"title": "Refund"}"#).send().await.unwrap().status().as_u16()
    };
    assert_eq!(send(Method::PATCH, "/v1/sessions/chat-77").await, 200);
    assert_eq!(ann.get("/v1/sessions/chat-77").await.text("title"), "Refund");
    assert_eq!(send(Method::POST, "/v1/sessions").await, 415);
}

#[tokio::test]
async fn a_session_has_a_principal_that_runs_can_have_and_a_title_that_shows_what_it_is() {
    let served = served(Kept::InMemory).await;
    let ann = Person { served: &served, badge: ANN };
    for (wrong, pointer) in [
        (json!({"principal": ""}), "/principal"),
        (json!({"principal": "a\nb"}), "/principal"),
        (json!({"title": "a\u{202e}b"}), "/title"),
        (json!({"title": "a\u{200b}b"}), "/title"),
        (json!({"title": "a\u{85}b"}), "/title"),
    ] {
        let refused = ann.post("/v1/sessions", wrong.clone()).await;
        let problem = (refused.problem(), &refused.body["errors"][0]["pointer"]);
        assert_eq!(problem, ("validation", &json!(pointer)), "{wrong}");
    }
    let titled = ann.post("/v1/sessions", json!({"title": "Büro 👩\u{200d}💻"})).await;
    assert_eq!(titled.status, 201, "{titled:?}");

    ann.post("/v1/runs", json!({"input": "First\n\u{202e}line\u{7}", "session_id": "chat-78"})).await;
    assert_eq!(ann.get("/v1/sessions/chat-78").await.text("title"), "First line ");
    assert_eq!(ann.get("/v1/runs?session_id=chat-78").await.body["data"][0]["title"], "First line ");
}

#[tokio::test]
async fn an_array_is_no_object_anywhere_in_a_body() {
    let served = served(Kept::InMemory).await;
    let ann = Person { served: &served, badge: ANN };
    for (wrong, pointer) in [
        (json!({"input": "Hi", "limits": [2]}), "/limits"),
        (json!({"input": "Hi", "tools": [["mcp_*"]]}), "/tools"),
        (json!({"input": [["user", "Hi"]]}), "/input/0"),
        (json!({"input": [{"role": "user", "content": [["text", "Hi"]]}]}), "/input/0/content/0"),
        (json!({"input": "Hi", "external_tools": [["lookup"]]}), "/external_tools/0"),
    ] {
        let refused = ann.post("/v1/runs", wrong.clone()).await;
        let problem = (refused.problem(), &refused.body["errors"][0]["pointer"]);
        assert_eq!(problem, ("invalid_request", &json!(pointer)), "{wrong}: {refused:?}");
    }
    let run = ann.post("/v1/runs", json!({"input": "Hi"})).await;
    for (wrong, pointer) in [
        (json!(["result", "call_1", "done"]), "/answers/0"),
        (
            json!({"type": "elicitation", "call_id": "call_1", "responses": {"size": ["accept"]}}),
            "/answers/0/responses/size",
        ),
    ] {
        let resume = json!({"answers": [wrong]});
        let refused = ann.post(&format!("/v1/runs/{}/resume", run.text("id")), resume).await;
        assert_eq!(refused.body["errors"][0]["pointer"], pointer, "{refused:?}");
    }
}
