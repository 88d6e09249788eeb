//! Cancellation safety: an operation whose caller stops waiting after its events were written has its whole effect.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;
use toolgate::core::chat::Message;
use toolgate::core::id::RunId;
use toolgate::core::policy::Verdict;
use toolgate::core::run::Status;
use toolgate::ports::RunFilter;
use toolgate::runner::Fork;

use super::world::{Kept, World, decisions, given_an_agent, on_every_store, results, say, yes};
use crate::fakes::Fault;

/// Drops an operation while the store holds back the acknowledgement of its append, then releases the store.
async fn dropped_after_its_append<T>(world: &World, operation: impl Future<Output = T>) {
    let (release, held) = (Arc::new(Notify::new()), world.store.held());
    world.store.fail_next(Fault::AcknowledgementHeld(release.clone()));
    let written = async {
        while world.store.held() == held {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        _ = operation => panic!("the operation returned before the store acknowledged its append"),
        () = written => {}
    }
    release.notify_one();
}

/// Waits until a run has this status, as long as tests on a loaded machine may take.
async fn becomes(world: &World, run: &RunId, status: Status) {
    let is_so = async {
        while world.runner.report(run).await.unwrap().status != status {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let became = tokio::time::timeout(Duration::from_secs(20), is_so).await;
    assert!(became.is_ok(), "the run never became {status:?}: {:?}", world.journal(run).await);
}

async fn the_newest_run(world: &World) -> RunId {
    world.runner.list(&RunFilter { limit: 1, ..RunFilter::default() }).await.unwrap().remove(0).id
}

async fn resumptions(world: &World, run: &RunId) -> usize {
    world.journal(run).await.iter().filter(|name| **name == "execution.resumed").count()
}

on_every_store! {
    async fn a_run_whose_start_is_dropped_runs_to_its_end(kept: Kept) {
        let world = given_an_agent().whose_model_says(json!([say("Done.")])).kept(kept).await;

        dropped_after_its_append(&world, world.runner.start(world.request())).await;

        becomes(&world, &the_newest_run(&world).await, Status::Completed).await;
    }

    async fn a_run_whose_resume_is_dropped_runs_to_its_end(kept: Kept) {
        let turns = json!([{"calls": [{"name": "ext_lookup"}]}, say("Done.")]);
        let world = given_an_agent().with_an_external_tool("lookup").whose_model_says(turns).kept(kept).await;
        let run = world.run().await.run_id;

        let result = results([("call_1_1", json!("found"))]);
        dropped_after_its_append(&world, world.runner.resume(&run, result)).await;

        becomes(&world, &run, Status::Completed).await;
        assert_eq!(resumptions(&world, &run).await, 1);
    }

    async fn a_run_whose_decision_is_dropped_runs_to_its_end(kept: Kept) {
        let turns = json!([{"calls": [{"name": "mcp_files_delete"}]}, say("Done.")]);
        let clerk = given_an_agent().with_tools("files", &["delete"]).whose_policy_says(Verdict::Ask, "*");
        let world = clerk.whose_model_says(turns).kept(kept).await;
        let run = world.run().await.run_id;

        dropped_after_its_append(&world, world.runner.resume(&run, decisions([("call_1_1", yes())]))).await;

        becomes(&world, &run, Status::Completed).await;
        assert_eq!((resumptions(&world, &run).await, world.servers.calls().len()), (1, 1));
    }

    async fn a_run_whose_fork_is_dropped_runs_to_its_end(kept: Kept) {
        let world = given_an_agent().whose_model_says(json!([say("Done.")])).kept(kept).await;
        let source = world.run().await.run_id;

        let fork = Fork { at: Some(1), ..Fork::default() };
        dropped_after_its_append(&world, world.runner.fork(&source, fork)).await;

        let fork = the_newest_run(&world).await;
        assert_ne!(fork, source);
        becomes(&world, &fork, Status::Completed).await;
    }

    async fn a_dropped_cancel_stops_the_call_under_way(kept: Kept) {
        let turns = json!([{"calls": [{"name": "mcp_files_hang"}]}, say("Done.")]);
        let clerk = given_an_agent().with_tools("files", &["hang"]).where_servers(|servers| servers.hang_in("hang"));
        let world = clerk.that_polls_every(Duration::from_secs(3600)).whose_model_says(turns).kept(kept).await;
        let execution = world.start().await;
        while world.servers.calls().is_empty() {
            tokio::task::yield_now().await;
        }

        dropped_after_its_append(&world, world.runner.cancel(&execution.run, None, None)).await;

        let rested = tokio::time::timeout(Duration::from_secs(20), execution.until_idle()).await;
        assert_eq!(rested.expect("the driver is woken").unwrap().status, Status::Cancelled);
        assert_eq!(world.servers.given_up(), ["call_1_1"]);
    }

    async fn a_dropped_message_to_a_pending_run_reaches_its_watchers(kept: Kept) {
        let turns = json!([{"calls": [{"name": "ext_lookup"}]}, say("Done.")]);
        let world = given_an_agent().with_an_external_tool("lookup").whose_model_says(turns).kept(kept).await;
        let run = world.run().await.run_id;
        let told = world.sink.told().len();

        dropped_after_its_append(&world, world.runner.message(&run, Message::user("Hurry"))).await;

        let is_told = async {
            while world.sink.told().len() == told {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), is_told).await.expect("watchers are told");
    }
}

#[tokio::test]
async fn a_dropped_recovery_blocks_no_run() {
    let turns = json!([{"calls": [{"name": "ext_lookup"}]}, say("Done.")]);
    let world = given_an_agent().with_an_external_tool("lookup").whose_model_says(turns).ready().await;
    let run = world.run().await.run_id;
    // Another process writes the result without executing the run: the run is orphaned.
    world.another_process().await.record(&run, results([("call_1_1", json!("found"))])).await.unwrap();

    dropped_after_its_append(&world, world.runner.recover()).await;

    becomes(&world, &run, Status::Completed).await;
}
