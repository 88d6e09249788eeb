//! Pauses (row 4.23): a run stops between two steps, and any process continues it.

use std::time::Duration;

use serde_json::json;
use toolgate::core::chat::Message;
use toolgate::core::id::RunId;
use toolgate::core::run::{Channel, Limits, ResumeError, Status};
use toolgate::runner::{AgentRunner, Fork, Report, Resume, RunnerError};

use super::world::{Given, Kept, LEASE, answer_to, given_an_agent, names, on_every_store, results, said, say};

/// How often a driver checks whether another process wrote to its run.
const POLL: Duration = Duration::from_millis(50);

/// A run with a tool call that takes 100 ms.
fn slow() -> Given {
    given_an_agent()
        .with_tools("files", &["read", "write"])
        .where_servers(|servers| servers.take_ms("read", 100))
        .that_polls_every(POLL)
        .whose_model_says(json!([
            {"calls": [{"name": "mcp_files_read"}]}, {"calls": [{"name": "mcp_files_write"}]}, say("Done."),
        ]))
}

/// A run that waits for the application.
fn ordering() -> Given {
    given_an_agent()
        .with_an_external_tool("order")
        .whose_model_says(json!([{"calls": [{"name": "ext_order"}]}, say("Done.")]))
}

fn on() -> Resume {
    Resume::default().and_continue("ann", Channel::Api)
}

async fn pause(runner: &AgentRunner, run: &RunId) -> Report {
    runner.pause(run, Some("lunch".into()), "ann", Channel::Api, None).await.unwrap()
}

fn kinds(report: &Report) -> Vec<&'static str> {
    report.pending.iter().map(|item| item.kind()).collect()
}

on_every_store! {
    async fn row_4_23_a_pause_between_two_steps_is_resumed_by_another_process(kept: Kept) {
        let world = slow().kept(kept).await;
        let execution = world.start().await;
        tokio::time::sleep(POLL).await;
        let elsewhere = world.another_process().await;

        let paused = pause(&elsewhere, &execution.run).await;
        let rested = execution.until_idle().await.unwrap();

        assert_eq!(paused.status, Status::Running, "its call is in flight");
        assert_eq!((rested.status, kinds(&rested)), (Status::Pending, vec!["pause"]));
        assert_eq!(world.servers.calls(), ["call_1_1"], "the call in flight was kept, and the next one was not made");
        let done = world.another_process().await.resume(&rested.run_id, on()).await.unwrap();
        assert_eq!((done.status, world.servers.calls()), (Status::Completed, vec!["call_1_1".to_owned(), "call_2_1".to_owned()]));
        let journal = world.journal(&done.run_id).await;
        let pauses: Vec<_> = journal.iter().filter(|name| name.contains("paused")).collect();
        assert_eq!(pauses, [&"execution.paused", &"execution.unpaused"]);
        assert_eq!(journal.iter().filter(|name| **name == "llm.call.started").count(), 3, "no turn was repeated");
    }

    async fn row_4_23_a_pause_of_a_waiting_run_keeps_its_answers(kept: Kept) {
        let world = ordering().kept(kept).await;
        let run = world.run().await.run_id;

        let paused = pause(&world.runner, &run).await;
        let again = pause(&world.another_process().await, &run).await;
        let answered = world.resume(&run, results([("call_1_1", json!("tea"))])).await.unwrap();

        assert_eq!((kinds(&paused), again.version), (vec!["pause", "external_result"], paused.version));
        assert_eq!((answered.status, kinds(&answered)), (Status::Pending, vec!["pause"]));
        let done = world.resume(&run, on()).await.unwrap();
        assert_eq!((done.status, said(&done)[2].as_str()), (Status::Completed, "user: call_1_1 -> tea"));
        let repeated = world.resume(&run, on()).await.unwrap();
        assert_eq!(repeated.version, done.version, "a repeated resume changes nothing");
    }
}

#[tokio::test(start_paused = true)]
async fn row_4_23_a_pause_during_a_model_call_keeps_the_reply() {
    let turns = json!([{"stream": {"fragments": 4, "delay_ms": 25}, "say": "One two three four"}]);
    let world = given_an_agent().that_polls_every(POLL).whose_model_says(turns).ready().await;
    let execution = world.start().await;
    tokio::time::sleep(Duration::from_millis(60)).await;

    assert_eq!(pause(&world.runner, &execution.run).await.status, Status::Running);
    let rested = execution.until_idle().await.unwrap();

    assert_eq!((kinds(&rested), rested.output), (vec!["pause"], None));
    let done = world.resume(&rested.run_id, on()).await.unwrap();
    assert_eq!(done.output.unwrap().text, "One two three four");
    let journal = world.journal(&done.run_id).await;
    assert_eq!(journal.iter().filter(|name| **name == "llm.call.started").count(), 1, "{journal:?}");
}

#[tokio::test(start_paused = true)]
async fn row_4_23_a_pause_ends_the_wait_before_a_retry() {
    let failure = json!({"code": "provider_rate_limit", "retry_after_ms": 20_000, "times": 1});
    let turns = json!([{"fail": failure, "say": "Good day."}]);
    let world = given_an_agent().that_polls_every(POLL).whose_model_says(turns).ready().await;
    let execution = world.start().await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    let began = tokio::time::Instant::now();

    pause(&world.another_process().await, &execution.run).await;
    let rested = execution.until_idle().await.unwrap();

    assert_eq!((rested.status, kinds(&rested)), (Status::Pending, vec!["pause"]));
    assert!(began.elapsed() <= POLL * 2, "{:?}", began.elapsed());
    assert_eq!(world.resume(&rested.run_id, on()).await.unwrap().status, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn row_4_23_a_message_to_a_paused_run_is_kept() {
    let turns = json!([{"calls": [{"name": "mcp_files_read"}]}, {"expect": {"contains": "Quickly"}, "say": "Done."}]);
    let given = given_an_agent().with_tools("files", &["read"]).where_servers(|servers| servers.take_ms("read", 100));
    let world = given.whose_model_says(turns).ready().await;
    let execution = world.start().await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    pause(&world.runner, &execution.run).await;
    let run = execution.until_idle().await.unwrap().run_id;

    let told = world.runner.message(&run, Message::user("Quickly, please.")).await.unwrap();

    assert_eq!((told.status, kinds(&told)), (Status::Pending, vec!["pause"]));
    assert_eq!(world.resume(&run, on()).await.unwrap().status, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn row_4_23_a_paused_run_is_cancelled() {
    let world = ordering().ready().await;
    let run = world.run().await.run_id;
    pause(&world.runner, &run).await;

    let cancelled = world.runner.cancel(&run, None, None).await.unwrap();
    let refused = world.runner.pause(&run, None, "ann", Channel::Api, None).await.unwrap_err();

    assert_eq!(cancelled.status, Status::Cancelled);
    assert!(refused.to_string().contains("the run is over: cancelled"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn row_4_23_a_paused_run_expires_at_its_deadline() {
    let limits = Limits { deadline_s: Some(100), ..Limits::default() };
    let world = slow().within(limits).ready().await;
    let execution = world.start().await;
    tokio::time::sleep(POLL).await;
    pause(&world.runner, &execution.run).await;
    let run = execution.until_idle().await.unwrap().run_id;
    tokio::time::advance(Duration::from_secs(101)).await;

    let refused = world.resume(&run, on()).await.unwrap_err();

    assert!(refused.to_string().contains("the run is over: expired"), "{refused}");
    assert_eq!(world.runner.report(&run).await.unwrap().status, Status::Expired);
}

#[tokio::test(start_paused = true)]
async fn row_4_23_a_fork_of_a_paused_run_is_not_paused() {
    let world = slow().ready().await;
    let execution = world.start().await;
    tokio::time::sleep(POLL).await;
    pause(&world.runner, &execution.run).await;
    let source = execution.until_idle().await.unwrap();

    let fork = world.runner.fork(&source.run_id, Fork::default()).await.unwrap().until_idle().await.unwrap();

    assert_eq!(fork.status, Status::Completed);
    let journal = names(&world.runner.journal(&fork.run_id).await.unwrap());
    assert!(!journal.iter().any(|name| name.contains("paused")), "{journal:?}");
    assert_eq!(world.runner.report(&source.run_id).await.unwrap().status, Status::Pending);
}

#[tokio::test(start_paused = true)]
async fn row_4_23_a_run_whose_process_died_while_it_was_paused_stays_paused() {
    let world = slow().where_servers(|servers| servers.hang_in("read")).ready().await;
    world.store.stop_renewing();
    let run = world.start().await.run;
    tokio::time::sleep(POLL).await;
    let elsewhere = world.another_process().await;
    assert_eq!(pause(&elsewhere, &run).await.status, Status::Running);
    tokio::time::sleep(LEASE * 2).await;

    let recovered = elsewhere.recover().await.unwrap().remove(0).until_idle().await.unwrap();

    assert_eq!((recovered.run_id.clone(), kinds(&recovered)), (run.clone(), vec!["pause"]));
    let done = elsewhere.resume(&run, on()).await.unwrap();
    assert!(answer_to(&done, "call_1_1").starts_with("Outcome unknown"));
    assert_eq!(
        (done.status, world.servers.calls()),
        (Status::Completed, vec!["call_1_1".to_owned(), "call_2_1".to_owned()])
    );
}

#[tokio::test]
async fn row_4_23_a_stale_version_and_a_run_that_is_not_paused_are_refused() {
    let world = ordering().ready().await;
    let waiting = world.run().await;

    let stale = world.runner.pause(&waiting.run_id, None, "ann", Channel::Api, Some(1)).await.unwrap_err();
    let running = world.resume(&waiting.run_id, on()).await.unwrap_err();

    assert!(matches!(stale.refusals(), [ResumeError::VersionConflict { expected: 1, .. }]), "{stale}");
    let RunnerError::Refused(refusals) = running else { panic!("{running}") };
    assert_eq!(refusals, [ResumeError::NotPaused]);
    assert_eq!(world.runner.report(&waiting.run_id).await.unwrap().version, waiting.version);
}
