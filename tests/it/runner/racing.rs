//! Concurrent operations on one run.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate::core::error::ErrorCode;
use toolgate::core::run::{ResumeError, Status};
use toolgate::runner::{Resume, RunnerError};

use super::world::{Given, Kept, answer_to, given_an_agent, nothing, on_every_store, results, say};

fn two_orders() -> Given {
    given_an_agent()
        .with_an_external_tool("order")
        .whose_model_says(json!([{"calls": [{"name": "ext_order"}, {"name": "ext_order"}]}, say("Done.")]))
}

fn slow_reader() -> Given {
    given_an_agent()
        .with_tools("files", &["read"])
        .where_servers(|servers| servers.take_ms("read", 300))
        .whose_model_says(json!([{"calls": [{"name": "mcp_files_read"}]}, say("Done.")]))
}

on_every_store! {
    async fn two_processes_settle_different_items_and_the_run_resumes_once(kept: Kept) {
        let world = two_orders().kept(kept).await;
        let run = world.run().await.run_id;
        let other = world.another_process().await;

        let (one, two) = tokio::join!(
            world.runner.resume(&run, results([("call_1_1", json!("first"))]).partial()),
            other.resume(&run, results([("call_1_2", json!("second"))]).partial()),
        );

        one.unwrap();
        two.unwrap();
        let report = the_end(&world.runner, &run).await;
        assert_eq!((answer_to(&report, "call_1_1"), answer_to(&report, "call_1_2")), ("first".into(), "second".into()));
        let journal = world.journal(&run).await;
        assert_eq!(journal.iter().filter(|name| **name == "llm.call.completed").count(), 2);
    }

    async fn two_processes_settle_the_same_item_once(kept: Kept) {
        let world = two_orders().kept(kept).await;
        let run = world.run().await.run_id;
        let other = world.another_process().await;
        let with = |value: Value| results([("call_1_1", value.clone()), ("call_1_2", value)]);

        let (one, two) =
            tokio::join!(world.runner.resume(&run, with(json!("mine"))), other.resume(&run, with(json!("yours"))));

        let (won, lost) = match (one, two) {
            (Ok(_), Err(lost)) => ("mine", lost),
            (Err(lost), Ok(_)) => ("yours", lost),
            both => panic!("{both:?}"),
        };
        let settled = |call: &str| ResumeError::AlreadySettled { call_id: call.into() };
        assert_eq!(lost, RunnerError::Refused(vec![settled("call_1_1"), settled("call_1_2")]));
        assert_eq!(answer_to(&the_end(&world.runner, &run).await, "call_1_1"), won);
        let journal = world.journal(&run).await;
        assert_eq!(journal.iter().filter(|name| **name == "tool.completed").count(), 2);
    }

    async fn a_second_process_cannot_execute_an_active_run(kept: Kept) {
        let world = slow_reader().kept(kept).await;
        let execution = world.start().await;
        let other = world.another_process().await;

        let error = other.resume_run(&execution.run, nothing(), None).await.unwrap_err();

        let node = "process_1".into();
        assert_eq!(error, RunnerError::DrivenElsewhere { run: execution.run.clone(), node });
        assert_eq!(error.code(), ErrorCode::Conflict);
        assert_eq!(execution.until_idle().await.unwrap().status, Status::Completed);
        assert_eq!(world.servers.calls(), ["call_1_1"]);
    }

    async fn a_second_trigger_in_the_same_process_joins_the_first(kept: Kept) {
        let world = slow_reader().kept(kept).await;
        let execution = world.start().await;
        // Wait until the call is in progress.
        while world.servers.calls().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }

        let second = world.resume(&execution.run, Resume::default()).await.unwrap();

        assert_eq!((second.status, answer_to(&second, "call_1_1")), (Status::Completed, "read done".into()));
        assert_eq!(execution.until_idle().await.unwrap().version, second.version);
        assert!(!world.journal(&second.run_id).await.contains(&"execution.resumed"));
    }

    async fn ten_resumes_at_once_in_one_process_are_one(kept: Kept) {
        let world = two_orders().kept(kept).await;
        let run = world.run().await.run_id;
        let resume = || results([("call_1_1", json!("first")), ("call_1_2", json!("second"))]);

        let all = futures::future::join_all((0..10).map(|_| world.runner.resume(&run, resume()))).await;

        assert!(all.iter().all(|report| report.as_ref().unwrap().status == Status::Completed), "{all:?}");
        let journal = world.journal(&run).await;
        assert_eq!(journal.iter().filter(|name| **name == "execution.resumed").count(), 1);
    }
}

/// The report of the run when it has ended, whichever process executes it.
async fn the_end(runner: &toolgate::runner::AgentRunner, run: &toolgate::core::id::RunId) -> toolgate::runner::Report {
    for _ in 0..200 {
        let report = runner.report(run).await.unwrap();
        if report.status.is_ended() {
            return report;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the run does not end");
}

#[tokio::test(start_paused = true)]
async fn input_for_another_processs_run_reaches_its_driver() {
    let world = given_an_agent()
        .with_tools("files", &["read"])
        .where_servers(|servers| servers.take_ms("read", 300))
        .with_an_external_tool("order")
        .whose_model_says(json!([{"calls": [{"name": "ext_order"}, {"name": "mcp_files_read"}]}, say("Done.")]))
        .ready()
        .await;
    let execution = world.start().await;
    tokio::time::sleep(Duration::from_millis(100)).await;

    let other = world.another_process().await;
    let handed = other.resume(&execution.run, results([("call_1_1", json!("ordered"))])).await.unwrap();

    assert_eq!(handed.status, Status::Completed);
    assert_eq!(execution.until_idle().await.unwrap().status, Status::Completed);
    assert_eq!(world.servers.calls(), ["call_1_2"]);
}

#[tokio::test(start_paused = true)]
async fn a_closed_runner_starts_and_resumes_nothing() {
    let world = two_orders().ready().await;
    let run = world.run().await.run_id;
    world.runner.close().await;

    let start = world.runner.start(world.request()).await.unwrap_err();
    let resume = world.resume(&run, results([("call_1_1", json!("first"))]).partial()).await.unwrap_err();

    assert_eq!([start, resume], [RunnerError::Closed, RunnerError::Closed]);
}

#[tokio::test(start_paused = true)]
async fn a_run_is_not_resumed_without_its_servers() {
    let world = given_an_agent()
        .with_tools("files", &["read"])
        .with_an_external_tool("order")
        .whose_model_says(json!([{"calls": [{"name": "ext_order"}]}, say("Done.")]))
        .ready()
        .await;
    let waiting = world.run().await;
    let other = world.another_process_where(|agent| agent.servers.clear()).await;

    let refused = other.resume(&waiting.run_id, results([("call_1_1", json!("ordered"))])).await.unwrap_err();

    assert!(matches!(&refused, RunnerError::ServerMissing { server, .. } if server.as_str() == "files"), "{refused}");
    assert_eq!(world.runner.report(&waiting.run_id).await.unwrap().version, waiting.version);
}
