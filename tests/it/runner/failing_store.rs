//! A store that fails at any append. In every case the run has the same ending and no call is sent twice: the fake
//! servers would complain.

use std::time::Duration;

use serde_json::json;
use toolgate::core::chat::Message;
use toolgate::core::id::RunId;
use toolgate::core::policy::Verdict;
use toolgate::core::run::{AnswerForm, Event, Status};
use toolgate::core::trace::{Trace, TraceId};
use toolgate::ports::RunFilter;
use toolgate::runner::{AgentRunner, Answer, Report, Resume, RunnerError};

use super::world::{Kept, LEASE, World, given_an_agent, on_every_store, said, say, yes};
use crate::fakes::Fault;

/// Two concurrent calls and an external one, then a guarded one, then an answer.
async fn a_bit_of_everything(kept: Kept) -> World {
    given_an_agent()
        .with_tools("files", &["slow", "fast", "guarded"])
        .where_servers(|servers| servers.take_ms("slow", 20))
        .with_an_external_tool("order")
        .whose_policy_says(Verdict::Ask, "*_guarded")
        .whose_model_says(json!([
            {"calls": [{"name": "mcp_files_slow"}, {"name": "ext_order"}, {"name": "mcp_files_fast"}]},
            {"calls": [{"name": "mcp_files_guarded"}]},
            say("Done."),
            say("Done."),
        ]))
        .kept(kept)
        .await
}

/// The answers of the application and its users.
fn answers(report: &Report) -> Resume {
    let mut resume = Resume::default();
    for item in &report.pending {
        let call = item.call_id().unwrap().clone();
        match item.form() {
            AnswerForm::Result { .. } => resume.answers.push((call, Answer::output(json!("ordered")))),
            AnswerForm::Decision(_) => resume.answers.push((call, yes().into())),
            AnswerForm::Choice(_)
            | AnswerForm::Elicitation { .. }
            | AnswerForm::Background(_)
            | AnswerForm::Continue { .. } => {
                panic!("no call was suspended")
            }
        }
    }
    resume
}

/// Starts a run until it exists, even if the caller was not informed about it.
async fn begin(world: &World, runner: &AgentRunner) -> RunId {
    loop {
        match runner.start(world.request()).await {
            Ok(execution) => {
                let run = execution.run.clone();
                let _ = execution.until_idle().await;
                return run;
            }
            Err(_) => {
                if let Some(row) = runner.list(&RunFilter::default()).await.unwrap().first() {
                    return row.id.clone();
                }
            }
        }
    }
}

/// Answers the pending items until the run ends. After a failure `next` provides the process that continues.
async fn see_to_its_end(world: &World, next: impl AsyncFn() -> AgentRunner) -> Report {
    let mut runner = world.runner.clone();
    let run = begin(world, &runner).await;
    for _ in 0..20 {
        let report = runner.report(&run).await.unwrap();
        if report.status.is_ended() {
            return report;
        }
        if runner.resume(&run, answers(&report)).await.is_err() {
            runner = next().await;
        }
    }
    panic!("the run does not end");
}

async fn the_same_process(world: &World) -> Report {
    see_to_its_end(world, async || world.runner.clone()).await
}

async fn undisturbed(kept: Kept) -> (usize, Vec<&'static str>) {
    let world = a_bit_of_everything(kept).await;
    let report = the_same_process(&world).await;
    assert_eq!((report.status, report.output.unwrap().text.as_str()), (Status::Completed, "Done."));
    assert_eq!(world.servers.calls(), ["call_1_1", "call_1_3", "call_2_1"]);
    (world.store.appends(), world.journal(&report.run_id).await)
}

fn ended_well(world: &World, report: &Report, nth: usize) {
    assert!(world.store.is_spent(), "append {nth} did not happen");
    assert_eq!(world.servers.violations(), [""; 0], "append {nth}");
    assert_eq!(report.status, Status::Completed, "append {nth}: {:?}", report.error);
    assert_eq!(report.output.as_ref().unwrap().text, "Done.", "append {nth}");
}

on_every_store! {
    async fn a_run_outlives_a_refused_append_wherever_it_is(kept: Kept) {
        let (appends, _) = undisturbed(kept).await;
        for nth in 0..appends {
            let world = a_bit_of_everything(kept).await;
            world.store.fail_at(nth, Fault::Refused);
            let report = the_same_process(&world).await;
            ended_well(&world, &report, nth);
        }
    }

    async fn a_run_outlives_a_lost_acknowledgement_wherever_it_is(kept: Kept) {
        let (appends, _) = undisturbed(kept).await;
        for nth in 0..appends {
            let world = a_bit_of_everything(kept).await;
            world.store.fail_at(nth, Fault::AcknowledgementLost);
            let report = the_same_process(&world).await;
            ended_well(&world, &report, nth);
        }
    }

    async fn a_message_that_gets_in_first_is_heard_once_wherever_it_is(kept: Kept) {
        let (appends, _) = undisturbed(kept).await;
        for nth in 1..appends {
            let world = a_bit_of_everything(kept).await;
            let message = Event::MessageAdded { message: Message::user("By the way.") };
            world.store.fail_at(nth, Fault::Intrusion(Box::new(message)));
            let report = see_to_its_end(&world, async || panic!("append {nth}: nothing fails")).await;
            ended_well(&world, &report, nth);
            let heard = said(&report).iter().filter(|line| line.contains("By the way.")).count();
            assert_eq!(heard, 1, "append {nth}: {:#?}", said(&report));
            assert_eq!(world.servers.calls(), ["call_1_1", "call_1_3", "call_2_1"]);
            world.sink.was_told_everything(&report.run_id, report.version);
        }
    }

    async fn a_fact_that_changes_nothing_and_gets_in_first_changes_nothing(kept: Kept) {
        let (appends, journal) = undisturbed(kept).await;
        for nth in 1..appends {
            let world = a_bit_of_everything(kept).await;
            let trace = Trace::new(TraceId([9; 16]), true);
            world.store.fail_at(nth, Fault::Intrusion(Box::new(Event::Resumed { trace, limits: None })));
            let report = see_to_its_end(&world, async || panic!("append {nth}: nothing fails")).await;
            ended_well(&world, &report, nth);
            let mut facts = world.journal(&report.run_id).await;
            // A slow machine waits for servers.
            let is_compared = |name: &str| !["execution.resumed", "execution.waited"].contains(&name);
            let without: Vec<_> = facts.extract_if(.., |name| is_compared(name)).collect();
            let expected: Vec<_> = journal.iter().copied().filter(|name| is_compared(name)).collect();
            assert_eq!(without, expected, "append {nth}");
            world.sink.was_told_everything(&report.run_id, report.version);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn another_process_goes_on_wherever_the_store_failed() {
    for fault in [Fault::Refused, Fault::AcknowledgementLost] {
        let (appends, _) = undisturbed(Kept::InMemory).await;
        for nth in 0..appends {
            let world = a_bit_of_everything(Kept::InMemory).await;
            world.store.fail_at(nth, fault.clone());
            let another = async || {
                tokio::time::sleep(LEASE * 2).await;
                world.another_process().await
            };
            let report = see_to_its_end(&world, another).await;
            ended_well(&world, &report, nth);
        }
    }
}

async fn one_call() -> World {
    given_an_agent()
        .with_tools("files", &["read"])
        .whose_model_says(json!([{"calls": [{"name": "mcp_files_read"}]}, say("Done.")]))
        .ready()
        .await
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_intent_was_written_and_not_acknowledged_is_in_doubt_and_not_made() {
    let world = one_call().await;
    // The run, the model request, the intent to call; then the store fails again.
    world.store.fail_at(2, Fault::AcknowledgementLost);
    (3..6).for_each(|nth| world.store.fail_at(nth, Fault::Refused));

    let execution = world.start().await;
    let run = execution.run.clone();
    let error = execution.until_idle().await.unwrap_err();

    assert!(matches!(error, RunnerError::Drive(_)), "{error}");
    assert_eq!(world.journal(&run).await.last(), Some(&"tool.started"));
    let report = world.resume(&run, Resume::default()).await.unwrap();
    assert_eq!((report.status, world.servers.calls()), (Status::Completed, vec![]));
    assert!(super::world::answer_to(&report, "call_1_1").starts_with("Outcome unknown"));
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_landed_outlives_a_store_that_is_away_for_a_moment() {
    let world = one_call().await;
    (2..5).for_each(|nth| world.store.fail_at(nth, Fault::Refused));

    let report = world.run().await;

    assert_eq!((report.status, world.servers.calls()), (Status::Completed, vec!["call_1_1".to_owned()]));
    assert_eq!(world.clock.slept(), [50, 200, 800].map(Duration::from_millis));
}

#[tokio::test(start_paused = true)]
async fn an_intent_that_was_written_and_not_acknowledged_is_acted_on_once() {
    let world = one_call().await;
    world.store.fail_at(2, Fault::AcknowledgementLost);

    let report = world.run().await;

    assert_eq!((report.status, world.servers.calls()), (Status::Completed, vec!["call_1_1".to_owned()]));
    assert_eq!(super::world::answer_to(&report, "call_1_1"), "read done");
    world.sink.was_told_everything(&report.run_id, report.version);
}

#[tokio::test(start_paused = true)]
async fn a_slow_store_delays_a_run_and_changes_nothing() {
    let (appends, journal) = undisturbed(Kept::InMemory).await;
    let world = a_bit_of_everything(Kept::InMemory).await;
    (0..appends).for_each(|nth| world.store.fail_at(nth, Fault::Slow(LEASE / 2)));

    let report = the_same_process(&world).await;

    assert_eq!(world.journal(&report.run_id).await, journal);
}
