//! Model options and instructions of one run.

use serde_json::{Value, json};
use toolgate::models::{Settings, openai_chat};

use super::served::Served;
use crate::models::model_server::{ModelServer, Prepared};
use crate::runner::world::{Given, Kept, given_an_agent, say};

const HI: &str = r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}"#;

fn with_the_model_at(server: &ModelServer) -> Given {
    let settings = Settings { stream: false, temperature: Some(0.1), ..Settings::new(&server.base_url, "m") };
    given_an_agent().with_the_model(openai_chat::model(&settings).unwrap())
}

#[tokio::test]
async fn the_options_of_a_run_hold_for_it_and_its_retry_and_for_no_other_run() {
    let server = ModelServer::answering([HI; 3].map(Prepared::json)).await;
    let world = with_the_model_at(&server).kept(Kept::InAFile).await;
    let served = Served::to_all(world).await;
    let body = json!({"input": "Hello", "temperature": 0.5, "max_output_tokens": 100, "parallel_tool_calls": true,
        "tool_choice": "auto"});

    let run = served.run(body).await;
    let retried = served.post(&format!("/v1/runs/{run}/retry"), json!({})).await;
    served.run(json!({"input": "Hello"})).await;

    assert_eq!(retried.status, 201, "{retried:?}");
    let asked: Vec<Value> = server.asked().iter().map(|asked| asked.json()).collect();
    let sent: Vec<_> = asked.iter().map(|body| (&body["temperature"], &body["max_tokens"])).collect();
    let (own, none) = (json!(0.1), Value::Null);
    let (warm, few) = (json!(0.5), json!(100));
    assert_eq!(sent, [(&warm, &few), (&warm, &few), (&own, &none)]);
}

#[tokio::test]
async fn options_that_a_model_does_not_support_are_refused_at_their_fields() {
    let world = given_an_agent().whose_model_says(json!([say("Hi.")])).kept(Kept::InMemory).await;
    let served = Served::to_all(world).await;
    for (option, pointer) in [
        (json!({"temperature": 0.5}), "/temperature"),
        (json!({"max_output_tokens": 5}), "/max_output_tokens"),
        (json!({"tool_choice": "required"}), "/tool_choice"),
        (json!({"parallel_tool_calls": false}), "/parallel_tool_calls"),
        (json!({"temperature": 3}), "/temperature"),
        (json!({"instructions": "Be brief."}), "/instructions"),
    ] {
        let mut body = option.clone();
        body["input"] = json!("Hello");
        let refused = served.post("/v1/runs", body).await;
        assert_eq!((refused.status.as_u16(), refused.problem()), (422, "validation"), "{option}");
        assert_eq!(refused.body["errors"][0]["pointer"], pointer, "{refused:?}");
    }
    assert_eq!(served.get("/v1/runs").await.body["data"], json!([]));
}

#[tokio::test]
async fn instructions_of_a_run_follow_those_of_an_agent_that_allows_them() {
    let server = ModelServer::answering([HI; 2].map(Prepared::json)).await;
    let given = with_the_model_at(&server);
    let world = given.that(|agent| (agent.instructions, agent.run_instructions) = ("You help.".into(), true));
    let served = Served::to_all(world.kept(Kept::InMemory).await).await;

    let run = served.run(json!({"input": "Hello", "instructions": "Be brief.\n", "session_id": "chat"})).await;
    served.run(json!({"input": "Again", "session_id": "chat"})).await;

    let asked = server.asked();
    let system = |at: usize| asked[at].json()["messages"][0]["content"].clone();
    assert_eq!((system(0), system(1)), (json!("You help.\n\nBe brief."), json!("You help.")), "{run}");
    assert_eq!(served.get("/v1/agents/clerk").await.body["run_instructions"], true);
}
