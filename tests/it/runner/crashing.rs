//! Processes that stop at any point, and processes that recover their runs.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use toolgate::core::error::ErrorCode;
use toolgate::core::run::{Budget, Event, OnUnknownOutcome, Spec, Status};
use toolgate::driver::DriveError;
use toolgate::ports::StoreError;
use toolgate::runner::{Report, Resume, RunnerError};

use super::world::{Given, Kept, LEASE, World, answer_to, decisions, given_an_agent, no, on_every_store, say, yes};
use crate::fakes::Fault;

fn reader() -> Given {
    given_an_agent()
        .with_tools("files", &["read"])
        .where_servers(|servers| servers.hang_in("read"))
        .whose_model_says(json!([{"calls": [{"name": "mcp_files_read"}]}, say("Done.")]))
}

/// A run whose process has apparently stopped while a call was in progress.
async fn left_behind(given: Given, kept: Kept) -> World {
    let world = given.kept(kept).await;
    world.store.stop_renewing();
    world.start().await;
    while world.servers.calls().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(LEASE * 2).await;
    world
}

/// Recovers the orphaned runs in another process.
async fn recovered(world: &World) -> Report {
    let other = world.another_process().await;
    let mut taken = other.recover().await.unwrap();
    assert_eq!(taken.len(), 1);
    taken.remove(0).until_idle().await.unwrap()
}

on_every_store! {
    async fn an_orphaned_run_is_recovered_without_repeating_its_call(kept: Kept) {
        let world = left_behind(reader(), kept).await;

        let report = recovered(&world).await;

        assert_eq!((report.status, world.servers.calls()), (Status::Completed, vec!["call_1_1".to_owned()]));
        assert!(answer_to(&report, "call_1_1").starts_with("Outcome unknown"));
    }

    async fn an_idempotent_call_in_doubt_is_sent_again(kept: Kept) {
        let harmless = given_an_agent()
            .with_a_harmless_tool("files", "read")
            .where_servers(|servers| servers.hang_in("read"))
            .whose_model_says(json!([{"calls": [{"name": "mcp_files_read"}]}, say("Done.")]));
        let world = left_behind(harmless, kept).await;
        world.servers.recover("read");

        let report = recovered(&world).await;

        assert_eq!(answer_to(&report, "call_1_1"), "read done");
        assert_eq!(world.servers.calls(), ["call_1_1", "call_1_1"]);
    }

    async fn a_run_of_a_living_process_is_not_recovered(kept: Kept) {
        let world = reader().kept(kept).await;
        world.start().await;
        tokio::time::sleep(LEASE * 3).await;

        let taken = world.another_process().await.recover().await.unwrap();

        assert_eq!(taken.len(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn the_user_may_be_asked_about_a_call_in_doubt_and_say_no() {
    let world =
        left_behind(reader().that(|agent| agent.rules.on_unknown_outcome = OnUnknownOutcome::Ask), Kept::InMemory)
            .await;

    let waiting = recovered(&world).await;
    assert_eq!((waiting.status, waiting.pending[0].kind()), (Status::Pending, "approval"));
    let report = world.resume(&waiting.run_id, decisions([("call_1_1", no("leave it"))])).await.unwrap();

    assert!(answer_to(&report, "call_1_1").starts_with("Outcome unknown"));
    assert_eq!(world.servers.calls(), ["call_1_1"]);
}

#[tokio::test(start_paused = true)]
async fn the_user_may_be_asked_to_repeat_a_call_in_doubt() {
    let world =
        left_behind(reader().that(|agent| agent.rules.on_unknown_outcome = OnUnknownOutcome::Ask), Kept::InMemory)
            .await;
    let waiting = recovered(&world).await;
    world.servers.recover("read");
    world.servers.forgive_repeats_of("read");

    let other = world.another_process().await;
    let report = other.resume(&waiting.run_id, decisions([("call_1_1", yes())])).await.unwrap();

    assert_eq!(answer_to(&report, "call_1_1"), "read done");
}

#[tokio::test(start_paused = true)]
async fn a_stalled_process_whose_run_was_claimed_writes_nothing() {
    let slow = reader().where_servers(|servers| {
        servers.recover("read");
        servers.take_ms("read", 5000);
    });
    let world = slow.ready().await;
    world.store.stop_renewing();
    let execution = world.start().await;
    tokio::time::sleep(LEASE * 2).await;
    let taken_over = recovered(&world).await;

    let woken = execution.until_idle().await.unwrap();

    assert_eq!((woken.version, woken.messages), (taken_over.version, taken_over.messages));
    assert_eq!(world.servers.calls(), ["call_1_1"]);
}

/// Panics at an unprotected point: not in a guarded adapter, but in the middle of a step.
struct Trap;

#[async_trait]
impl toolgate::ports::OutputValidator for Trap {
    fn takes_schema(&self, _schema: &serde_json::Value) -> Result<(), String> {
        Ok(())
    }

    async fn check(&self, _spec: &Spec, _answer: &str, _budget: &Budget) -> toolgate::core::run::OutputVerdict {
        panic!("the validator panics on demand")
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_driver_loses_the_execution_and_not_the_run() {
    let world = given_an_agent()
        .that(|agent| agent.rules.validate_output = true)
        .with_the_answers_checked_by(Arc::new(Trap))
        .whose_model_says(json!([say("Done.")]))
        .ready()
        .await;
    let execution = world.start().await;
    let run = execution.run.clone();

    let error = execution.until_idle().await.unwrap_err();

    assert_eq!(error, RunnerError::Lost(run.clone()));
    assert_eq!(world.servers.released(), ["run_1"]);
    // Its lease is no longer renewed, so another process may claim it.
    tokio::time::sleep(LEASE * 2).await;
    assert_eq!(world.another_process().await.recover().await.unwrap().len(), 1);
    world.runner.close().await;
}

#[tokio::test(start_paused = true)]
async fn an_impossible_history_is_named_and_not_executed() {
    let world = given_an_agent().whose_model_says(json!([say("Done.")])).ready().await;
    let other = world.run().await.run_id;
    let first = world.runner.journal(&other).await.unwrap().remove(0);
    let Event::Started(started) = first.event else { panic!("a run begins with its start") };
    // A second start after the first append of the next run, by a writer that does not fold.
    world.store.fail_at(world.store.appends() + 1, Fault::Nonsense(Box::new(Event::Started(started))));

    let execution = world.start().await;
    let run = execution.run.clone();
    let error = execution.until_idle().await.unwrap_err();
    let again = world.resume(&run, Resume::default()).await.unwrap_err();

    assert!(matches!(&error, RunnerError::Drive(DriveError::Corrupt { .. })), "{error}");
    assert!(error.to_string().contains("`execution.started` cannot be event 1"), "{error}");
    assert_eq!((error.code(), again), (ErrorCode::JournalCorrupt, error));
}

#[tokio::test]
async fn an_event_of_a_later_version_is_rejected_by_name() {
    let directory = tempfile::TempDir::new().unwrap();
    let path = directory.path().join("runs.db");
    let store = Arc::new(
        toolgate::stores::SqliteStore::open_with_durability(&path, toolgate::stores::Durability::ProcessCrash)
            .await
            .unwrap(),
    );
    let agent = given_an_agent().whose_model_says(json!([say("Done.")])).agent();
    let runner = toolgate::runner::AgentRunner::builder().store(store).agent(agent).build().unwrap();
    let report = runner.execute(toolgate::runner::Request::new("clerk", "Hello")).await.unwrap();
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute("UPDATE journal SET event = '{\"type\":\"execution.teleported\"}' WHERE seq = 2", []).unwrap();

    let error = runner.report(&report.run_id).await.unwrap_err();

    assert!(matches!(&error, RunnerError::Drive(DriveError::Store(StoreError::Corrupt(_)))), "{error:?}");
    assert!(error.to_string().contains("execution.teleported"), "{error}");
}
