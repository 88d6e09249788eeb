//! Suspended calls: servers that ask for input, or that continue a call as a task. Only the run waits.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use toolgate::core::run::{ElicitationAnswer, Input, PendingInput, PendingItem, PendingTask, ResumeError, Status};
use toolgate::core::tool::{
    Action, CallReply, ElicitationRequest, ElicitationResponse, ElicitationResponses, Outcome, Question, TaskHandle,
    ToolOutput,
};
use toolgate::runner::{Fork, PollOutcome, Resume, RunnerError};

use super::world::{Given, Kept, LEASE, World, answer_to, decisions, given_an_agent, no, on_every_store, results, say};

const CALL: &str = "call_1_1";

fn a_question(state: &str) -> CallReply {
    let schema = json!({"type": "object", "required": ["size"], "properties": {
        "size": {"type": "number"}, "colour": {"type": "string", "default": "red"},
    }});
    let form = Question::Form { message: "Which size?".into(), schema };
    let questions = BTreeMap::from([("size".to_owned(), form)]);
    CallReply::NeedsInput(ElicitationRequest {
        questions,
        state: Some(state.into()),
        task: None,
        restarts: false,
        interrupted: false,
    })
}

fn done(text: &str) -> CallReply {
    Outcome::Returned(ToolOutput::text(text)).into()
}

fn task(message: Option<&str>) -> CallReply {
    let message = message.map(str::to_owned);
    CallReply::Task(TaskHandle { id: "task_7".into(), message, poll_ms: Some(250), ttl_ms: None })
}

fn a_call_of(tool: &str) -> Given {
    let call = json!({"calls": [{"name": format!("mcp_shop_{tool}"), "arguments": {"shirt": 1}}]});
    given_an_agent().with_tools("shop", &[tool]).whose_model_says(json!([call, say("It says: {{last_result}}.")]))
}

fn answers(each: impl IntoIterator<Item = (&'static str, ElicitationResponse)>) -> Resume {
    let reactions: ElicitationResponses = each.into_iter().map(|(key, reaction)| (key.to_owned(), reaction)).collect();
    let answer = ElicitationAnswer { reactions, by: "ann".into(), via: Default::default(), repeat: false };
    Resume::default().with(CALL, answer)
}

fn size(size: Value) -> Resume {
    answers([("size", ElicitationResponse::accept(json!({"size": size}).as_object().unwrap().clone()))])
}

fn refusal(refused: Result<toolgate::runner::Report, RunnerError>) -> ResumeError {
    match refused {
        Err(RunnerError::Refused(refusals)) if refusals.len() == 1 => refusals[0].clone(),
        other => panic!("expected one refusal, got {other:?}"),
    }
}

async fn asked(kept: Kept) -> World {
    a_call_of("buy").where_servers(|servers| servers.reply("buy", [a_question("s1"), done("bought")])).kept(kept).await
}

on_every_store! {
    async fn an_elicitation_becomes_a_pending_item(kept: Kept) {
        let world = asked(kept).await;

        let report = world.run().await;

        assert_eq!(report.status, Status::Pending);
        let [PendingItem::Input(PendingInput { call_id, questions, restarts: false, .. })] = &report.pending[..] else {
            panic!("{:?}", report.pending)
        };
        assert_eq!((call_id.as_str(), questions["size"].message()), (CALL, "Which size?"));
        let facts = world.journal(&report.run_id).await;
        assert_eq!(facts[facts.len() - 2..], ["tool.started", "tool.input.required"]);
    }

    async fn any_process_sends_the_answer_with_its_state_and_defaults(kept: Kept) {
        let world = asked(kept).await;
        let waiting = world.run().await;

        let other = world.another_process().await;
        let report = other.resume(&waiting.run_id, size(json!(42))).await.unwrap();

        assert_eq!(report.output.unwrap().text, "It says: bought.");
        let told = world.servers.told();
        let [told] = &told[..] else { panic!("{told:?}") };
        assert_eq!(told.needed.state.as_deref(), Some("s1"));
        let reaction = &told.given.reactions["size"];
        assert_eq!((reaction.action, &reaction.content), (Action::Accept, &Some(filled(42))));
        let facts = world.journal(&waiting.run_id).await;
        let gone_on = ["execution.resumed", "tool.input.given", "tool.started", "tool.completed"];
        assert_eq!(facts[waiting.version as usize..][..4], gone_on);
    }

    async fn a_server_may_ask_again_and_get_the_same_answer(kept: Kept) {
        let world = a_call_of("buy")
            .where_servers(|servers| servers.reply("buy", [a_question("s1"), a_question("s2"), done("bought")]))
            .kept(kept)
            .await;
        let waiting = world.run().await;
        let again = world.resume(&waiting.run_id, size(json!(42))).await.unwrap();
        assert_eq!(again.pending.len(), 1, "asked again");

        let retried = world.resume(&waiting.run_id, size(json!(42))).await.unwrap();
        assert_eq!(retried.version, again.version, "the same resume once more is a retry");
        let seen = Resume { expected_version: Some(again.version), ..size(json!(42)) };
        let report = world.resume(&waiting.run_id, seen).await.unwrap();

        assert_eq!(report.status, Status::Completed);
        let states: Vec<_> = world.servers.told().iter().map(|told| told.needed.state.clone().unwrap()).collect();
        assert_eq!(states, ["s1", "s2"]);
    }

    async fn answers_to_other_questions_are_rejected_as_a_whole(kept: Kept) {
        let world = asked(kept).await;
        let waiting = world.run().await;

        let wrong = [
            (answers([]), "leave `size` open; asked are: `size`"),
            (answers([("size", ElicitationResponse::decline()), ("length", ElicitationResponse::decline())]), "answer `length`, which was not asked"),
            (answers([("size", ElicitationResponse::done())]), "\\\"size\\\" is a required property"),
        ];
        for (resume, complaint) in wrong {
            let refused = refusal(world.resume(&waiting.run_id, resume).await).to_string();
            assert!(refused.contains(complaint), "{refused}");
        }

        let approval = decisions([(CALL, no("no"))]);
        assert!(matches!(refusal(world.resume(&waiting.run_id, approval).await), ResumeError::WrongKind { .. }));
        let forged = results([(CALL, json!("forged"))]);
        assert!(matches!(refusal(world.resume(&waiting.run_id, forged).await), ResumeError::WrongKind { .. }));
        assert_eq!(world.runner.report(&waiting.run_id).await.unwrap().version, waiting.version);
        assert_eq!(world.servers.calls().len(), 1);
    }

    async fn a_person_may_decline_and_the_server_is_told(kept: Kept) {
        let world = asked(kept).await;
        let waiting = world.run().await;

        world.resume(&waiting.run_id, answers([("size", ElicitationResponse::decline())])).await.unwrap();

        assert_eq!(world.servers.told()[0].given.reactions["size"], ElicitationResponse::decline());
    }

    async fn a_task_keeps_the_run_pending_until_its_result(kept: Kept) {
        let world = a_call_of("print")
            .where_servers(|servers| {
                servers.reply("print", [task(None)]);
                servers.say_of_task("task_7", [Ok(task(Some("page 3 of 9"))), Err("it is away".into()), Ok(done("printed"))]);
            })
            .kept(kept)
            .await;
        let waiting = world.run().await;
        let [PendingItem::Task(PendingTask { task, .. })] = &waiting.pending[..] else { panic!("{:?}", waiting.pending) };
        assert_eq!((task.id.as_str(), task.poll_ms), ("task_7", Some(250)));

        let PollOutcome::StillWaits { statuses, again_in } = world.runner.poll_tasks(&waiting.run_id).await.unwrap() else {
            panic!("there was no news yet")
        };
        assert_eq!((statuses[0].message.as_deref(), again_in), (Some("page 3 of 9"), Duration::from_millis(250)));
        let away = world.resume(&waiting.run_id, Resume::default()).await.unwrap();
        assert_eq!((away.status, away.version), (Status::Pending, waiting.version), "nothing was written");
        let PollOutcome::GoesOn(execution) = world.runner.poll_tasks(&waiting.run_id).await.unwrap() else {
            panic!("the task is done")
        };

        assert_eq!(execution.until_idle().await.unwrap().output.unwrap().text, "It says: printed.");
        assert_eq!(world.servers.calls().len(), 1, "a task is asked about, not called again");
    }

    async fn a_task_may_ask_as_well_and_goes_on_with_the_answer(kept: Kept) {
        let CallReply::NeedsInput(needed) = a_question("s1") else { unreachable!() };
        let CallReply::Task(handle) = task(None) else { unreachable!() };
        let asks = CallReply::NeedsInput(ElicitationRequest { task: Some(handle), ..needed });
        let world = a_call_of("print")
            .where_servers(|servers| {
                servers.reply("print", [task(None), task(None)]);
                servers.say_of_task("task_7", [Ok(asks), Ok(done("printed"))]);
            })
            .kept(kept)
            .await;
        let waiting = world.run().await;

        let asking = world.resume(&waiting.run_id, Resume::default()).await.unwrap();
        assert_eq!(asking.pending[0].kind(), "elicitation");
        let working = world.resume(&waiting.run_id, size(json!(3))).await.unwrap();
        assert_eq!(working.pending[0].kind(), "task");
        let report = world.resume(&waiting.run_id, Resume::default()).await.unwrap();

        assert_eq!(report.status, Status::Completed);
        assert_eq!(world.servers.told()[0].needed.task.as_ref().unwrap().id, "task_7");
    }

    async fn a_cancelled_run_has_its_tasks_stopped(kept: Kept) {
        let world = a_call_of("print").where_servers(|servers| servers.reply("print", [task(None)])).kept(kept).await;
        let waiting = world.run().await;

        let report = world.runner.cancel(&waiting.run_id, None, None).await.unwrap();
        world.runner.close().await;

        assert_eq!(world.servers.stopped_tasks(), ["task_7"]);
        assert!(answer_to(&report, CALL).starts_with("Outcome unknown"), "{}", answer_to(&report, CALL));
    }

    async fn a_call_lost_after_its_answer_is_in_doubt(kept: Kept) {
        let world = asked(kept).await;
        let waiting = world.run().await;
        world.store.stop_renewing();
        world.servers.hang_in("buy");
        world.runner.resume_run(&waiting.run_id, Input::Resume(size(json!(42))), None).await.unwrap();
        while world.servers.told().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(LEASE * 2).await;

        let other = world.another_process().await;
        let report = other.recover().await.unwrap().remove(0).until_idle().await.unwrap();

        assert!(answer_to(&report, CALL).starts_with("Outcome unknown"), "{}", answer_to(&report, CALL));
        assert_eq!(world.servers.calls().len(), 2, "sent, and sent on with the answer; not once more");
    }

    async fn answers_have_to_fit_the_form_before_they_are_taken(kept: Kept) {
        let world = a_call_of("buy")
            .that_checks_arguments()
            .where_servers(|servers| servers.reply("buy", [a_question("s1"), done("bought")]))
            .kept(kept)
            .await;
        let waiting = world.run().await;

        let refused = refusal(world.resume(&waiting.run_id, size(json!("large"))).await);
        assert!(matches!(&refused, ResumeError::Invalid { what, .. } if what == "the answer to `size`"), "{refused:?}");

        let report = world.resume(&waiting.run_id, size(json!(42))).await.unwrap();
        assert_eq!(report.status, Status::Completed);
    }

    async fn a_fork_does_not_send_an_answer_a_second_time(kept: Kept) {
        let world = asked(kept).await;
        let waiting = world.run().await;
        let over = world.resume(&waiting.run_id, size(json!(42))).await.unwrap();
        let given = world.journal(&over.run_id).await.iter().position(|fact| *fact == "tool.input.given").unwrap();

        let fork = world.runner.fork(&over.run_id, Fork { at: Some(given as u64 + 1), ..Fork::default() }).await.unwrap().until_idle().await.unwrap();

        assert_eq!(fork.pending[0].kind(), "elicitation", "the fork is asked itself");
        assert_eq!(world.servers.calls().len(), 2);
    }
}

fn filled(size: i64) -> Map<String, Value> {
    json!({"size": size, "colour": "red"}).as_object().unwrap().clone()
}
