//! Announcements: which events are sent, about which runs, and to which endpoints.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolgate::core::policy::Verdict;
use toolgate::ports::WebhookEndpoints;
use toolgate::runner::Request;

use super::process::{Process, SECRET, endpoint};
use super::receiver::Receiver;
use super::{Hooked, until};
use crate::runner::world::{Kept, World, given_an_agent, say};

async fn a_world_that_asks(kept: Kept) -> World {
    let turns = json!([{"calls": [{"name": "mcp_files_delete"}, {"name": "mcp_files_burn"}]}, say("Done.")]);
    given_an_agent()
        .with_tools("files", &["delete", "burn"])
        .whose_policy_says(Verdict::Ask, "mcp_files_*")
        .whose_model_says(turns)
        .kept(kept)
        .await
}

async fn pending_and_ended_runs_are_announced_once_without_content(kept: Kept) {
    let hooked = Hooked::with(a_world_that_asks(kept).await).await;
    let receiver = Receiver::open().await;
    let endpoint = hooked.add(&receiver, &[]).await;

    let created = hooked.served.post("/v1/runs", json!({"input": "The secret of the pyramids"})).await;

    assert_eq!(receiver.types(3).await, ["approval.requested", "approval.requested", "execution.pending"]);
    let data = |kind: &str| {
        let found = receiver.received().into_iter().filter(|received| received.kind() == kind);
        found.map(|received| received.body["data"].clone()).collect::<Vec<Value>>()
    };
    let run = created.text("id");
    let common = json!({"run_id": run, "status": "pending", "session_id": created.body["session_id"],
                        "agent": "clerk", "version": created.body["version"]});
    assert_eq!(data("execution.pending"), [common]);
    let asked: BTreeSet<String> =
        data("approval.requested").iter().map(|data| data["approval_id"].as_str().unwrap().to_owned()).collect();
    let owed = created.body["pending"].as_array().unwrap();
    assert_eq!(asked, owed.iter().map(|item| item["approval_id"].as_str().unwrap().to_owned()).collect());

    let decisions: Vec<Value> = owed
        .iter()
        .map(|item| json!({"call_id": item["call_id"], "type": "decision", "decision": "approve"}))
        .collect();
    let resumed = hooked.served.post(&format!("/v1/runs/{run}/resume"), json!({"answers": decisions})).await;
    assert_eq!(resumed.text("status"), "completed", "{resumed:?}");
    receiver.receives(4).await;
    assert_eq!(data("execution.completed")[0]["status"], "completed");
    assert_eq!(data("execution.completed")[0]["version"], resumed.body["version"]);
    let told = receiver.received();
    assert!(told.iter().all(|received| !received.text.contains("pyramids") && !received.text.contains("Done")));
    assert_eq!(told.iter().map(|received| &received.id).collect::<BTreeSet<_>>().len(), 4, "each has an id of its own");
    hooked.delivery(&endpoint, |newest| newest["status"] == "delivered").await;
    assert_eq!(hooked.deliveries(&endpoint).await.len(), 4);
}

#[tokio::test]
async fn pending_and_ended_runs_are_announced_from_memory() {
    pending_and_ended_runs_are_announced_once_without_content(Kept::InMemory).await;
}

#[tokio::test]
async fn pending_and_ended_runs_are_announced_from_a_file() {
    pending_and_ended_runs_are_announced_once_without_content(Kept::InAFile).await;
}

#[tokio::test]
async fn each_ending_has_its_own_name_and_a_failure_its_code() {
    let turns = json!([{"calls": [{"name": "mcp_files_delete"}]}]);
    let world = given_an_agent().with_tools("files", &["delete"]).whose_policy_says(Verdict::Ask, "mcp_files_delete");
    let hooked = Hooked::with(world.whose_model_says(turns).ready().await).await;
    let receiver = Receiver::open().await;
    hooked.add(&receiver, &["execution.cancelled", "execution.failed"]).await;

    let cancelled = hooked.served.run(json!({"input": "Delete it"})).await;
    hooked.served.post(&format!("/v1/runs/{cancelled}/cancel"), json!({})).await;
    // The script has no reply after the call, which is a failure.
    let failed = hooked.served.post("/v1/runs", json!({"input": "Delete it"})).await;
    let decisions =
        json!([{"call_id": failed.body["pending"][0]["call_id"], "type": "decision", "decision": "approve"}]);
    let failed =
        hooked.served.post(&format!("/v1/runs/{}/resume", failed.text("id")), json!({"answers": decisions})).await;

    assert_eq!(receiver.types(2).await, ["execution.cancelled", "execution.failed"]);
    let told = receiver.received();
    let of = |kind: &str| told.iter().find(|received| received.kind() == kind).unwrap().body["data"].clone();
    assert_eq!(
        (&of("execution.cancelled")["run_id"], &of("execution.cancelled")["code"]),
        (&json!(cancelled), &json!("cancelled"))
    );
    assert_eq!(of("execution.failed")["code"], failed.body["error"]["code"]);
}

#[tokio::test]
async fn an_endpoint_receives_chosen_events_of_its_tenant_from_now_on() {
    let world = given_an_agent().whose_model_says(json!([say("Done.")])).ready().await;
    let hooked = Hooked::with(world).await;
    let before = hooked.served.run(json!({"input": "Before"})).await;
    let (all, some) = (Receiver::open().await, Receiver::open().await);
    hooked.add(&all, &[]).await;
    hooked.add(&some, &["execution.failed", "execution.pending"]).await;
    let foreign = Request { tenant: "brim".into(), ..Request::new("clerk", "Of another tenant") };
    let foreign = hooked.served.world.runner.execute(foreign).await.unwrap();

    let own = hooked.served.run(json!({"input": "Own"})).await;

    let told = all.receives(1).await;
    assert_eq!(told[0].body["data"]["run_id"], json!(own), "not {before} and not {}", foreign.run_id);
    until(async || hooked.has_nothing_to_send().await.then_some(())).await;
    assert_eq!((all.received().len(), some.received().len()), (1, 0));
}

#[tokio::test]
async fn every_pending_state_of_a_run_is_announced_later() {
    let mut hooked = Hooked::quiet(a_world_that_asks(Kept::InMemory).await, super::HERE).await;
    let receiver = Receiver::open().await;
    hooked.add(&receiver, &[]).await;
    let created = hooked.served.post("/v1/runs", json!({"input": "Delete it"})).await;
    let owed = created.body["pending"].as_array().unwrap();
    let decisions: Vec<Value> =
        owed.iter().map(|item| json!({"type": "decision", "call_id": item["call_id"], "decision": "deny"})).collect();
    let path = format!("/v1/runs/{}/resume", created.text("id"));
    assert_eq!(hooked.served.post(&path, json!({"answers": decisions})).await.text("status"), "completed");

    hooked.dispatch();

    let types = receiver.types(4).await;
    assert_eq!(types, ["approval.requested", "approval.requested", "execution.completed", "execution.pending"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_announce_a_thousand_runs_once_each() {
    let directory = tempfile::TempDir::new().unwrap();
    let (one, other) = (Process::on(directory.path()).await, Process::on(directory.path()).await);
    let receiver = Receiver::open().await;
    receiver.learn(SECRET);
    one.store.save(&endpoint(receiver.url())).await.unwrap();
    let stop = CancellationToken::new();
    let dispatching = [&one, &other].map(|process| tokio::spawn(process.dispatcher().run(stop.clone())));

    let starts = (0..1_000).map(|_| one.runner.start(Request::new("clerk", "Hello")));
    let mut runs = BTreeSet::new();
    for started in futures::future::join_all(starts).await {
        runs.insert(started.unwrap().until_idle().await.unwrap().run_id.to_string());
    }
    let told = receiver.receives(1_000).await;

    let of = told.iter().map(|received| received.body["data"]["run_id"].as_str().unwrap().to_owned());
    assert_eq!(of.collect::<BTreeSet<_>>(), runs);
    stop.cancel();
    for dispatching in dispatching {
        dispatching.await.unwrap();
    }
    assert_eq!(receiver.received().len(), 1_000, "no message arrives twice");
}
