//! Input that no run accepts: longer than a model could read, nested deeper than a journal can store, or duplicated.

use serde_json::{Map, Value, json};
use toolgate::core::chat::Message;
use toolgate::core::json::MAX_DEPTH;
use toolgate::core::policy::{Policy, Verdict};
use toolgate::core::run::{
    Channel, Decision, ElicitationAnswer, Ending, Event, HumanAnswer, Limits, ResumeError, Status,
};
use toolgate::core::tool::{Arguments, AskHuman, CallReply, Choice, ElicitationRequest, ElicitationResponse, Question};
use toolgate::runner::{Report, Resume, RunnerError};

use super::world::{Given, World, decisions, given_an_agent, no, say, yes, yes_but_with};

/// More than the default of `max_result_bytes`.
const TOO_LONG: usize = 70_000;

async fn waiting(given: Given) -> (World, Report) {
    let world = given.ready().await;
    let report = world.run().await;
    assert_eq!(report.status, Status::Pending);
    (world, report)
}

fn a_deletion_of(path: &str) -> Given {
    given_an_agent().with_tools("files", &["delete"]).whose_policy_says(Verdict::Ask, "*_delete").whose_model_says(
        json!([
            {"calls": [{"name": "mcp_files_delete", "arguments": {"path": path}}]}, say("Done."),
        ]),
    )
}

fn a_question(question: Value) -> Given {
    given_an_agent()
        .that(|agent| agent.rules.ask_human = Some(AskHuman::default()))
        .whose_model_says(json!([{"calls": [{"name": "ask_human", "arguments": question}]}, say("Done.")]))
}

fn answer(choice: Choice) -> Resume {
    let answer = HumanAnswer { choice, by: "ann".into(), via: Default::default() };
    Resume::default().with("call_1_1", answer)
}

/// The rejection, which leaves the run unchanged.
async fn refused(world: &World, waiting: &Report, resume: Resume) -> String {
    let refused = world.resume(&waiting.run_id, resume).await.unwrap_err();
    let after = world.runner.report(&waiting.run_id).await.unwrap();
    assert_eq!((after.version, after.pending), (waiting.version, waiting.pending.clone()));
    match refused {
        RunnerError::Refused(refusals) if matches!(&refusals[..], [ResumeError::Invalid { .. }]) => {
            refusals[0].to_string()
        }
        other => panic!("{other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_bounded_like_a_result() {
    let (world, waiting) = waiting(a_question(json!({"question": "Which?"}))).await;

    let told = refused(&world, &waiting, answer(Choice::text("long".repeat(TOO_LONG)))).await;

    assert!(told.contains("more than 65536 bytes") && told.contains("max_result_bytes"), "{told}");
    let within = answer(Choice::text("a".repeat(60_000)));
    assert_eq!(world.resume(&waiting.run_id, within).await.unwrap().status, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn the_bound_is_the_runs_own() {
    let limits = Limits { max_result_bytes: 4096, ..Limits::default() };
    let (world, waiting) = waiting(a_question(json!({"question": "Which?"})).within(limits)).await;
    let told = refused(&world, &waiting, answer(Choice::text("a".repeat(5000)))).await;
    assert!(told.contains("more than 4096 bytes"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn an_option_is_chosen_once() {
    let question = json!({"question": "Which?", "options": ["a", "b"], "multiple": true});
    let (world, waiting) = waiting(a_question(question)).await;

    let twice = answer(Choice { chosen: vec!["a".into(), "b".into(), "a".into()], text: None });
    let told = refused(&world, &waiting, twice).await;

    assert!(told.contains("chooses \"a\" twice"), "{told}");
    let both = answer(Choice { chosen: vec!["a".into(), "b".into()], text: None });
    assert_eq!(world.resume(&waiting.run_id, both).await.unwrap().status, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_decision_is_bounded_with_its_reason_its_name_and_its_arguments() {
    let long = || "long".repeat(TOO_LONG);
    let (world, waiting) = waiting(a_deletion_of("a")).await;
    let too_long = [no(&long()), Decision { by: long(), ..yes() }, yes_but_with(json!({"path": long()}))];
    for decision in too_long {
        let told = refused(&world, &waiting, decisions([("call_1_1", decision)])).await;
        assert!(told.contains("the decision") && told.contains("more than"), "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn long_arguments_may_be_edited() {
    let long = "a".repeat(TOO_LONG);
    let (world, waiting) = waiting(a_deletion_of(&long)).await;
    let edited = yes_but_with(json!({"path": format!("{long} and more")}));
    let report = world.resume(&waiting.run_id, decisions([("call_1_1", edited)])).await.unwrap();
    assert_eq!(report.status, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn edited_arguments_are_no_deeper_than_a_journal_can_give_back() {
    let nested = |levels: usize| (1..levels).fold(json!({}), |inner, _| json!({"in": inner}));
    let edited = |levels: usize| {
        let object: Map<String, Value> = nested(levels).as_object().unwrap().clone();
        decisions([("call_1_1", Decision { edited_arguments: Some(Arguments::Object(object)), ..yes() })])
    };
    let (world, waiting) = waiting(a_deletion_of("a")).await;

    let told = refused(&world, &waiting, edited(MAX_DEPTH + 1)).await;

    assert!(told.contains("nested deeper than 100 levels"), "{told}");
    let report = world.resume(&waiting.run_id, edited(MAX_DEPTH)).await.unwrap();
    assert_eq!((report.status, world.servers.arguments_of("call_1_1")), (Status::Completed, nested(MAX_DEPTH)));
}

#[tokio::test(start_paused = true)]
async fn answers_to_a_server_are_bounded() {
    let form = Question::Form { message: "Which size?".into(), schema: json!({"type": "object"}) };
    let questions = [("size".to_owned(), form)].into();
    let asks = CallReply::NeedsInput(ElicitationRequest {
        questions,
        state: None,
        task: None,
        restarts: false,
        interrupted: false,
    });
    let given = given_an_agent()
        .with_tools("shop", &["buy"])
        .where_servers(|servers| servers.reply("buy", [asks]))
        .whose_model_says(json!([{"calls": [{"name": "mcp_shop_buy"}]}]));
    let (world, waiting) = waiting(given).await;
    let form = json!({"size": "long".repeat(TOO_LONG)}).as_object().unwrap().clone();
    let reactions = [("size".to_owned(), ElicitationResponse::accept(form))].into();
    let given = ElicitationAnswer { reactions, by: "ann".into(), via: Default::default(), repeat: false };

    let told = refused(&world, &waiting, Resume::default().with("call_1_1", given)).await;

    assert!(told.contains("the answers to the server") && told.contains("more than 65536 bytes"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn messages_and_names_are_bounded_and_cancel_reasons_truncated() {
    let policy = Policy { answer_timeout_s: Some(60), ..Policy::ask_always() };
    let (world, waiting) = waiting(a_deletion_of("a").that(|agent| agent.policy = policy.into())).await;
    let (run, long) = (&waiting.run_id, "x".repeat(TOO_LONG));
    let until = waiting.pending[0].expires_at().unwrap() + std::time::Duration::from_secs(60);

    let said = world.runner.message(run, Message::user(&*long)).await.unwrap_err();
    let extended = world.runner.extend(run, "call_1_1".into(), until, long.clone(), Channel::Api).await.unwrap_err();
    let before = world.runner.report(run).await.unwrap();
    world.runner.cancel(run, Some(long), None).await.unwrap();

    assert!(said.to_string().starts_with("the message has more than 65536 bytes"), "{said}");
    assert!(extended.to_string().contains("more than 65536 bytes"), "{extended}");
    assert_eq!((before.version, before.pending), (waiting.version, waiting.pending));
    let journal = world.runner.journal(run).await.unwrap();
    let Event::Ended { ending: Ending::Cancelled { reason: Some(reason), .. } } = &journal.last().unwrap().event else {
        panic!("it did not stop: {:?}", journal.last());
    };
    assert!(reason.len() <= 65_536 && reason.ends_with('\u{2026}'), "{} bytes", reason.len());
}
