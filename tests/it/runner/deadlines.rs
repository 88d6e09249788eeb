//! Deadlines: answers in time, late answers, and missing ones.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use toolgate::core::chat::Message;
use toolgate::core::id::{CallId, RunId};
use toolgate::core::policy::{Policy, Verdict};
use toolgate::core::run::{
    Channel, HumanAnswer, Input, Limits, PendingApproval, PendingItem, PendingQuestion, Resume, ResumeError, Status,
};
use toolgate::core::tool::{AskHuman, CallReply, Choice, ElicitationRequest, Question};
use toolgate::ports::Clock;
use toolgate::runner::RunnerError;

use super::world::{Given, World, answer_to, decisions, given_an_agent, no, nothing, results, say, yes};

fn within(seconds: u64) -> Given {
    given_an_agent()
        .with_tools("files", &["delete"])
        .that(move |agent| agent.policy = Policy { answer_timeout_s: Some(seconds), ..Policy::ask_always() }.into())
        .whose_model_says(json!([{"calls": [{"name": "mcp_files_delete"}]}, say("Done.")]))
}

fn now(world: &World) -> Timestamp {
    world.clock.now()
}

#[tokio::test(start_paused = true)]
async fn a_pending_item_has_a_start_and_a_deadline() {
    let world = within(60).ready().await;
    tokio::time::advance(Duration::from_secs(5)).await;
    let asked = now(&world);
    let report = world.run().await;
    let [PendingItem::Approval(PendingApproval { requested_at: since, expires_at: until, .. })] = &report.pending[..]
    else {
        panic!("{:?}", report.pending)
    };
    assert_eq!((*since, *until), (Some(asked), Some(asked + Duration::from_secs(60))));
}

#[tokio::test(start_paused = true)]
async fn a_late_decision_is_rejected_and_is_not_a_denial() {
    let world = within(60).ready().await;
    let run = world.run().await.run_id;
    tokio::time::advance(Duration::from_secs(60)).await;

    let refused = world.resume(&run, decisions([("call_1_1", yes())])).await.unwrap_err();
    let report = world.runner.resume_run(&run, nothing(), None).await.unwrap().until_idle().await.unwrap();

    let RunnerError::Refused(refusals) = refused else { panic!("{refused}") };
    assert_eq!(refusals, [ResumeError::TooLate { call_id: "call_1_1".into() }]);
    assert_eq!((report.status, world.servers.calls()), (Status::Completed, vec![]));
    let told = answer_to(&report, "call_1_1");
    assert!(
        told.contains("this call was neither approved nor denied in time") && told.contains("not a denial"),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_deadline_can_be_extended_but_not_shortened() {
    let world = within(60).ready().await;
    let run = world.run().await.run_id;
    let (later, earlier) = (now(&world) + Duration::from_secs(600), now(&world) + Duration::from_secs(30));

    let shorter = world.runner.extend(&run, "call_1_1".into(), earlier, "ann", Channel::Api).await.unwrap_err();
    world.runner.extend(&run, "call_1_1".into(), later, "ann", Channel::Api).await.unwrap();
    let again = world.runner.extend(&run, "call_1_1".into(), later, "ann", Channel::Api).await.unwrap();
    tokio::time::advance(Duration::from_secs(500)).await;
    let report = world.resume(&run, decisions([("call_1_1", yes())])).await.unwrap();

    let RunnerError::Refused(refusals) = shorter else { panic!("{shorter}") };
    assert!(matches!(refusals[..], [ResumeError::NotLater { .. }]), "{refusals:?}");
    assert_eq!(again.pending[0].expires_at(), Some(later));
    assert_eq!((report.status, world.servers.calls().len()), (Status::Completed, 1));
}

#[tokio::test(start_paused = true)]
async fn a_late_result_leaves_the_outcome_unknown() {
    let world = given_an_agent()
        .with_external(json!({"name": "order", "deadline_s": 60}))
        .whose_model_says(json!([{"calls": [{"name": "ext_order"}]}, say("Done.")]))
        .ready()
        .await;
    let waiting = world.run().await;
    assert_eq!(waiting.pending[0].expires_at(), Some(now(&world) + Duration::from_secs(60)));
    tokio::time::advance(Duration::from_secs(61)).await;

    let late = world.resume(&waiting.run_id, results([("call_1_1", json!("ordered"))])).await.unwrap_err();
    let report = world.runner.resume_run(&waiting.run_id, nothing(), None).await.unwrap().until_idle().await.unwrap();

    assert!(matches!(late, RunnerError::Refused(_)), "{late}");
    assert!(answer_to(&report, "call_1_1").contains("may or may not have taken effect"));
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_an_external_call_starts_at_its_approval() {
    let world = given_an_agent()
        .with_external(json!({"name": "order", "deadline_s": 60}))
        .whose_policy_says(Verdict::Ask, "ext_*")
        .whose_model_says(json!([{"calls": [{"name": "ext_order"}]}, say("Done.")]))
        .ready()
        .await;
    let run = world.run().await.run_id;
    tokio::time::advance(Duration::from_secs(1000)).await;

    let approved = world.resume(&run, decisions([("call_1_1", yes())])).await.unwrap();

    assert_eq!(approved.pending[0].kind(), "external_result");
    assert_eq!(approved.pending[0].expires_at(), Some(now(&world) + Duration::from_secs(60)));
}

#[tokio::test(start_paused = true)]
async fn a_run_past_its_own_deadline_has_expired() {
    let limits = Limits { deadline_s: Some(100), ..Limits::default() };
    let world = within(1000).within(limits).ready().await;
    let run = world.run().await.run_id;
    tokio::time::advance(Duration::from_secs(101)).await;

    let refused = world.resume(&run, decisions([("call_1_1", no("no"))])).await.unwrap_err();
    let report = world.runner.report(&run).await.unwrap();

    assert!(refused.to_string().contains("the run is over: expired"), "{refused}");
    assert_eq!((report.status, world.servers.calls()), (Status::Expired, vec![]));
}

fn asking(arguments: Value) -> Given {
    given_an_agent()
        .that(|agent| agent.rules.ask_human = Some(AskHuman { deadline_s: Some(3600) }))
        .that_checks_arguments()
        .whose_model_says(json!([{"calls": [{"name": "ask_human", "arguments": arguments}]}, say("Blue it is.")]))
}

fn answer(choice: Choice) -> Resume {
    let answer = HumanAnswer { choice, by: "ann".into(), via: Channel::Api };
    Resume::default().with("call_1_1", answer)
}

#[tokio::test(start_paused = true)]
async fn a_question_of_the_model_waits_for_the_users_answer() {
    let world =
        asking(json!({"question": "Which colour?", "options": ["red", "blue"], "free_text": false})).ready().await;
    let waiting = world.run().await;
    let [PendingItem::Question(PendingQuestion { ask, expires_at: until, .. })] = &waiting.pending[..] else {
        panic!("{:?}", waiting.pending)
    };
    assert_eq!((ask.question.as_str(), ask.options.len()), ("Which colour?", 2));
    assert_eq!(*until, Some(now(&world) + Duration::from_secs(3600)));

    let strange = world.resume(&waiting.run_id, answer(Choice::text("green"))).await.unwrap_err();
    let wrong = world.resume(&waiting.run_id, decisions([("call_1_1", yes())])).await.unwrap_err();
    let blue = answer(Choice { chosen: vec!["blue".into()], text: None });
    let report = world.resume(&waiting.run_id, blue.clone()).await.unwrap();
    let repeated = world.resume(&waiting.run_id, blue).await.unwrap();

    assert!(strange.to_string().contains("one of the options"), "{strange}");
    assert!(wrong.to_string().contains("an answer to the model's question"), "{wrong}");
    assert_eq!((report.status, answer_to(&report, "call_1_1")), (Status::Completed, "blue".into()));
    assert_eq!(repeated.version, report.version);
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_question_is_not_a_denial() {
    let world = asking(json!({"question": "Which colour?"})).ready().await;
    let run = world.run().await.run_id;
    tokio::time::advance(Duration::from_secs(3600)).await;

    let report = world.runner.resume_run(&run, nothing(), None).await.unwrap().until_idle().await.unwrap();

    assert!(answer_to(&report, "call_1_1").contains("There was no answer in time"));
}

#[tokio::test(start_paused = true)]
async fn an_empty_question_is_corrected_by_the_model() {
    let world = asking(json!({"question": "  "})).ready().await;
    let report = world.run().await;
    assert!(answer_to(&report, "call_1_1").contains("`question` is empty"));
}

#[tokio::test(start_paused = true)]
async fn without_permission_the_question_tool_is_not_available() {
    let world = asking(json!({"question": "Which?"})).that(|agent| agent.rules.ask_human = None).ready().await;
    let report = world.run().await;
    assert!(answer_to(&report, "call_1_1").contains("Tool does not exist"));
}

/// A server that takes 8 seconds, next to an external call.
fn slow_beside(order: Value) -> Given {
    given_an_agent()
        .with_tools("files", &["read"])
        .with_external(order)
        .where_servers(|servers| servers.take_ms("read", 8000))
        .whose_model_says(json!([{"calls": [{"name": "mcp_files_read"}, {"name": "ext_order"}]}, say("Done.")]))
}

/// Both require approval within 6 seconds.
async fn at_work_since_a_yes() -> (World, toolgate::runner::Execution) {
    let policy = Policy { answer_timeout_s: Some(6), ..Policy::ask_always() };
    let world = slow_beside(json!({"name": "order"})).that(|agent| agent.policy = policy.into()).ready().await;
    let run = world.run().await.run_id;
    let read = Input::Resume(decisions([("call_1_1", yes())]).partial());
    let execution = world.runner.resume_run(&run, read, None).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    (world, execution)
}

#[tokio::test(start_paused = true)]
async fn an_extension_during_an_active_run_counts() {
    let (world, execution) = at_work_since_a_yes().await;
    let (run, later) = (execution.run.clone(), now(&world) + Duration::from_secs(3600));

    world.runner.extend(&run, "call_1_2".into(), later, "ann", Channel::Api).await.unwrap();
    let report = execution.until_idle().await.unwrap();

    let pending: Vec<_> = report.pending.iter().map(|item| (item.kind(), item.expires_at())).collect();
    assert_eq!(pending, [("approval", Some(later))]);
    assert_eq!((world.servers.calls(), now(&world) < later), (vec!["call_1_1".to_owned()], true));
}

#[tokio::test(start_paused = true)]
async fn an_approval_in_time_during_an_active_run_counts() {
    let (world, execution) = at_work_since_a_yes().await;

    world.runner.record(&execution.run, decisions([("call_1_2", yes())])).await.unwrap();
    let report = execution.until_idle().await.unwrap();

    assert_eq!(report.pending.iter().map(PendingItem::kind).collect::<Vec<_>>(), ["external_result"]);
    assert!(!world.journal(&report.run_id).await.contains(&"pending.expired"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_the_run_does_not_wait_for_yet_is_not_late() {
    let ask = Policy { answer_timeout_s: Some(5), ..Policy::allow_always() };
    let of_the_application = slow_beside(json!({"name": "order", "deadline_s": 5}));
    let of_a_person = slow_beside(json!({"name": "order"}))
        .that(|agent| agent.policy = ask.into())
        .whose_policy_says(Verdict::Ask, "ext_*");
    for (given, kind) in [(of_the_application, "external_result"), (of_a_person, "approval")] {
        let world = given.ready().await;

        let report = world.run().await;

        let waits = now(&world);
        let pending: Vec<_> =
            report.pending.iter().map(|item| (item.kind(), item.requested_at(), item.expires_at())).collect();
        assert_eq!(pending, [(kind, Some(waits), Some(waits + Duration::from_secs(5)))]);
        tokio::time::advance(Duration::from_secs(5)).await;
        let late = world.runner.resume_run(&report.run_id, nothing(), None).await.unwrap().until_idle().await.unwrap();
        assert_eq!(late.status, Status::Completed, "from then on there is no more time than that");
    }
}

#[tokio::test(start_paused = true)]
async fn an_early_extension_counts_and_never_shortens() {
    let world = slow_beside(json!({"name": "order", "deadline_s": 60})).ready().await;
    let (execution, began) = (world.start().await, now(&world));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let give = async |seconds| {
        let until = began + Duration::from_secs(seconds);
        world.runner.extend(&execution.run, "call_1_2".into(), until, "ann", Channel::Api).await
    };

    let past = give(1).await.unwrap_err();
    give(10).await.unwrap();
    let short = world.journal(&execution.run).await;
    give(10).await.unwrap();
    assert_eq!(world.journal(&execution.run).await, short, "the same time once more");
    let report = execution.until_idle().await.unwrap();

    let RunnerError::Refused(past) = past else { panic!("{past}") };
    assert!(matches!(&past[..], [ResumeError::InThePast { .. }]), "{past:?}");
    assert_eq!(report.pending[0].expires_at(), Some(began + Duration::from_secs(8 + 60)));
}

#[tokio::test(start_paused = true)]
async fn an_item_without_a_deadline_gets_none_by_an_extension() {
    let form = Question::Form { message: "Which size?".into(), schema: json!({"type": "object"}) };
    let questions = [("size".to_owned(), form)].into();
    let asks = CallReply::NeedsInput(ElicitationRequest {
        questions,
        state: None,
        task: None,
        restarts: false,
        interrupted: false,
    });
    let of_a_server = given_an_agent()
        .with_tools("shop", &["buy"])
        .where_servers(|servers| servers.reply("buy", [asks]))
        .whose_model_says(json!([{"calls": [{"name": "mcp_shop_buy"}]}]));
    let question = json!({"question": "Which colour?"});
    let of_the_model = asking(question).that(|agent| agent.rules.ask_human = Some(AskHuman { deadline_s: None }));
    for given in [of_the_model, of_a_server] {
        let world = given.ready().await;
        let waiting = world.run().await;
        let until = now(&world) + Duration::from_secs(1);

        let refused = world.runner.extend(&waiting.run_id, "call_1_1".into(), until, "ann", Channel::Api).await;

        let refused = refused.unwrap_err();
        assert_eq!(refused, RunnerError::Refused(vec![ResumeError::NoDeadline { call_id: "call_1_1".into() }]));
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(world.runner.report(&waiting.run_id).await.unwrap().pending, waiting.pending);
        assert!(world.runner.expire_due().await.unwrap().is_empty());
    }
}

/// The names of a run's events, and its pending items.
async fn state(world: &World, run: &RunId) -> (Vec<&'static str>, Vec<PendingItem>) {
    (world.journal(run).await, world.runner.report(run).await.unwrap().pending)
}

#[tokio::test(start_paused = true)]
async fn an_answer_rejected_as_late_does_not_change_the_run() {
    let world = within(60).ready().await;
    let run = world.run().await.run_id;
    let before = state(&world, &run).await;
    tokio::time::advance(Duration::from_secs(61)).await;
    let (call, until) = (CallId::from("call_1_1"), now(&world) + Duration::from_secs(60));

    let refused = [
        world.resume(&run, decisions([("call_1_1", yes())])).await.unwrap_err(),
        world.runner.record(&run, decisions([("call_1_1", no("no"))])).await.unwrap_err(),
        world.runner.extend(&run, call.clone(), until, "ann", Channel::Api).await.unwrap_err(),
    ];
    world.runner.record(&run, Resume::default()).await.unwrap();

    for error in refused {
        assert_eq!(error, RunnerError::Refused(vec![ResumeError::TooLate { call_id: call.clone() }]));
    }
    assert_eq!(state(&world, &run).await, before);
    assert!(world.another_process().await.recover().await.unwrap().is_empty(), "it is not orphaned");
    let swept = world.runner.expire_due().await.unwrap().remove(0).taken.unwrap().until_idle().await.unwrap();
    assert_eq!((swept.status, world.servers.calls()), (Status::Completed, vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_message_to_an_overdue_run_is_read_when_it_resumes() {
    let world = within(60).ready().await;
    let run = world.run().await.run_id;
    tokio::time::advance(Duration::from_secs(61)).await;

    let told = world.runner.message(&run, Message::user("Never mind.")).await.unwrap();
    let done = world.runner.expire_due().await.unwrap().remove(0).taken.unwrap().until_idle().await.unwrap();

    assert_eq!((told.status, told.pending.len(), done.status), (Status::Pending, 1, Status::Completed));
    assert!(done.messages.iter().any(|message| message.text().contains("Never mind.")), "{:?}", done.messages);
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_time_is_accepted_next_to_an_overdue_item() {
    for deadline in [60, 600] {
        let world = given_an_agent()
            .with_external(json!({"name": "order", "deadline_s": 60}))
            .with_external(json!({"name": "pay", "deadline_s": deadline}))
            .whose_model_says(json!([{"calls": [{"name": "ext_order"}, {"name": "ext_pay"}]}, say("Done.")]))
            .ready()
            .await;
        let waiting = world.run().await;
        tokio::time::advance(Duration::from_secs(61)).await;
        let saw = Resume { expected_version: Some(waiting.version), ..results([("call_1_2", json!("paid"))]) };

        let answered = world.resume(&waiting.run_id, saw).await;

        match deadline {
            60 => assert!(matches!(answered, Err(RunnerError::Refused(_))), "{answered:?}"),
            _ => {
                let report = answered.unwrap();
                assert_eq!((report.status, answer_to(&report, "call_1_2")), (Status::Completed, "paid".into()));
                assert!(answer_to(&report, "call_1_1").contains("no result in time"));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_expiry_next_to_an_open_item_is_written_on_resume() {
    let world = given_an_agent()
        .with_external(json!({"name": "order", "deadline_s": 60}))
        .with_an_external_tool("pay")
        .whose_model_says(json!([{"calls": [{"name": "ext_order"}, {"name": "ext_pay"}]}, say("Done.")]))
        .ready()
        .await;
    let run = world.run().await.run_id;
    tokio::time::advance(Duration::from_secs(61)).await;

    let swept = world.runner.expire_due().await.unwrap().remove(0).taken.unwrap().until_idle().await.unwrap();

    let pending: Vec<&str> = swept.pending.iter().map(|item| item.call_id().unwrap().as_str()).collect();
    assert_eq!((swept.status, pending), (Status::Pending, vec!["call_1_2"]));
    assert!(world.journal(&run).await.contains(&"pending.expired"));
    assert!(world.runner.expire_due().await.unwrap().is_empty(), "it was written");
}
