//! The event stream of a tenant: the events of all of its runs, whichever process records them, each once.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use toolgate::core::policy::Verdict;
use toolgate::gateway::GatewaySettings;
use toolgate::service::{Caller, Service};

use super::principals::{self, Person};
use super::served::{HttpAnswer, Served};
use super::streamed::{Frame, Stream, events, ids};
use crate::runner::world::{Given, Kept, World, given_an_agent, results, say};

/// Every run has a call of an external tool, and an answer.
fn that_waits() -> Given {
    let turns = json!([{"calls": [{"name": "ext_lookup"}]}, say("A secret answer.")]);
    given_an_agent().with_an_external_tool("lookup").whose_model_says(turns)
}

/// Every run has a call that requires approval, and an answer.
fn guarded() -> Given {
    let turns = json!([{"calls": [{"name": "mcp_files_delete"}]}, say("Done.")]);
    let given = given_an_agent().with_tools("files", &["delete"]).whose_policy_says(Verdict::Ask, "mcp_files_delete");
    given.whose_model_says(turns)
}

fn asks_in(session: &str) -> Value {
    json!({"input": "A secret question", "external_tools": [{"name": "lookup"}], "session_id": session})
}

/// A gateway that polls often.
async fn serving(world: World) -> Served {
    let settings = GatewaySettings { poll: Duration::from_millis(20), ..GatewaySettings::default() };
    Served::with(world, |builder| builder.anonymous(Caller::local()).settings(settings)).await
}

/// The events of a run in its own stream, without those that have no id there.
async fn of_run(served: &Served, run: &str) -> Vec<Value> {
    let stream = served.watch(&format!("/v1/runs/{run}/events?until=idle")).await.rest().await;
    stream.into_iter().filter(|frame| frame.id.is_some()).map(without_id).collect()
}

fn without_id(mut frame: Frame) -> Value {
    frame.data.as_object_mut().unwrap().remove("id");
    frame.data
}

/// All events of the tenant so far, in pages.
async fn all(served: &Served, query: &str) -> Vec<Value> {
    let (mut read, mut after) = (Vec::new(), "0".to_owned());
    loop {
        let request = served.request(Method::GET, &format!("/v1/events?after={after}{query}"));
        let page = HttpAnswer::of(request.header("accept", "application/json").send().await.unwrap()).await;
        assert_eq!(page.status, 200, "{page:?}");
        read.extend(page.body["data"].as_array().unwrap().iter().cloned());
        page.text("last_id").clone_into(&mut after);
        if page.body["has_more"] == false {
            return read;
        }
    }
}

async fn answer(served: &Served, run: &str) {
    let pending = served.get(&format!("/v1/runs/{run}")).await.body["pending"].clone();
    let answer = json!({"answers": [{"type": "result", "call_id": pending[0]["call_id"], "output": 1}]});
    let resumed = served.post(&format!("/v1/runs/{run}/resume"), answer).await;
    assert_eq!(resumed.status, 200, "{resumed:?}");
}

#[tokio::test]
async fn a_stream_has_the_events_of_every_run_as_they_are_recorded() {
    let served = Served::to_all(that_waits().kept(Kept::InAFile).await).await;
    let earlier = served.run(asks_in("s0")).await;
    let mut stream = served.watch("/v1/events").await;

    let first = served.run(asks_in("s1")).await;
    let begun = stream.up_to("execution.pending").await;
    let second = served.run(asks_in("s2")).await;
    let next = stream.up_to("execution.pending").await;
    answer(&served, &first).await;
    let ended = stream.up_to("execution.completed").await;

    assert_eq!(stream.retry.as_deref(), Some("2000"));
    let whole: Vec<Frame> = [begun, next, ended].concat();
    assert_eq!(ids(&whole).len(), whole.len(), "every event has an id, also execution.pending");
    assert!(whole.iter().all(|frame| frame.data["run_id"] != earlier.as_str()), "the stream begins now");
    assert!(!format!("{whole:?}").contains("secret"), "{whole:?}");
    for run in [first, second] {
        let own = whole.iter().filter(|frame| frame.data["run_id"] == run.as_str());
        let own: Vec<Value> = own.filter(|frame| frame.event != "execution.pending").cloned().map(without_id).collect();
        assert_eq!(own, of_run(&served, &run).await, "the same events as in the stream of the run");
    }
}

#[tokio::test]
async fn a_stream_of_two_processes_resumes_after_any_event() {
    let served = serving(that_waits().kept(Kept::InAFile).await).await;
    let elsewhere = served.world.another_process().await;
    let mut stream = served.watch("/v1/events").await;
    let here = served.run(asks_in("s1")).await;
    let there = elsewhere.execute(served.world.request()).await.unwrap();
    answer(&served, &here).await;
    let call = there.pending[0].call_id().unwrap().to_string();
    elsewhere.resume(&there.run_id, results([(call.as_str(), json!("paid"))])).await.unwrap();

    let mut whole = stream.up_to("execution.completed").await;
    whole.extend(stream.up_to("execution.completed").await);

    assert!(whole.iter().any(|frame| frame.data["run_id"] == there.run_id.as_str()));
    assert!(ids(&whole).iter().any(|id| id.contains('.')), "{:?}", ids(&whole));
    // The other process serves the same store.
    let other = Service::new(elsewhere);
    let world = given_an_agent().kept(Kept::InMemory).await;
    let other = Served::over(other, world, |builder| builder.anonymous(Caller::local())).await;
    for (index, frame) in whole.iter().enumerate().take(whole.len() - 1) {
        let mut resumed = other.watch_after("/v1/events", frame.id.as_deref().unwrap()).await;
        let mut rest = Vec::new();
        for _ in index + 1..whole.len() {
            rest.push(resumed.next().await.unwrap());
        }
        assert_eq!(rest, whole[index + 1..], "after {frame:?}");
    }
    let read: Vec<Value> = whole.into_iter().map(|frame| frame.data).collect();
    assert_eq!(all(&other, "&limit=3").await, read);
}

#[tokio::test]
async fn a_client_without_an_event_resumes_where_its_stream_began() {
    let served = serving(that_waits().kept(Kept::InAFile).await).await;
    served.run(asks_in("s0")).await;
    let mut stream = served.watch("/v1/events?type=execution.failed").await;
    let beginning = stream.beginning().await;
    drop(stream);

    let run = served.run(asks_in("s1")).await;

    let missed = served.watch_after("/v1/events", &beginning).await.up_to("execution.pending").await;
    assert_eq!(events(&missed)[0], "execution.started");
    assert!(missed.iter().all(|frame| frame.data["run_id"] == run.as_str()), "{missed:?}");
}

#[tokio::test]
async fn events_are_filtered_by_session_agent_and_type() {
    let served = Served::to_all(that_waits().kept(Kept::InMemory).await).await;
    let first = served.run(asks_in("s1")).await;
    let second = served.run(asks_in("s2")).await;
    let whole = all(&served, "").await;
    let only =
        |admits: &dyn Fn(&Value) -> bool| whole.iter().filter(|event| admits(event)).cloned().collect::<Vec<_>>();

    assert_eq!(all(&served, "&session_id=s1").await, only(&|event| event["run_id"] == first.as_str()));
    assert_eq!(all(&served, "&session_id=s2&agent=clerk").await, only(&|event| event["run_id"] == second.as_str()));
    assert_eq!(all(&served, "&agent=cook").await, Vec::<Value>::new());
    let named = ["execution.started", "execution.pending"];
    let typed = all(&served, "&type=execution.started,execution.pending&limit=1").await;
    assert_eq!(typed, only(&|event| named.contains(&event["type"].as_str().unwrap())));
    assert_eq!(typed.len(), 4);
}

#[tokio::test]
async fn invalid_requests_for_events_are_refused() {
    let served = Served::to_all(that_waits().kept(Kept::InMemory).await).await;
    served.run(asks_in("s1")).await;
    for query in ["after=x", "type=", "type=execution.started,nonsense", "type=llm.text.delta", "until=idle", "limit=0"]
    {
        assert_eq!(served.get(&format!("/v1/events?{query}")).await.problem(), "invalid_request", "{query}");
    }
    assert_eq!(served.get("/v1/events?after=99999").await.problem(), "validation");
    let html = served.request(Method::GET, "/v1/events").header("accept", "text/html").send().await.unwrap();
    assert_eq!(HttpAnswer::of(html).await.problem(), "not_acceptable");
}

#[tokio::test]
async fn a_client_without_events_is_told_how_far_it_is() {
    let served = Served::to_all(that_waits().kept(Kept::InMemory).await).await;
    let mut silent = served.watch("/v1/events?type=execution.failed").await;
    let first: u64 = silent.beginning().await.parse().unwrap();
    let mut latest = 0;
    while latest < first + 1100 {
        served.run(asks_in(&format!("s{latest}"))).await;
        latest = served.watch("/v1/events").await.beginning().await.parse().unwrap();
    }

    let next: u64 = silent.beginning().await.parse().unwrap();

    assert!((first + 1024..=latest).contains(&next), "{next}");
}

#[tokio::test]
async fn a_deleted_run_has_no_events_and_hides_no_others() {
    let served = Served::to_all(that_waits().kept(Kept::InAFile).await).await;
    let deleted = served.run(asks_in("s1")).await;
    served.post(&format!("/v1/runs/{deleted}/cancel"), json!({})).await;
    let kept = served.run(asks_in("s2")).await;

    served.request(Method::DELETE, &format!("/v1/runs/{deleted}")).send().await.unwrap();

    let whole = all(&served, "").await;
    assert!(whole.iter().all(|event| event["run_id"] == kept.as_str()), "{whole:?}");
    assert_eq!(whole[0]["type"], "execution.started");
}

/// Two tenants with guarded calls, and an approver who may read nothing else.
#[tokio::test]
async fn tenants_and_scopes_bound_the_events() {
    let served = principals::served(guarded().kept(Kept::InMemory).await).await;
    let person = |badge| Person { served: &served, badge };
    let (ann, bob, eve) = ("ann acme runs:read,runs:write", "bob brim runs:read,runs:write", "eve acme approvals:read");
    let watch = |badge, path| Stream::of(served.request(Method::GET, path).header("x-badge", badge));
    let mut stream = watch(ann, "/v1/events").await;
    let mut inbox = watch(eve, "/v1/approvals/events").await;
    for badge in [bob, ann] {
        let run = person(badge).post("/v1/runs", json!({"input": "Clean up", "session_id": badge[..3]})).await;
        assert_eq!(run.status, 201, "{run:?}");
    }

    let own = stream.up_to("execution.pending").await;
    assert_eq!(own[0].data["session_id"], "ann");
    let requested = inbox.next().await.unwrap();
    assert_eq!((requested.event.as_str(), &requested.data["run_id"]), ("approval.requested", &own[0].data["run_id"]));
    for (badge, path) in [(eve, "/v1/events"), (bob, "/v1/approvals/events")] {
        assert_eq!(person(badge).get(path).await.problem(), "forbidden", "{badge} {path}");
    }
}

#[tokio::test]
async fn the_inbox_reports_what_changes_its_approvals() {
    let served = Served::to_all(guarded().kept(Kept::InAFile).await).await;
    let mut inbox = served.watch("/v1/approvals/events").await;
    let decided = served.run(json!({"input": "Clean up"})).await;
    let withdrawn = served.run(json!({"input": "Clean up"})).await;
    let approvals = served.get("/v1/approvals").await.body["data"].as_array().unwrap().clone();
    let of = |run: &str| approvals.iter().find(|approval| approval["run_id"] == run).unwrap()["id"].clone();
    let decision = format!("/v1/approvals/{}/decision", of(&decided).as_str().unwrap());
    served.post(&decision, json!({"decision": "deny"})).await;
    served.post(&format!("/v1/runs/{decided}/resume"), json!({})).await;

    served.post(&format!("/v1/runs/{withdrawn}/cancel"), json!({})).await;

    let told = inbox.up_to("execution.cancelled").await;
    let asked = ["approval.requested", "execution.pending"];
    let kinds = [&asked[..], &asked, &["execution.resumed", "approval.decided", "execution.cancelled"]].concat();
    assert_eq!(events(&told), kinds, "the end of the decided run changes no approval");
    assert_eq!(told[6].data["run_id"], withdrawn.as_str());
}

#[tokio::test]
async fn the_inbox_reports_that_an_approval_is_pending_again() {
    let calls = json!([{"name": "mcp_files_delete", "arguments": {"n": 1}}, {"name": "mcp_files_delete", "arguments": {"n": 2}}]);
    let given = guarded().whose_model_says(json!([{"calls": calls}, say("Done.")]));
    let served = Served::to_all(given.kept(Kept::InAFile).await).await;
    let mut inbox = served.watch("/v1/approvals/events").await;
    let run = served.run(json!({"input": "Clean up"})).await;
    let asked = inbox.up_to("execution.pending").await;
    assert_eq!(events(&asked), ["approval.requested", "approval.requested", "execution.pending"]);
    let listed = || async { served.get("/v1/approvals").await.body["data"].as_array().unwrap().clone() };
    let first = listed().await[0]["id"].clone();

    served.post(&format!("/v1/approvals/{}/decision", first.as_str().unwrap()), json!({"decision": "approve"})).await;
    served.post(&format!("/v1/runs/{run}/resume"), json!({})).await;

    inbox.up_to("execution.pending").await;
    assert_eq!(listed().await.len(), 1, "the other call is in the list again");
}

#[tokio::test]
async fn a_fork_reports_its_own_events_only() {
    let served = Served::to_all(that_waits().kept(Kept::InAFile).await).await;
    let source = served.run(asks_in("s1")).await;
    answer(&served, &source).await;

    let forked = served.post(&format!("/v1/runs/{source}/fork"), json!({"message": "Again"})).await;
    assert_eq!(forked.status, 201, "{forked:?}");

    let own: Vec<Value> =
        all(&served, "").await.into_iter().filter(|event| event["run_id"] == forked.body["id"]).collect();
    let kinds: Vec<&str> = own.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds[..2], ["execution.started", "execution.resumed"], "{kinds:?}");
    assert!(!kinds.contains(&"tool.external.completed"), "{kinds:?}");
}

#[tokio::test]
async fn a_slow_reader_misses_no_event() {
    const RUNS: usize = 30;
    let served = Served::to_all(that_waits().kept(Kept::InMemory).await).await;
    let mut slow = served.watch("/v1/events").await;
    for number in 0..RUNS {
        let run = served.run(asks_in(&format!("s{number}"))).await;
        answer(&served, &run).await;
    }

    let (mut read, mut ended) = (Vec::new(), 0);
    while ended < RUNS {
        let frame = slow.next().await.unwrap();
        ended += usize::from(frame.event == "execution.completed");
        read.push(frame.data);
    }

    assert_eq!(read, all(&served, "&limit=100").await);
}

#[tokio::test]
async fn a_stopping_server_closes_the_stream_of_a_tenant() {
    let served = Served::to_all(that_waits().kept(Kept::InMemory).await).await;
    let mut stream = served.watch("/v1/events").await;
    served.run(asks_in("s1")).await;
    stream.up_to("execution.pending").await;

    served.gateway.stop();

    assert_eq!(events(&stream.rest().await), ["server.draining"]);
}
