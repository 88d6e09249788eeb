//! Runs are started, read, resumed, cancelled and listed.

use jiff::Timestamp;
use reqwest::Method;
use serde_json::{Value, json};
use toolgate::core::policy::Verdict;

use super::served::{HttpAnswer, Served};
use crate::runner::world::{Kept, given_an_agent, on_every_store, say};

on_every_store! {
    async fn a_run_without_required_actions_returns_its_answer(kept: Kept) {
        let world = given_an_agent().whose_model_says(json!([say("Hello yourself.")])).kept(kept).await;
        let served = Served::to_all(world).await;

        let created = served.post("/v1/runs", json!({"input": "Hello", "metadata": {"ticket": 9}})).await;

        assert_eq!(created.status, 201, "{created:?}");
        assert_eq!((created.text("status"), created.text("agent")), ("completed", "clerk"));
        assert_eq!(created.body["output"]["text"], "Hello yourself.");
        assert_eq!(created.body["metadata"], json!({"ticket": 9}));
        let read = served.get(created.header("location")).await;
        assert_eq!(read.body, created.body);
        let listed = served.get("/v1/runs").await;
        assert_eq!(listed.body["data"][0]["id"], created.body["id"]);
        assert_eq!(listed.body["data"][0]["title"], "Hello");
    }

    async fn an_empty_answer_is_a_warning_in_the_run(kept: Kept) {
        let world = given_an_agent().whose_model_says(json!([say(""), say("")])).kept(kept).await;
        let served = Served::to_all(world).await;

        let created = served.post("/v1/runs", json!({"input": "Hello"})).await;

        assert_eq!((created.text("status"), created.text("object")), ("completed", "run"), "{created:?}");
        assert_eq!(created.body["warnings"], json!([{"code": "empty_answer", "servers": [], "limit": null, "restart": null}]));
    }

    async fn an_external_tool_is_run_by_the_client(kept: Kept) {
        let turns = json!([{"calls": [{"name": "ext_lookup", "arguments": {"id": "77"}}]}, say("It is paid.")]);
        let world = given_an_agent().that_checks_arguments().whose_model_says(turns).kept(kept).await;
        let served = Served::to_all(world).await;
        let tool = json!({"name": "lookup", "input_schema": {"type": "object"}, "result_schema": {"type": "object"}});

        let created = served.post("/v1/runs", json!({"input": "Is 77 paid?", "external_tools": [tool]})).await;

        assert_eq!(created.text("status"), "pending", "{created:?}");
        let owed = &created.body["pending"][0];
        assert_eq!((owed["type"].as_str(), owed["tool"]["name"].as_str()), (Some("external_result"), Some("lookup")));
        assert_eq!(owed["arguments"], json!({"id": "77"}));
        let path = format!("/v1/runs/{}/resume", created.text("id"));
        let wrong = served.post(&path, json!({"answers": [{"type": "result", "call_id": owed["call_id"], "output": 5}]})).await;
        assert_eq!((wrong.status.as_u16(), wrong.problem()), (422, "validation"));
        let stale = served.post(&path, json!({"expected_version": 1})).await;
        assert_eq!((stale.status.as_u16(), stale.problem()), (409, "conflict"), "an empty resume also checks the version");
        let answer = json!({"answers": [{"type": "result", "call_id": owed["call_id"], "output": {"status": "paid"}}]});
        let resumed = served.post(&path, answer.clone()).await;
        assert_eq!((resumed.status.as_u16(), resumed.text("status")), (200, "completed"));
        let again = served.post(&path, answer).await;
        assert_eq!(again.body, resumed.body, "a repeated resume has no further effect");
    }
}

#[tokio::test]
async fn due_at_is_the_earliest_deadline_everywhere() {
    let calls = |name: &str| json!({"calls": [{"name": name}]});
    let turns = json!([calls("ext_soon"), calls("ext_ever"), say("Done.")]);
    let served = Served::to_all(given_an_agent().whose_model_says(turns).kept(Kept::InMemory).await).await;
    let body = |limits: Value| {
        let tools = json!([{"name": "soon", "deadline_s": 3600}, {"name": "ever"}]);
        json!({"input": "Hello", "external_tools": tools, "limits": limits})
    };
    let answer = |owed: &HttpAnswer| json!({"answers": [{"type": "result", "call_id": owed.body["pending"][0]["call_id"], "output": 1}]});
    let seconds = |of: &HttpAnswer| {
        let time = |field: &str| of.text(field).parse::<Timestamp>().unwrap();
        time("due_at").duration_since(time("created_at")).as_secs()
    };

    let soon = served.post("/v1/runs", body(json!({"deadline_s": 600}))).await;
    assert_eq!(seconds(&soon), 600, "the run's deadline is earlier than the answer's: {soon:?}");
    assert_eq!(served.get(soon.header("location")).await.body, soon.body);
    let owed = served.post("/v1/runs", body(json!({}))).await;
    assert_eq!(seconds(&owed), 3600);
    let ever = served.post(&format!("{}/resume", owed.header("location")), answer(&owed)).await;
    assert_eq!((ever.text("status"), &ever.body["due_at"]), ("pending", &Value::Null), "{ever:?}");
}

#[tokio::test]
async fn a_cancelled_run_stays_cancelled() {
    let turns = json!([{"calls": [{"name": "mcp_files_delete"}]}, say("Done.")]);
    let world = given_an_agent()
        .with_tools("files", &["delete"])
        .whose_policy_says(Verdict::Ask, "mcp_files_delete")
        .whose_model_says(turns)
        .kept(Kept::InMemory)
        .await;
    let served = Served::to_all(world).await;
    let run = served.run(json!({"input": "Delete it"})).await;
    let path = format!("/v1/runs/{run}/cancel");

    let cancelled = served.post(&path, json!({"reason": "never mind"})).await;

    assert_eq!(cancelled.text("status"), "cancelled");
    assert_eq!(served.post(&path, json!({})).await.body, cancelled.body);
    let late = served
        .post(&format!("/v1/runs/{run}/resume"), json!({"answers": [{"type": "result", "call_id": "x", "output": 1}]}))
        .await;
    assert_eq!((late.status.as_u16(), late.problem()), (409, "conflict"));
}

#[tokio::test]
async fn an_invalid_request_is_refused_with_a_pointer() {
    let world = given_an_agent().kept(Kept::InMemory).await;
    let served = Served::to_all(world).await;
    let refused = async |body: serde_json::Value| {
        let answer = served.post("/v1/runs", body).await;
        assert_eq!((answer.status.as_u16(), answer.problem()), (400, "invalid_request"), "{answer:?}");
        (answer.body["errors"][0]["pointer"].as_str().unwrap().to_owned(), answer.text("detail").to_owned())
    };
    let (_, unknown) = refused(json!({"input": "Hello", "sesion_id": "s"})).await;
    assert!(unknown.contains("sesion_id") && unknown.contains("session_id"), "{unknown}");
    assert_eq!(refused(json!({"input": 5})).await.0, "/input");
    let (pointer, _) = refused(json!({"input": "x", "external_tools": [{"name": "a"}, {"name": 5}]})).await;
    assert_eq!(pointer, "/external_tools/1/name");
    let unknown = served.post("/v1/runs", json!({"agent": "unknown", "input": "x"})).await;
    assert_eq!((unknown.status.as_u16(), unknown.problem()), (422, "validation"));
    assert_eq!(unknown.body["errors"][0]["pointer"], "/agent");
    let form = served
        .request(Method::POST, "/v1/runs")
        .header("content-type", "application/x-www-form-urlencoded")
        .body("input=x")
        .send()
        .await
        .unwrap();
    assert_eq!(HttpAnswer::of(form).await.problem(), "unsupported_media_type");
    assert_eq!(served.get("/v1/runs/run_unknown").await.problem(), "not_found");
    assert_eq!(served.get("/v2/runs").await.problem(), "not_found");
    let delete = served.request(Method::DELETE, "/v1/runs").send().await.unwrap();
    assert_eq!(HttpAnswer::of(delete).await.problem(), "method_not_allowed");
    assert_eq!(served.get("/v1/runs?limit=0").await.problem(), "invalid_request");
    assert_eq!(served.get("/v1/runs?after=run_of_unknown").await.problem(), "validation");
    assert_eq!(served.get("/v1/runs?colour=red").await.problem(), "invalid_request");
}

#[tokio::test]
async fn a_schema_that_cannot_be_used_is_refused_before_anything_runs() {
    let world = given_an_agent().that_checks_by_schema().kept(Kept::InMemory).await;
    let served = Served::to_all(world).await;
    let broken = json!({"type": "strin"});
    for (field, given, pointer) in [
        (
            "external_tools",
            json!([{"name": "a"}, {"name": "b", "input_schema": {"type": "object", "properties": {"x": broken}}}]),
            "/external_tools/1",
        ),
        ("external_tools", json!([{"name": "b", "result_schema": broken}]), "/external_tools/0"),
        ("output_schema", broken.clone(), "/output_schema"),
    ] {
        let answer = served.post("/v1/runs", json!({"input": "Hello", field: given})).await;
        assert_eq!((answer.status.as_u16(), answer.problem()), (422, "validation"), "{answer:?}");
        assert_eq!(answer.body["errors"][0]["pointer"], pointer, "{answer:?}");
        assert!(answer.text("detail").contains("strin"), "{answer:?}");
    }
    assert_eq!(served.get("/v1/runs").await.body["data"], json!([]));
}

/// The first words of the runs in a list.
fn listed(page: &HttpAnswer) -> Vec<&str> {
    assert_eq!(page.status, 200, "{page:?}");
    page.body["data"].as_array().unwrap().iter().map(|run| run["title"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn lists_have_filters_an_order_and_cursors_in_both_directions() {
    let world = given_an_agent().whose_model_says(json!([say("Yes.")])).kept(Kept::InAFile).await;
    let served = Served::to_all(world).await;
    let mut ids = Vec::new();
    for (number, principal) in [(0, "ann"), (1, "bob"), (2, "ann"), (3, "ann"), (4, "bob")] {
        let metadata = json!({"ticket": number % 2, "kind": "re & fund"});
        let body = json!({"input": format!("Order {number}"), "principal": principal, "metadata": metadata});
        ids.push(served.run(body).await);
    }
    let list = async |query: &str| served.get(&format!("/v1/runs?{query}")).await;

    let ann = list("principal=ann&status=completed,failed").await;
    assert_eq!(listed(&ann), ["Order 3", "Order 2", "Order 0"]);
    assert_eq!(ann.body["data"][0]["principal"], "ann");
    assert_eq!(ann.body["data"][0]["metadata"], json!({"ticket": 1, "kind": "re & fund"}));
    let metadata = "metadata=%7B%22ticket%22:0,%22kind%22:%22re%20%26%20fund%22%7D";
    assert_eq!(listed(&list(&format!("{metadata}&principal=ann")).await), ["Order 2", "Order 0"]);
    assert_eq!(listed(&list("title=oRDER%202").await), ["Order 2"]);
    assert_eq!(listed(&list("status=pending,running").await), [""; 0]);
    assert_eq!(listed(&list("created_after=2020-01-01T00:00:00Z&created_before=2020-01-02T00:00:00Z").await), [""; 0]);
    assert_eq!(listed(&list("created_after=2020-01-01T00:00:00Z&limit=1").await), ["Order 4"]);

    let oldest = list("order=asc&limit=2").await;
    assert_eq!((listed(&oldest), &oldest.body["has_more"]), (vec!["Order 0", "Order 1"], &json!(true)));
    let next = list(&format!("order=asc&limit=2&after={}", oldest.text("last_id"))).await;
    assert_eq!(listed(&next), ["Order 2", "Order 3"]);
    let back = list(&format!("order=asc&limit=2&before={}", next.text("first_id"))).await;
    assert_eq!((listed(&back), &back.body["has_more"]), (listed(&oldest), &json!(false)));
    let above = list(&format!("limit=2&before={}", ids[0])).await;
    assert_eq!((listed(&above), &above.body["has_more"]), (vec!["Order 2", "Order 1"], &json!(true)));

    for (query, parameter) in [
        ("status=done", "status"),
        ("status=", "status"),
        ("metadata=9", "metadata"),
        ("metadata=%7B%7D", "metadata"),
        ("metadata=%7B%22a%22:null%7D", "metadata"),
        ("metadata=%7B%22a%22:1.5%7D", "metadata"),
        ("title=", "title"),
        ("created_after=yesterday", "created_after"),
        ("created_before=2026", "created_before"),
        ("order=up", "order"),
        ("before=run_unknown", "before"),
        ("after=run_unknown", "after"),
        (&format!("after={}&before={}", ids[0], ids[1]), "before"),
    ] {
        let refused = list(query).await;
        assert!(["invalid_request", "validation"].contains(&refused.problem()), "{query}: {refused:?}");
        assert!(refused.text("detail").contains(parameter), "{query}: {refused:?}");
    }
}
