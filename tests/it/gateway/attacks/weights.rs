//! Requests that are small to send and expensive to handle.

use serde_json::{Value, json};

use crate::gateway::served::Served;
use crate::runner::world::{Kept, given_an_agent, say};

async fn served() -> Served {
    let given = given_an_agent().that_checks_answers().whose_model_says(json!([say("Hi."), say("Hi.")]));
    Served::to_all(given.kept(Kept::InMemory).await).await
}

#[tokio::test]
async fn names_with_control_characters_are_refused() {
    let served = served().await;
    let long = "s".repeat(257);
    for (field, name) in [("session_id", "a\nb"), ("session_id", &long), ("principal", "\u{1b}[2J"), ("session_id", "")]
    {
        let refused = served.post("/v1/runs", json!({"input": "Hello", field: name})).await;
        assert_eq!(refused.problem(), "validation", "{field} {name:?}");
        assert_eq!(refused.body["errors"][0]["pointer"], format!("/{field}"));
    }
    served.run(json!({"input": "Hello", "session_id": "s".repeat(256)})).await;
}

#[tokio::test]
async fn a_request_with_more_tools_than_any_model_takes_is_refused() {
    let served = served().await;
    let tools = |count: usize| (0..count).map(|number| json!({"name": format!("t{number}")})).collect::<Value>();
    let refused = served.post("/v1/runs", json!({"input": "Hello", "external_tools": tools(50_000)})).await;
    assert_eq!(refused.problem(), "validation");
    assert_eq!(refused.body["errors"][0]["pointer"], "/external_tools");
}

#[tokio::test]
async fn schemas_that_would_fill_the_memory_are_refused() {
    let served = served().await;
    let heavy = |number: usize| (format!("p{number}"), json!({"pattern": "^\\pL{500}$"}));
    let schema = json!({"type": "object", "properties": (0..2000).map(heavy).collect::<serde_json::Map<_, _>>()});
    let as_output = served.post("/v1/runs", json!({"input": "Hello", "output_schema": schema})).await;
    assert!(!as_output.status.is_server_error() && as_output.body["status"] != "completed", "{as_output:?}");
    let deep = format!(r#"{{"input": "Hello", "metadata": {}1{}}}"#, r#"{"a":"#.repeat(5000), "}".repeat(5000));
    let deep = served.request(reqwest::Method::POST, "/v1/runs").header("content-type", "application/json").body(deep);
    assert_eq!(deep.send().await.unwrap().status(), 400);
    served.run(json!({"input": "Hello"})).await;
}

#[tokio::test]
async fn extreme_numbers_break_nothing() {
    let turns = json!([{"calls": [{"name": "ext_lookup"}]}]);
    let served = Served::to_all(given_an_agent().whose_model_says(turns).kept(Kept::InMemory).await).await;
    let most = u64::MAX;
    let run = served.run(json!({
        "input": "Hello",
        "external_tools": [{"name": "lookup", "deadline_s": most, "priority": i32::MIN}],
        "limits": {"deadline_s": most},
    }));
    let run = run.await;
    for body in [
        json!({"input": "Hello", "external_tools": [{"name": "lookup", "priority": i64::MAX}]}),
        json!({"input": "Hello", "limits": {"deadline_s": -1}}),
        json!({"input": "Hello", "limits": {"deadline_s": 1e300}}),
    ] {
        assert_eq!(served.post("/v1/runs", body.clone()).await.problem(), "invalid_request", "{body}");
    }
    let fork = served.post(&format!("/v1/runs/{run}/fork"), json!({"at": most})).await;
    assert_eq!(fork.problem(), "validation");
    for query in ["events?after=18446744073709551615", "messages?after=18446744073709551615"] {
        let answer = served.get(&format!("/v1/runs/{run}/{query}")).await;
        assert!(!answer.status.is_server_error(), "{query}: {answer:?}");
    }
}

#[tokio::test]
async fn oversized_resumes_are_refused_with_a_bounded_report() {
    let clerk = given_an_agent().whose_model_says(json!([{"calls": [{"name": "ext_order"}]}, say("Done.")]));
    let served = Served::to_all(clerk.kept(Kept::InMemory).await).await;
    let run = served.run(json!({"input": "Hello", "external_tools": [{"name": "order"}]})).await;
    let results = |count: usize| -> Value {
        let results = (0..count).map(|number| json!({"type": "result", "call_id": format!("c{number}"), "output": 1}));
        json!({"answers": results.collect::<Value>()})
    };
    let resume = format!("/v1/runs/{run}/resume");

    let heavy = served.post(&resume, results(1001)).await;
    assert_eq!((heavy.problem(), &heavy.body["errors"][0]["pointer"]), ("validation", &json!("/answers")));
    let many = served.post(&resume, results(1000)).await;
    assert_eq!(many.body["errors"].as_array().unwrap().len(), 100, "{many:?}");
    let one = json!({"type": "result", "call_id": "c", "output": 1});
    let twice = served.post(&resume, json!({"answers": [one, one]})).await;
    assert!(twice.text("detail").contains("answered twice"), "{twice:?}");
}
