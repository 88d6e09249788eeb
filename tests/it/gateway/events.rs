//! Event streams: first the events so far, then new ones, and after a disconnection exactly the next ones.

use std::collections::BTreeSet;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use toolgate::core::tool::AuthorizationStatus;
use toolgate::gateway::GatewaySettings;
use toolgate::runner::Request;
use toolgate::service::Caller;

use super::served::{HttpAnswer, Served};
use super::streamed::{events, ids};
use crate::runner::world::{Kept, World, given_an_agent, results, say};

/// Two turns with a tool, and an answer.
async fn a_world(kept: Kept) -> World {
    let turns = json!([
        {"calls": [{"name": "mcp_files_read", "arguments": {"path": "secret.txt"}}]},
        {"calls": [{"name": "mcp_files_read"}, {"name": "mcp_files_read"}]},
        {"say": "A secret answer.", "stream": {"fragments": 3}},
    ]);
    given_an_agent().with_tools("files", &["read"]).whose_model_says(turns).kept(kept).await
}

/// A run that requires a result from the client before it answers.
async fn a_world_that_waits(kept: Kept) -> World {
    let turns = json!([{"calls": [{"name": "ext_lookup"}]}, say("Thank you.")]);
    given_an_agent().with_an_external_tool("lookup").whose_model_says(turns).kept(kept).await
}

fn asks_for_lookup() -> Value {
    json!({"input": "Hello", "external_tools": [{"name": "lookup"}]})
}

fn quick(poll: u64) -> GatewaySettings {
    GatewaySettings { poll: Duration::from_millis(poll), ..GatewaySettings::default() }
}

async fn serving(world: World, settings: GatewaySettings) -> Served {
    Served::with(world, |builder| builder.anonymous(Caller::local()).settings(settings)).await
}

#[tokio::test]
async fn a_stream_of_an_ended_run_resumes_after_any_event() {
    let served = Served::to_all(a_world(Kept::InAFile).await).await;
    let run = served.run(json!({"input": "Hello"})).await;
    let path = format!("/v1/runs/{run}/events");

    let mut stream = served.watch(&path).await;
    let whole = stream.rest().await;

    assert_eq!(stream.retry.as_deref(), Some("2000"));
    assert_eq!((events(&whole)[0], *events(&whole).last().unwrap()), ("execution.started", "execution.completed"));
    let ids = ids(&whole);
    assert_eq!(ids.len(), whole.len(), "every past event has an id");
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "duplicate id: {ids:?}");
    assert!(ids.iter().any(|id| id.contains('.')), "{ids:?}");
    let (last, others) = ids.split_last().unwrap();
    for (index, id) in others.iter().enumerate() {
        assert_eq!(served.watch_after(&path, id).await.rest().await, whole[index + 1..], "after {id}");
        assert_eq!(served.watch(&format!("{path}?after={id}")).await.rest().await, whole[index + 1..], "after {id}");
    }
    let end = served.request(Method::GET, &path).header("last-event-id", *last).send().await.unwrap();
    assert_eq!(end.status(), 204, "no further event can follow");
}

#[tokio::test]
async fn events_can_be_read_in_pages() {
    let served = Served::to_all(a_world(Kept::InMemory).await).await;
    let run = served.run(json!({"input": "Hello"})).await;
    let path = format!("/v1/runs/{run}/events");
    let whole: Vec<Value> = served.watch(&path).await.rest().await.into_iter().map(|frame| frame.data).collect();

    let (mut read, mut after) = (Vec::new(), String::new());
    loop {
        let query = if after.is_empty() { "?limit=3".to_owned() } else { format!("?limit=3&after={after}") };
        let request = served.request(Method::GET, &format!("{path}{query}")).header("accept", "application/json");
        let page = HttpAnswer::of(request.send().await.unwrap()).await;
        assert_eq!((page.status.as_u16(), page.header("content-type")), (200, "application/json"));
        read.extend(page.body["data"].as_array().unwrap().iter().cloned());
        if page.body["has_more"] == false {
            break;
        }
        page.text("last_id").clone_into(&mut after);
    }

    assert_eq!(read, whole);
}

#[tokio::test]
async fn a_stream_reports_a_pending_run_and_continues_with_it() {
    let served = Served::to_all(a_world_that_waits(Kept::InAFile).await).await;
    let run = served.run(asks_for_lookup()).await;
    let path = format!("/v1/runs/{run}/events");

    let mut stream = served.watch(&path).await;
    let waits = stream.up_to("execution.pending").await.pop().unwrap();

    assert_eq!((waits.id, waits.data["pending"][0]["type"].as_str()), (None, Some("external_result")));
    let call = waits.data["pending"][0]["call_id"].clone();
    served
        .post(&format!("/v1/runs/{run}/resume"), json!({"answers": [{"type": "result", "call_id": call, "output": 1}]}))
        .await;
    let rest = stream.rest().await;
    assert_eq!((events(&rest)[0], *events(&rest).last().unwrap()), ("execution.resumed", "execution.completed"));
    let mut until_rest = served.watch(&format!("{path}?until=idle")).await;
    assert_eq!(*events(&until_rest.rest().await).last().unwrap(), "execution.completed");
}

#[tokio::test]
async fn row_0_31_a_stream_reports_each_authorization_status_of_a_server_once() {
    let turns = json!([{"calls": [{"name": "mcp_crm_look"}]}, {"calls": [{"name": "ext_lookup"}]}, say("Thank you.")]);
    let world = given_an_agent()
        .with_tools("crm", &["look"])
        .where_servers(|servers| servers.authorize("crm", AuthorizationStatus::Required, Some("no user has logged in")))
        .with_an_external_tool("lookup")
        .whose_model_says(turns)
        .kept(Kept::InMemory)
        .await;
    let served = Served::to_all(world).await;
    let run = served.run(asks_for_lookup()).await;
    let path = format!("/v1/runs/{run}/events");
    let mut stream = served.watch(&path).await;
    let call = stream.up_to("execution.pending").await.pop().unwrap().data["pending"][0]["call_id"].clone();

    served.world.servers.authorize("crm", AuthorizationStatus::Authorized, None);
    served
        .post(&format!("/v1/runs/{run}/resume"), json!({"answers": [{"type": "result", "call_id": call, "output": 1}]}))
        .await;
    let live = stream.rest().await;

    let whole = served.watch(&path).await.rest().await;
    let told: Vec<Value> = whole.into_iter().filter(|frame| frame.event == "server.auth").map(|f| f.data).collect();
    let fields = |data: &Value| (data["server"].clone(), data["status"].clone(), data["reason"].clone());
    assert_eq!(
        told.iter().map(fields).collect::<Vec<_>>(),
        [
            (json!("crm"), json!("required"), json!("no user has logged in")),
            (json!("crm"), json!("authorized"), Value::Null),
        ]
    );
    assert!(live.iter().any(|frame| frame.data == told[1]), "{live:?}");
}

#[tokio::test]
async fn a_stream_until_idle_closes_when_the_run_is_pending() {
    let served = Served::to_all(a_world_that_waits(Kept::InMemory).await).await;
    let run = served.run(asks_for_lookup()).await;
    let path = format!("/v1/runs/{run}/events?until=idle");

    let told = served.watch(&path).await.rest().await;

    assert_eq!(*events(&told).last().unwrap(), "execution.pending");
    let last = *ids(&told).last().unwrap();
    let again = served.request(Method::GET, &path).header("last-event-id", last).send().await.unwrap();
    assert_eq!(again.status(), 204, "the run is still pending");
}

#[tokio::test]
async fn a_run_that_another_process_drives_is_followed_to_its_end() {
    let served = serving(a_world_that_waits(Kept::InAFile).await, quick(20)).await;
    let elsewhere = served.world.another_process().await;
    let request = served.world.request();
    let report = elsewhere.execute(Request { ..request }).await.unwrap();
    let mut stream = served.watch(&format!("/v1/runs/{}/events", report.run_id)).await;
    stream.up_to("execution.pending").await;

    let call = report.pending[0].call_id().unwrap().to_string();
    elsewhere.resume(&report.run_id, results([(call.as_str(), json!("paid"))])).await.unwrap();

    let rest = stream.rest().await;
    assert_eq!((events(&rest)[0], *events(&rest).last().unwrap()), ("execution.resumed", "execution.completed"));
    let whole = served.watch(&format!("/v1/runs/{}/events", report.run_id)).await.rest().await;
    assert!(whole.ends_with(&rest));
}

#[tokio::test]
async fn events_have_content_only_on_request() {
    let served = Served::to_all(a_world(Kept::InMemory).await).await;
    let run = served.run(json!({"input": "A secret question"})).await;
    let path = format!("/v1/runs/{run}/events");
    let text = |frames: Vec<super::streamed::Frame>| format!("{frames:?}");

    let without = text(served.watch(&path).await.rest().await);
    let with = text(served.watch(&format!("{path}?include=content")).await.rest().await);

    assert!(!without.contains("secret"), "{without}");
    for said in ["A secret question", "secret.txt", "A secret answer."] {
        assert!(with.contains(said), "{said} in {with}");
    }
}

#[tokio::test]
async fn an_idle_stream_sends_heartbeats() {
    let settings = GatewaySettings { heartbeat: Duration::from_millis(20), ..quick(1_000) };
    let served = serving(a_world_that_waits(Kept::InMemory).await, settings).await;
    let run = served.run(asks_for_lookup()).await;
    let mut stream = served.watch(&format!("/v1/runs/{run}/events")).await;
    stream.up_to("execution.pending").await;
    let ending = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        served.post(&format!("/v1/runs/{run}/cancel"), json!({})).await;
    };

    let (rest, ()) = tokio::join!(stream.rest(), ending);

    assert_eq!(events(&rest), ["execution.cancelled"]);
    assert!(stream.comments.len() >= 3 && stream.comments.iter().all(|comment| comment == "ping"));
}

#[tokio::test]
async fn a_stopping_server_closes_streams_with_an_event() {
    let served = Served::to_all(a_world_that_waits(Kept::InMemory).await).await;
    let run = served.run(asks_for_lookup()).await;
    let mut stream = served.watch(&format!("/v1/runs/{run}/events")).await;
    stream.up_to("execution.pending").await;

    served.gateway.stop();

    assert_eq!(events(&stream.rest().await), ["server.draining"]);
}

#[tokio::test]
async fn a_client_that_falls_far_behind_misses_no_fact() {
    // More fragments than a watcher may fall behind, and more bytes than the buffers of a connection hold.
    let long = "x".repeat(150_000);
    let turns = json!([{"calls": [{"name": "ext_lookup"}]}, {"say": long, "stream": {"fragments": 150_000}}]);
    let world = given_an_agent().with_an_external_tool("lookup").whose_model_says(turns).kept(Kept::InMemory).await;
    let served = Served::to_all(world).await;
    let run = served.run(asks_for_lookup()).await;
    let path = format!("/v1/runs/{run}/events");
    let mut slow = served.watch(&format!("{path}?include=content")).await;
    let call = slow.up_to("execution.pending").await.pop().unwrap().data["pending"][0]["call_id"].clone();

    let answer = json!({"answers": [{"type": "result", "call_id": call, "output": 1}]});
    let resumed = served.post(&format!("/v1/runs/{run}/resume"), answer).await;
    assert_eq!(resumed.text("status"), "completed");

    let rest = slow.rest().await;
    let fragments = rest.iter().filter(|frame| frame.event == "llm.text.delta").count();
    assert!(fragments < 150_000, "no client fell behind, so the test showed nothing");
    let whole = served.watch(&path).await.rest().await;
    assert!(self::ids(&whole).ends_with(&ids(&rest)), "{:?}", ids(&rest));
    assert_eq!(events(&rest)[0], "execution.resumed");
}

#[tokio::test]
async fn invalid_stream_requests_are_refused() {
    let served = Served::to_all(a_world(Kept::InMemory).await).await;
    let run = served.run(json!({"input": "Hello"})).await;
    let path = format!("/v1/runs/{run}/events");
    let html = served.request(Method::GET, &path).header("accept", "text/html").send().await.unwrap();
    assert_eq!(HttpAnswer::of(html).await.problem(), "not_acceptable");
    for query in ["after=x", "after=14.0", "include=everything", "until=never", "colour=red"] {
        assert_eq!(served.get(&format!("{path}?{query}")).await.problem(), "invalid_request", "{query}");
    }
    assert_eq!(served.get(&format!("{path}?after=99999")).await.problem(), "validation");
    let nonsense = served.request(Method::GET, &path).header("last-event-id", "-1").send().await.unwrap();
    assert_eq!(HttpAnswer::of(nonsense).await.problem(), "invalid_request");
    assert_eq!(served.get("/v1/runs/run_unknown/events").await.problem(), "not_found");
}
