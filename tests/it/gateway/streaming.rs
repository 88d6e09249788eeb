//! Streamed requests: a run is started or resumed, and its events are the response.

use reqwest::Method;
use serde_json::json;
use toolgate::core::lifecycle::Delta;

use super::served::{HttpAnswer, Served};
use super::streamed::{Stream, events};
use crate::fakes::StreamingModel;
use crate::runner::world::{Kept, given_an_agent, say};

#[tokio::test]
async fn a_run_can_be_streamed_from_its_start_and_from_a_resume() {
    let turns = json!([
        {"calls": [{"name": "ext_lookup"}]},
        {"say": "It is paid.", "stream": {"fragments": 2}},
    ]);
    let served = Served::to_all(given_an_agent().whose_model_says(turns).kept(Kept::InAFile).await).await;
    let body = json!({"input": "Hello", "external_tools": [{"name": "lookup"}]});

    let mut begun = Stream::of(served.request(Method::POST, "/v1/runs?include=content").json(&body)).await;

    assert_eq!(begun.response.status(), 201);
    let location = begun.response.headers()["location"].to_str().unwrap().to_owned();
    let told = begun.rest().await;
    assert_eq!((events(&told)[0], *events(&told).last().unwrap()), ("execution.started", "execution.pending"));
    assert_eq!(location, format!("/v1/runs/{}", told[0].data["run_id"].as_str().unwrap()));
    assert_eq!(told[0].id.as_deref(), Some("0"));

    let call = &told.last().unwrap().data["pending"][0]["call_id"];
    let answer = json!({"answers": [{"type": "result", "call_id": call, "output": "paid"}]});
    let resume = || served.request(Method::POST, &format!("{location}/resume?include=content")).json(&answer);
    let mut resumed = Stream::of(resume()).await;
    assert_eq!(resumed.response.status(), 200);
    let rest = resumed.rest().await;
    assert_eq!((events(&rest)[0], *events(&rest).last().unwrap()), ("execution.resumed", "execution.completed"));
    assert!(events(&rest).contains(&"llm.text.delta"), "{:?}", events(&rest));

    let again = Stream::of(resume()).await.rest().await;
    let facts: Vec<_> = rest.into_iter().filter(|frame| frame.id.is_some()).collect();
    assert_eq!(again, facts, "a repeated resume has the same events");
}

#[tokio::test]
async fn a_run_continues_after_its_client_disconnects() {
    let turns = json!([{"calls": [{"name": "mcp_files_read"}]}, say("Done.")]);
    let world = given_an_agent()
        .with_tools("files", &["read"])
        .where_servers(|servers| servers.take_ms("read", 200))
        .whose_model_says(turns)
        .kept(Kept::InAFile)
        .await;
    let served = Served::to_all(world).await;
    let mut begun = Stream::of(served.request(Method::POST, "/v1/runs").json(&json!({"input": "Hello"}))).await;
    let run = begun.next().await.unwrap().data["run_id"].as_str().unwrap().to_owned();
    begun.up_to("tool.mcp.executing").await;

    drop(begun);

    let rest = served.watch(&format!("/v1/runs/{run}/events")).await.rest().await;
    assert_eq!(*events(&rest).last().unwrap(), "execution.completed");
    assert_eq!(served.world.servers.calls().len(), 1);
}

#[tokio::test]
async fn a_stream_that_begins_in_the_middle_of_a_reply_begins_with_its_text() {
    let fragments = ["It ", "is ", "päid", "."].map(|text| Delta::Text { text: text.into() });
    let (model, mut control) = StreamingModel::with(vec![fragments.to_vec()]);
    let served = Served::to_all(given_an_agent().with_the_model(model).kept(Kept::InAFile).await).await;
    let start = served.request(Method::POST, "/v1/runs").header("prefer", "respond-async");
    let run = HttpAnswer::of(start.json(&json!({"input": "Hello"})).send().await.unwrap()).await;
    let path = format!("/v1/runs/{}/events", run.text("id"));
    control.step(2, 2).await;
    let mut without = served.watch(&path).await;
    without.up_to("llm.call.started").await;

    let mut late = served.watch(&format!("{path}?include=content")).await;
    let begun = late.up_to("llm.text.delta").await;

    let [.., call, text] = &begun[..] else { panic!("{begun:?}") };
    assert_eq!((call.event.as_str(), &text.id), ("llm.call.started", &None));
    assert_eq!(text.data["text"], "It is ");
    assert_eq!((&text.data["index"], &text.data["next_index"]), (&json!(0), &json!(6)));
    let again = format!("{path}?include=content&after={}", call.id.as_deref().unwrap());
    let mut again = served.watch(&again).await;
    assert_eq!(again.next().await.as_ref(), Some(text), "a client that reconnects begins the text anew");
    control.step(3, 4).await;
    for stream in [&mut late, &mut again] {
        let rest = stream.rest().await;
        let fragments = rest.iter().filter(|frame| frame.event == "llm.text.delta");
        let positions: Vec<_> = fragments.map(|frame| (&frame.data["index"], &frame.data["text"])).collect();
        assert_eq!(positions, [(&json!(6), &json!("päid")), (&json!(10), &json!("."))]);
        assert_eq!(*events(&rest).last().unwrap(), "execution.completed");
    }
    assert!(!events(&without.rest().await).contains(&"llm.text.delta"));
}

#[tokio::test]
async fn a_run_that_is_refused_is_no_stream() {
    let served = Served::to_all(given_an_agent().kept(Kept::InMemory).await).await;
    let ask = |path: &str| served.request(Method::POST, path).header("accept", "text/event-stream");
    let refused = ask("/v1/runs").json(&json!({"input": " "})).send().await.unwrap();
    assert_eq!(HttpAnswer::of(refused).await.problem(), "validation");
    let unknown = ask("/v1/runs?inclde=content").json(&json!({"input": "Hello"})).send().await.unwrap();
    assert_eq!(HttpAnswer::of(unknown).await.problem(), "invalid_request");
}
