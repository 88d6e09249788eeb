//! Results of runs in short: summary, exit reason, duration and models, in a run and in lists.

use reqwest::Method;
use serde_json::{Value, json};
use toolgate::core::run::Limits;

use super::served::{HttpAnswer, Served};
use crate::runner::world::{Given, Kept, given_an_agent, on_every_store, say};

/// An agent with one attempt at each model, which fails at once.
fn fails(code: &str) -> Value {
    json!({"fail": {"code": code, "message": "no"}})
}

async fn answered(given: Given, kept: Kept) -> (Served, HttpAnswer) {
    let world = given.within(Limits { max_attempts: 1, ..Limits::default() }).kept(kept).await;
    let served = Served::to_all(world).await;
    let run = served.post("/v1/runs", json!({"input": "Find it"})).await;
    (served, run)
}

/// These members of a run, and of the run in the list.
async fn members(served: &Served, run: &HttpAnswer, names: &[&str]) -> Value {
    let listed = served.get("/v1/runs").await.body["data"][0].clone();
    let of = |body: &Value| names.iter().map(|name| body[name].clone()).collect::<Value>();
    assert_eq!(of(&run.body), of(&listed), "{run:?} {listed}");
    of(&listed)
}

on_every_store! {
    async fn rows_0_19_0_26_and_0_27_a_failed_run_keeps_its_last_text_and_its_exit_reason(kept: Kept) {
        let found = json!({"say": "I found A-1 so far.", "calls": [{"name": "mcp_files_read"}]});
        let given = given_an_agent().with_tools("files", &["read"]);
        let (served, run) = answered(given.whose_model_says(json!([found, fails("provider_unavailable")])), kept).await;

        assert_eq!(run.text("status"), "failed");
        let result = members(&served, &run, &["summary", "exit_code", "phase", "models"]).await;
        assert_eq!(result, json!(["I found A-1 so far.", 1, "execution", ["scripted"]]));
        let listed = served.get("/v1/runs").await.body["data"][0].clone();
        assert_eq!((&listed["error_code"], &listed["iterations"]), (&json!("provider_unavailable"), &json!(1)));
        assert!(listed["duration_ms"].is_u64() && listed["duration_ms"] == run.body["duration_ms"], "{listed}");
    }

    async fn row_0_26_the_summary_is_the_beginning_of_the_answer(kept: Kept) {
        let (served, run) = answered(given_an_agent().whose_model_says(json!([say(&"é".repeat(501))])), kept).await;

        let result = members(&served, &run, &["summary", "exit_code", "phase"]).await;
        assert_eq!(result, json!([format!("{}…", "é".repeat(499)), 0, null]));
    }

    async fn row_0_20_a_run_without_a_reply_failed_in_its_initialization(kept: Kept) {
        let (served, run) = answered(given_an_agent().whose_model_says(json!([fails("provider_auth")])), kept).await;

        let result = members(&served, &run, &["summary", "exit_code", "phase", "models"]).await;
        assert_eq!(result, json!([null, 1, "initialization", []]));
        assert_eq!(served.get("/v1/runs").await.body["data"][0]["iterations"], 0);
    }

    async fn row_0_58_a_failure_names_its_run_agent_model_and_attempt(kept: Kept) {
        let read = json!({"calls": [{"name": "mcp_files_read"}]});
        let given = given_an_agent().with_tools("files", &["read"]);
        let given = given.whose_model_says(json!([read, fails("provider_auth")]));
        let (served, run) = answered(given.with_a_fallback("backup", json!([say("Never"), fails("provider_auth")])), kept).await;

        let context = json!({"run_id": run.body["id"], "agent": "clerk", "model": "backup", "attempt": 2});
        assert_eq!(run.body["error"]["context"], context, "{run:?}");
        let path = format!("/v1/runs/{}/events?until=idle", run.text("id"));
        let events = served.request(Method::GET, &path).send().await.unwrap().text().await.unwrap();
        let failed = events.lines().filter_map(|line| line.strip_prefix("data: "));
        let failed = failed.map(|data| serde_json::from_str::<Value>(data).unwrap());
        let failed = failed.into_iter().find(|event| event["type"] == "execution.failed").unwrap();
        assert_eq!(failed["error"]["context"], context, "{failed}");
    }

    async fn row_3_26_the_models_that_replied_are_named(kept: Kept) {
        let read = json!({"calls": [{"name": "mcp_files_read"}]});
        let given = given_an_agent().with_tools("files", &["read"]);
        let given = given.whose_model_says(json!([read, fails("provider_auth")]));
        let (served, run) = answered(given.with_a_fallback("backup", json!([say("Never"), say("Done.")])), kept).await;

        assert_eq!(run.text("status"), "completed", "{run:?}");
        assert_eq!(members(&served, &run, &["models", "summary"]).await, json!([["scripted", "backup"], "Done."]));
    }

    async fn rows_0_03_and_0_04_runs_are_listed_by_trigger_and_schedule(kept: Kept) {
        let given = given_an_agent().whose_model_says(json!([say("One."), say("Two."), say("Three.")]));
        let served = Served::to_all(given.kept(kept).await).await;
        let plain = served.post("/v1/runs", json!({"input": "First"})).await;
        let nightly = served.post("/v1/runs", json!({"input": "Second", "schedule": "nightly"})).await;
        let fork = served.post(&format!("/v1/runs/{}/fork", plain.text("id")), json!({"message": "And?"})).await;

        assert_eq!((plain.text("trigger"), fork.text("trigger")), ("api", "fork"), "{fork:?}");
        assert_eq!((nightly.text("trigger"), nightly.text("schedule")), ("schedule", "nightly"));
        for (filter, run) in [
            ("trigger=api", &plain),
            ("trigger=schedule&agent=clerk", &nightly),
            ("schedule=nightly", &nightly),
            ("trigger=fork", &fork),
        ] {
            let listed = served.get(&format!("/v1/runs?{filter}")).await;
            let ids: Vec<&Value> = listed.body["data"].as_array().unwrap().iter().map(|run| &run["id"]).collect();
            assert_eq!(ids, [&run.body["id"]], "{filter}");
        }
        assert_eq!(served.get("/v1/runs?trigger=chance").await.status, 400);
        let invalid = served.post("/v1/runs", json!({"input": "x", "schedule": ""})).await;
        assert_eq!((invalid.problem(), &invalid.body["errors"][0]["pointer"]), ("validation", &json!("/schedule")));
    }

    async fn row_0_53_a_session_says_when_it_was_last_used(kept: Kept) {
        let given = given_an_agent().whose_model_says(json!([say("One.")]));
        let served = Served::to_all(given.kept(kept).await).await;
        let run = served.post("/v1/runs", json!({"input": "First", "session_id": "chat"})).await;

        let session = served.get("/v1/sessions/chat").await;
        assert_eq!(session.body["last_used_at"], run.body["updated_at"], "{session:?}");
    }
}

/// The last event of a run, with content.
async fn last_event(served: &Served, run: &HttpAnswer) -> Value {
    let path = format!("/v1/runs/{}/events?include=content&limit=100", run.text("id"));
    let page = served.request(Method::GET, &path).header("accept", "application/json").send().await.unwrap();
    HttpAnswer::of(page).await.body["data"].as_array().unwrap().last().unwrap().clone()
}

#[tokio::test]
async fn the_last_event_of_a_run_has_its_members_in_the_same_form() {
    let picture = json!({"media": [{"media_type": "image/png", "data": "iVBORw0KGgo="}]});
    for turn in [say("Done."), picture, fails("provider_auth")] {
        let (served, run) = answered(given_an_agent().whose_model_says(json!([turn])), Kept::InMemory).await;
        let event = last_event(&served, &run).await;
        let output = run.body["output"].as_object();
        let shared = ["output", "usage", "error", "warnings"].into_iter().filter(|name| event.get(*name).is_some());
        let shared: Vec<&str> = shared.inspect(|name| assert_eq!(event[*name], run.body[*name], "{name}")).collect();
        assert!(shared.contains(&"usage") && shared.len() > 1, "{event}");
        assert!(output.is_none_or(|output| output.keys().eq(["text", "value", "media"])), "{run:?}");
    }
}
