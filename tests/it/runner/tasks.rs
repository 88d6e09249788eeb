//! MCP tasks while the run has other work, and after it has ended: the run waits for no server longer than necessary,
//! and no server works without a run.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate::core::run::{ElicitationAnswer, Input, Limits, PendingItem, PendingTask, Resume, Status};
use toolgate::core::tool::{
    CallReply, ElicitationRequest, ElicitationResponse, Outcome, Question, TaskHandle, ToolOutput,
};
use toolgate::runner::{Execution, Report};

use super::world::{Given, Kept, World, answer_to, given_an_agent, on_every_store, results, say};

const TASK: &str = "task_7";
const PRINT: &str = "call_1_1";

fn handle() -> TaskHandle {
    TaskHandle { id: TASK.into(), message: None, poll_ms: None, ttl_ms: None }
}

fn task() -> CallReply {
    CallReply::Task(handle())
}

fn done(text: &str) -> CallReply {
    Outcome::Returned(ToolOutput::text(text)).into()
}

fn asks(schema: Value) -> CallReply {
    let questions = BTreeMap::from([("size".to_owned(), Question::Form { message: "Which size?".into(), schema })]);
    CallReply::NeedsInput(ElicitationRequest {
        questions,
        state: None,
        task: Some(handle()),
        restarts: false,
        interrupted: false,
    })
}

fn a_form() -> CallReply {
    asks(json!({"type": "object", "properties": {"size": {"type": "number"}}}))
}

/// A model that prints, and calls two external tools at the same time.
fn printing(replies: impl IntoIterator<Item = CallReply>) -> Given {
    let calls = ["mcp_shop_print", "ext_order", "ext_order"].map(|name| json!({"name": name}));
    given_an_agent()
        .with_tools("shop", &["print"])
        .with_an_external_tool("order")
        .where_servers(|servers| servers.reply("print", replies))
        .that_polls_every(Duration::from_millis(20))
        .whose_model_says(json!([{"calls": calls}, say("It says: {{last_result}}.")]))
}

/// A model that only prints.
fn printing_only(replies: impl IntoIterator<Item = CallReply>) -> Given {
    let turns = json!([{"calls": [{"name": "mcp_shop_print"}]}, say("It says: {{last_result}}.")]);
    printing(replies).whose_model_says(turns)
}

fn given(call: &str) -> Resume {
    results([(call, json!("ordered"))]).partial()
}

async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let waits = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waits).await.expect("it comes about");
}

/// Resumes the run with these answers. A hang is a failure.
async fn resume_run(world: &World, report: &Report, resume: Resume) -> Execution {
    let taken_up = world.runner.resume_run(&report.run_id, Input::Resume(resume), None);
    tokio::time::timeout(Duration::from_secs(20), taken_up).await.expect("it is taken up").unwrap()
}

async fn completed(world: &World, report: &Report) -> usize {
    world.journal(&report.run_id).await.iter().filter(|fact| **fact == "tool.completed").count()
}

async fn stopped(world: &World) -> Vec<String> {
    world.runner.close().await;
    world.servers.stopped_tasks()
}

on_every_store! {
    async fn input_is_journaled_while_the_server_of_a_task_is_silent(kept: Kept) {
        let world = printing([task()]).where_servers(|servers| servers.hang_in_task(TASK)).kept(kept).await;
        let waiting = world.run().await;
        assert_eq!(waiting.pending.len(), 3);

        let first = resume_run(&world, &waiting, given("call_1_2")).await;
        until(async || world.servers.asked_in_vain(TASK) == 1).await;
        assert_eq!(completed(&world, &waiting).await, 1);

        let second = resume_run(&world, &waiting, given("call_1_3")).await;
        assert_eq!(first.until_idle().await.unwrap().status, Status::Pending, "it made room for the second one");
        until(async || world.servers.asked_in_vain(TASK) == 2).await;
        assert_eq!(completed(&world, &waiting).await, 2);

        world.runner.cancel(&waiting.run_id, None, None).await.unwrap();
        second.until_idle().await.unwrap();
    }

    async fn a_task_result_after_an_input_is_used_in_the_same_execution(kept: Kept) {
        let world = printing([task()])
            .where_servers(|servers| servers.say_of_task(TASK, [Ok(done("printed"))]))
            .kept(kept)
            .await;
        let waiting = world.run().await;

        let both = results([("call_1_2", json!("ordered")), ("call_1_3", json!("ordered"))]);
        let report = world.resume(&waiting.run_id, Resume { partial: true, ..both }).await.unwrap();

        assert_eq!(report.status, Status::Completed);
        assert_eq!(answer_to(&report, PRINT), "printed");
        let resumed = world.journal(&report.run_id).await.iter().filter(|fact| **fact == "execution.resumed").count();
        assert_eq!(resumed, 1);
    }

    async fn a_task_that_waits_for_an_answer_is_stopped_on_cancel(kept: Kept) {
        let world = printing_only([a_form()]).kept(kept).await;
        let waiting = world.run().await;
        assert!(matches!(&waiting.pending[..], [PendingItem::Input(_)]), "{:?}", waiting.pending);

        world.runner.cancel(&waiting.run_id, None, None).await.unwrap();

        assert_eq!(stopped(&world).await, [TASK]);
    }

    async fn a_task_that_receives_its_answer_is_stopped_on_cancel(kept: Kept) {
        let world = printing_only([a_form()]).kept(kept).await;
        let waiting = world.run().await;
        world.servers.hang_in("print");
        let reactions = BTreeMap::from([("size".to_owned(), ElicitationResponse::decline())]);
        let answer = ElicitationAnswer { reactions, by: "ann".into(), via: Default::default(), repeat: false };
        let execution = resume_run(&world, &waiting, Resume::default().with(PRINT, answer)).await;
        until(async || !world.servers.told().is_empty()).await;

        world.runner.cancel(&waiting.run_id, None, None).await.unwrap();
        assert_eq!(execution.until_idle().await.unwrap().status, Status::Cancelled);

        assert_eq!(stopped(&world).await, [TASK]);
    }

    async fn a_task_created_after_the_cancel_is_stopped(kept: Kept) {
        let world = printing_only([task()])
            .where_servers(|servers| servers.take_ms("print", 300))
            .that_polls_every(Duration::from_secs(60))
            .kept(kept)
            .await;
        let execution = world.start().await;
        until(async || !world.servers.calls().is_empty()).await;

        world.another_process().await.cancel(&execution.run, None, None).await.unwrap();
        assert_eq!(execution.until_idle().await.unwrap().status, Status::Cancelled);

        assert_eq!(stopped(&world).await, [TASK]);
    }

    async fn a_call_suspended_with_too_much_data_fails_alone(kept: Kept) {
        let deep = (0..120).fold(json!({}), |inner, _| json!([inner]));
        for (reply, why) in [
            (asks(deep), "a form in it is nested deeper than 100 levels"),
            (asks(json!({"title": "x".repeat(2 << 20)})), "bytes; the maximum is 1048576"),
            (CallReply::Task(TaskHandle { id: "x".repeat(5000), ..handle() }), "has 5000 bytes; the maximum is 4096"),
        ] {
            let world = printing_only([reply]).kept(kept).await;

            let report = world.run().await;

            assert_eq!(report.status, Status::Completed);
            assert!(answer_to(&report, PRINT).contains(why), "{}", answer_to(&report, PRINT));
        }
    }

    async fn long_task_messages_are_truncated(kept: Kept) {
        let message = Some("x".repeat(10_000));
        let world = printing_only([CallReply::Task(TaskHandle { message, ..handle() })]).kept(kept).await;
        let report = world.run().await;
        let [PendingItem::Task(PendingTask { task, .. })] = &report.pending[..] else { panic!("{:?}", report.pending) };
        assert_eq!(task.message.as_ref().map(String::len), Some(4096));
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_is_stopped_when_its_run_comes_to_its_deadline() {
    let world = printing([task()])
        .within(Limits { deadline_s: Some(1), ..Limits::default() })
        .where_servers(|servers| servers.say_of_task(TASK, [Ok(task())]))
        .ready()
        .await;
    let waiting = world.run().await;
    tokio::time::sleep(Duration::from_secs(2)).await;

    world.resume(&waiting.run_id, given("call_1_2")).await.unwrap_err();

    assert_eq!(world.runner.report(&waiting.run_id).await.unwrap().status, Status::Expired);
    assert_eq!(stopped(&world).await, [TASK]);
}

#[tokio::test(start_paused = true)]
async fn a_finished_task_is_not_stopped() {
    let world =
        printing_only([task()]).where_servers(|servers| servers.say_of_task(TASK, [Ok(done("printed"))])).ready().await;
    let waiting = world.run().await;
    assert_eq!(world.resume(&waiting.run_id, Resume::default()).await.unwrap().status, Status::Completed);
    world.runner.cancel(&waiting.run_id, None, None).await.unwrap_err();
    assert_eq!(stopped(&world).await, [""; 0]);
}
