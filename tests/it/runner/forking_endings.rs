//! Forks of ended runs: they call the model again, with their own budget, and receive the fork's message.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate::core::chat::Message;
use toolgate::core::error::ErrorCode;
use toolgate::core::policy::{Policy, Verdict};
use toolgate::core::run::{Limits, OnDeny, Status, TighterLimits};
use toolgate::runner::{AgentRunner, Fork, Report, RunnerError};

use super::world::{Given, World, answer_to, decisions, given_an_agent, no, said, say, yes};

/// A fork without a position, and its report.
async fn fork_in(runner: &AgentRunner, source: &Report, message: Option<&str>) -> Report {
    let fork = Fork { message: message.map(Message::user), ..Fork::default() };
    runner.fork(&source.run_id, fork).await.unwrap().until_idle().await.unwrap()
}

async fn fork(world: &World, source: &Report, message: Option<&str>) -> Report {
    fork_in(&world.runner, source, message).await
}

/// The number of model calls in a run, including copied ones.
async fn asked(world: &World, report: &Report) -> usize {
    world.journal(&report.run_id).await.iter().filter(|fact| **fact == "llm.call.started").count()
}

fn down() -> Value {
    json!({"fail": {"code": "provider_unavailable"}})
}

#[tokio::test(start_paused = true)]
async fn a_fork_of_a_failed_run_asks_the_model_and_hears_its_message() {
    let world = given_an_agent().whose_model_says(json!([down()])).ready().await;
    let source = world.run().await;
    assert_eq!((source.status, asked(&world, &source).await), (Status::Failed, 5));
    let repaired = given_an_agent().whose_model_says(json!([say("Better.")])).sharing(&world).await;

    let plain = fork_in(&repaired.runner, &source, None).await;
    let heard = fork_in(&repaired.runner, &source, Some("Try once more")).await;

    assert_eq!((plain.status, said(&plain)), (Status::Completed, vec!["user: Hello".into(), "model: Better.".into()]));
    assert_eq!(said(&heard), ["user: Hello", "user: Try once more", "model: Better."]);
}

#[tokio::test(start_paused = true)]
async fn a_fork_of_a_failed_run_has_all_its_attempts() {
    let world = given_an_agent().whose_model_says(json!([down()])).ready().await;
    let source = world.run().await;

    let copy = fork(&world, &source, None).await;

    assert_eq!((copy.status, asked(&world, &copy).await), (Status::Failed, 10), "five of them copied");
}

fn a_deletion_that_fails_when_denied() -> Given {
    given_an_agent()
        .with_tools("files", &["delete"])
        .that(|agent| agent.rules.on_deny = OnDeny::Fail)
        .whose_model_says(json!([{"calls": [{"name": "mcp_files_delete"}]}, say("Gone."), say("More.")]))
}

#[tokio::test(start_paused = true)]
async fn a_fork_of_a_run_that_a_person_denied_asks_that_person_again() {
    let world = a_deletion_that_fails_when_denied().whose_policy_says(Verdict::Ask, "*_delete").ready().await;
    let run = world.run().await.run_id;
    let source = world.resume(&run, decisions([("call_1_1", no("not today"))])).await.unwrap();
    assert_eq!(source.error.as_ref().unwrap().code.as_str(), "tool_denied");

    let copy = fork(&world, &source, Some("It is fine now")).await;
    assert_eq!((copy.status, copy.pending.len()), (Status::Pending, 1));
    let done = world.resume(&copy.run_id, decisions([("call_1_1", yes())])).await.unwrap();

    assert_eq!((done.status, answer_to(&done, "call_1_1")), (Status::Completed, "delete done".into()));
    assert!(said(&done).contains(&"user: It is fine now".to_owned()), "{:#?}", said(&done));
}

#[tokio::test(start_paused = true)]
async fn a_fork_of_a_run_that_the_policy_denied_asks_the_model_again() {
    let world = a_deletion_that_fails_when_denied().whose_policy_says(Verdict::Deny, "*_delete").ready().await;
    let source = world.run().await;
    assert_eq!(source.error.as_ref().unwrap().code.as_str(), "tool_denied");
    let lenient = world.another_process_where(|agent| agent.policy = Policy::allow_always().into()).await;

    let copy = fork_in(&lenient, &source, Some("It is fine now")).await;

    assert_eq!(copy.status, Status::Completed, "{:?}", copy.error);
    assert_eq!(said(&copy)[..2], ["user: Hello", "user: It is fine now"]);
    assert_eq!(asked(&world, &copy).await, 3, "one of them copied");
}

#[tokio::test(start_paused = true)]
async fn a_fork_of_a_run_whose_answers_were_invalid_has_its_corrections_again() {
    let turns = [say("bad"), say("bad"), say("bad"), say("42")];
    let world = given_an_agent()
        .that_checks_answers()
        .within(Limits { max_corrections: 1, ..Limits::default() })
        .whose_model_says(json!(turns))
        .ready()
        .await;
    let source = world.run().await;
    assert_eq!((source.error.as_ref().unwrap().code.as_str(), source.budget.corrections), ("validation", 2));

    let copy = fork(&world, &source, Some("A number!")).await;

    assert_eq!((copy.status, copy.budget.corrections), (Status::Completed, 1), "{:?}", copy.error);
    assert!(said(&copy).contains(&"user: A number!".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_fork_of_a_run_of_useless_calls_has_its_corrections_again() {
    let useless = json!({"calls": [{"name": "rm"}]});
    let world = given_an_agent()
        .within(Limits { max_corrections: 0, ..Limits::default() })
        .whose_model_says(json!([useless, say("Sorry.")]))
        .ready()
        .await;
    let source = world.run().await;
    assert_eq!(source.error.as_ref().unwrap().code.as_str(), "tool_failed");

    assert_eq!(said(&fork(&world, &source, None).await).last().unwrap(), "model: Sorry.");
}

fn two_turns_at_most() -> Given {
    let look = json!({"calls": [{"name": "mcp_files_read"}], "final_text": "As far as I got."});
    given_an_agent()
        .with_tools("files", &["read"])
        .within(Limits { max_iterations: 2, ..Limits::default() })
        .whose_model_says(json!([look, look, look, say("All of it."), say("And more.")]))
}

#[tokio::test(start_paused = true)]
async fn a_fork_of_a_run_at_its_turn_limit_goes_on_with_tools() {
    let world = two_turns_at_most().ready().await;
    let source = world.run().await;
    assert_eq!((source.status, world.servers.calls().len()), (Status::Incomplete, 2));

    let copy = fork(&world, &source, None).await;

    assert_eq!((copy.status, copy.output.as_ref().unwrap().text.as_str()), (Status::Completed, "All of it."));
    assert_eq!(world.servers.calls(), ["call_1_1", "call_2_1", "call_3_1"]);
    assert!(!said(&copy).contains(&"model: As far as I got.".to_owned()), "{:#?}", said(&copy));
}

#[tokio::test(start_paused = true)]
async fn a_fork_with_a_message_replies_to_the_last_word_of_a_turn_limit() {
    let world = two_turns_at_most().ready().await;
    let source = world.run().await;

    let copy = fork(&world, &source, Some("Go on")).await;

    let said = said(&copy);
    assert_eq!(said[said.len() - 3..], ["model: As far as I got.", "user: Go on", "model: All of it."]);
    assert_eq!(copy.status, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_fork_of_a_completed_run_asks_the_model_again() {
    let world = given_an_agent().whose_model_says(json!([say("One.")])).ready().await;
    let source = world.run().await;
    let other = given_an_agent().whose_model_says(json!([say("Another one.")])).sharing(&world).await;

    let copy = fork_in(&other.runner, &source, None).await;

    assert_eq!(said(&copy), ["user: Hello", "model: Another one."]);
}

#[tokio::test(start_paused = true)]
async fn a_fork_of_a_run_past_its_deadline_has_all_its_time() {
    let world = given_an_agent()
        .within(Limits { deadline_s: Some(60), ..Limits::default() })
        .with_an_external_tool("order")
        .whose_model_says(json!([{"calls": [{"name": "ext_order"}]}, say("Done.")]))
        .ready()
        .await;
    let run = world.run().await.run_id;
    tokio::time::advance(Duration::from_secs(61)).await;
    let source = world.runner.resume(&run, Default::default()).await.unwrap();
    assert_eq!(source.status, Status::Expired);

    let copy = fork(&world, &source, None).await;

    assert_eq!((copy.status, copy.pending.len()), (Status::Pending, 1));
}

#[tokio::test(start_paused = true)]
async fn a_fork_of_a_cancelled_run_goes_on_where_it_was() {
    let world = given_an_agent()
        .with_an_external_tool("order")
        .whose_model_says(json!([{"calls": [{"name": "ext_order"}]}, say("Done.")]))
        .ready()
        .await;
    let run = world.run().await.run_id;
    let source = world.runner.cancel(&run, None, None).await.unwrap();

    assert_eq!(fork(&world, &source, None).await.status, Status::Pending);
}

#[tokio::test(start_paused = true)]
async fn a_fork_counts_only_what_it_used_itself() {
    let turn = |text: &str| json!({"say": text, "usage": {"input_tokens": 90, "output_tokens": 10, "cost_usd": 0.5}});
    let world = given_an_agent()
        .within(Limits { max_tokens: Some(150), ..Limits::default() })
        .whose_model_says(json!([turn("One."), turn("Two.")]))
        .ready()
        .await;
    let source = world.run().await;

    let copy = fork(&world, &source, Some("And?")).await;

    assert_eq!((copy.status, copy.budget.iterations), (Status::Completed, 1));
    assert_eq!(copy.budget.usage.total_tokens(), Some(100), "{:?}", copy.budget.usage);
    assert_eq!(world.runner.report(&copy.run_id).await.unwrap().budget.usage, copy.budget.usage);
}

#[tokio::test(start_paused = true)]
async fn a_fork_has_the_limits_it_names_within_those_of_its_agent() {
    let world = two_turns_at_most().ready().await;
    let source = world.run().await;
    let roomy = world.another_process_where(|agent| agent.limits.max_iterations = 9).await;
    let limited = |max_iterations| Fork {
        limits: TighterLimits { max_iterations: Some(max_iterations), ..TighterLimits::default() },
        ..Fork::default()
    };

    let wider = roomy.fork(&source.run_id, limited(10)).await.unwrap_err();
    let own = roomy.fork(&source.run_id, Fork::default()).await.unwrap().until_idle().await.unwrap();
    let named = roomy.fork(&source.run_id, limited(9)).await.unwrap().until_idle().await.unwrap();
    let again = roomy.fork(&named.run_id, limited(1)).await.unwrap().until_idle().await.unwrap();

    assert!(matches!(wider, RunnerError::WiderLimit { .. }), "{wider}");
    assert_eq!((own.budget.limits.max_iterations, named.budget.limits.max_iterations), (2, 9));
    assert_eq!((again.budget.limits.max_iterations, again.budget.iterations), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_fork_has_no_more_than_its_agent_has_by_now() {
    let world = two_turns_at_most().ready().await;
    let source = world.run().await;
    let strict = world.another_process_where(|agent| agent.limits.max_iterations = 1).await;

    let copy = fork_in(&strict, &source, None).await;

    assert_eq!(copy.budget.limits.max_iterations, 1);
}

#[tokio::test(start_paused = true)]
async fn a_fork_of_a_run_without_tool_budget_tells_the_model_that_it_has_one() {
    let look = json!({"calls": [{"name": "mcp_files_read"}]});
    let world = given_an_agent()
        .with_tools("files", &["read"])
        .within(Limits { max_tool_interactions: 1, ..Limits::default() })
        .whose_model_says(json!([look, say("As far as I got."), look, say("All of it.")]))
        .ready()
        .await;
    let source = world.run().await;
    assert!(said(&source).iter().any(|line| line.contains("tool budget of this run is used up")));

    let copy = fork(&world, &source, Some("Go on")).await;

    assert!(said(&copy).iter().any(|line| line.contains("The tool budget was renewed")), "{:#?}", said(&copy));
    assert_eq!(world.servers.calls(), ["call_1_1", "call_3_1"]);
}

#[tokio::test(start_paused = true)]
async fn a_fork_at_a_position_where_it_would_end_is_refused_with_one_where_it_goes_on() {
    let world = given_an_agent().whose_model_says(json!([say("One.")])).ready().await;
    let source = world.run().await;
    let answered = source.version - 1;

    let refused = world.runner.fork(&source.run_id, Fork { at: Some(answered), ..Fork::default() }).await.unwrap_err();

    let RunnerError::ForkEnds { at, latest, status, .. } = &refused else { panic!("{refused}") };
    assert_eq!(
        (*at, *latest, *status, refused.code()),
        (answered, answered - 1, Status::Completed, ErrorCode::Validation)
    );
    let copy = world.runner.fork(&source.run_id, Fork { at: Some(*latest), ..Fork::default() }).await.unwrap();
    assert_eq!(copy.until_idle().await.unwrap().status, Status::Completed);
}
