//! Pauses over HTTP (row 4.23).

use reqwest::Method;
use serde_json::{Value, json};
use toolgate::core::run::{Limits, OnExceed};

use super::principals::{self, Person};
use super::served::Served;
use crate::runner::world::{Kept, given_an_agent, on_every_store, say};

/// A run that waits for the result of an external tool.
async fn waiting(kept: Kept) -> (Served, String) {
    let turns = json!([{"calls": [{"name": "ext_lookup"}]}, say("Done.")]);
    let served = Served::to_all(given_an_agent().whose_model_says(turns).kept(kept).await).await;
    let run = served.run(json!({"input": "Hello", "external_tools": [{"name": "lookup"}]})).await;
    (served, format!("/v1/runs/{run}"))
}

fn kinds(run: &Value) -> Vec<&str> {
    run["pending"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect()
}

on_every_store! {
    async fn row_4_23_a_run_is_paused_and_continued(kept: Kept) {
        let (served, path) = waiting(kept).await;

        let paused = served.post(&format!("{path}/pause"), json!({"reason": "lunch"})).await;
        let again = served.post(&format!("{path}/pause"), json!({"reason": "dinner"})).await;

        assert_eq!((paused.text("status"), kinds(&paused.body)), ("pending", vec!["pause", "external_result"]));
        let item = &paused.body["pending"][0];
        assert_eq!((&item["reason"], item["by"].is_string(), item["requested_at"].is_string()), (&json!("lunch"), true, true));
        assert_eq!(again.body, paused.body, "a paused run does not change");
        let call = &paused.body["pending"][1]["call_id"];
        let result = json!({"answers": [{"type": "result", "call_id": call, "output": 1}]});
        let answered = served.post(&format!("{path}/resume"), result).await;
        assert_eq!(kinds(&answered.body), ["pause"], "the answer is kept");
        let done = served.post(&format!("{path}/resume"), json!({"continue": true})).await;
        assert_eq!((done.text("status"), &done.body["output"]["text"]), ("completed", &json!("Done.")));
    }

    async fn row_4_23_a_resume_answers_and_continues_at_once(kept: Kept) {
        let (served, path) = waiting(kept).await;
        let paused = served.post(&format!("{path}/pause"), json!({})).await;
        let call = &paused.body["pending"][1]["call_id"];
        let both = json!({"answers": [{"type": "result", "call_id": call, "output": 1}], "continue": true});

        let done = served.post(&format!("{path}/resume"), both.clone()).await;
        let repeated = served.post(&format!("{path}/resume"), both).await;

        assert_eq!((done.text("status"), repeated.body), ("completed", done.body.clone()));
    }
}

#[tokio::test]
async fn row_4_23_an_ended_run_is_not_paused_and_a_run_without_a_pause_not_continued() {
    let (served, path) = waiting(Kept::InAFile).await;

    let early = served.post(&format!("{path}/resume"), json!({"continue": true})).await;
    served.post(&format!("{path}/cancel"), json!({})).await;
    let late = served.post(&format!("{path}/pause"), json!({})).await;

    assert_eq!((early.status.as_u16(), early.problem()), (409, "conflict"));
    assert_eq!(
        (early.body["errors"][0]["pointer"].as_str(), early.text("detail")),
        (Some("/continue"), "the run is not paused")
    );
    assert_eq!((late.status.as_u16(), late.problem()), (409, "conflict"));
    assert_eq!(late.body["current"]["status"], "cancelled");
}

#[tokio::test]
async fn row_4_23_a_pause_is_no_approval_and_shows_in_the_events() {
    let (served, path) = waiting(Kept::InMemory).await;
    served.post(&format!("{path}/pause"), json!({"reason": "lunch"})).await;

    let approvals = served.get("/v1/approvals").await;
    let listed = served.get("/v1/runs?status=pending").await;
    served.post(&format!("{path}/resume"), json!({"continue": true})).await;
    served.post(&format!("{path}/cancel"), json!({})).await;
    let events = served.request(Method::GET, &format!("{path}/events")).send().await.unwrap().text().await.unwrap();

    assert_eq!(approvals.body["data"], json!([]));
    assert_eq!(listed.body["data"][0]["pending_counts"]["answers"], 1);
    let paused = events.find("event: execution.paused").unwrap();
    assert!(events.find("event: execution.unpaused").unwrap() > paused, "{events}");
}

#[tokio::test]
async fn row_4_23_only_the_principal_of_a_run_pauses_and_continues_it() {
    let turns = json!([{"calls": [{"name": "ext_lookup"}]}, say("Done.")]);
    let served = principals::served(given_an_agent().whose_model_says(turns).kept(Kept::InMemory).await).await;
    let ann = Person { served: &served, badge: "ann acme runs:write,runs:read ann" };
    let bob = Person { served: &served, badge: "bob acme runs:write,runs:read bob" };
    let writes = Person { served: &served, badge: "ann acme runs:write ann" };
    let run = ann.post("/v1/runs", json!({"input": "Hello", "external_tools": [{"name": "lookup"}]})).await;
    let path = format!("/v1/runs/{}", run.text("id"));

    assert_eq!(bob.post(&format!("{path}/pause"), json!({})).await.status, 403);
    assert_eq!(writes.post(&format!("{path}/pause"), json!({})).await.status, 200);
    let unchanged = writes.post(&format!("{path}/pause"), json!({})).await;
    assert_eq!(unchanged.problem(), "forbidden", "a request that changes nothing reads the run");
    assert_eq!(bob.post(&format!("{path}/resume"), json!({"continue": true})).await.status, 403);
    let continued = ann.post(&format!("{path}/resume"), json!({"continue": true})).await;
    assert_eq!(kinds(&continued.body), ["external_result"]);
}

#[tokio::test]
async fn row_3_42_a_run_that_is_paused_at_a_limit_continues_with_limits_that_a_decider_raises() {
    let turn = json!({"calls": [{"name": "mcp_files_read"}], "usage": {"input_tokens": 90, "output_tokens": 10}});
    let given = given_an_agent()
        .with_tools("files", &["read"])
        .within(Limits { max_tokens: Some(100), ..Limits::default() })
        .that(|agent| agent.rules.on_exceed = OnExceed::Ask)
        .whose_model_says(json!([turn, say("Done.")]));
    let served = principals::served(given.kept(Kept::InMemory).await).await;
    let ann = Person { served: &served, badge: "ann acme runs:write,runs:read ann" };
    let decider = Person { served: &served, badge: "ann acme runs:write,runs:read,approvals:decide ann" };
    let run = ann.post("/v1/runs", json!({"input": "Hello"})).await;
    let path = format!("/v1/runs/{}/resume", run.text("id"));
    let more = json!({"continue": true, "limits": {"max_tokens": 10000}});

    assert_eq!(kinds(&run.body), ["pause"]);
    assert!(run.body["pending"][0]["reason"].as_str().unwrap().starts_with("`max_tokens`: 100 of 100 used"));
    assert_eq!(ann.post(&path, more.clone()).await.problem(), "forbidden");
    let alone = decider.post(&path, json!({"limits": {"max_tokens": 10000}})).await;
    assert_eq!((alone.status.as_u16(), &alone.body["errors"][0]["pointer"]), (422, &json!("/limits")));
    let done = decider.post(&path, more).await;
    assert_eq!((done.text("status"), &done.body["output"]["text"]), ("completed", &json!("Done.")));
}
