//! Rejected resumes. Nothing is written.

use serde_json::json;
use toolgate::core::chat::Message;
use toolgate::core::error::ErrorCode;
use toolgate::core::run::{Input, ResumeError, Status};
use toolgate::core::tool::{Outcome, ToolOutput};
use toolgate::runner::{Request, Resume, RunnerError};

use super::world::{World, decisions, given_an_agent, results, say, yes};

async fn two_orders() -> World {
    let order = json!({"name": "order", "result_schema": {"type": "object", "required": ["price"]}});
    given_an_agent()
        .with_external(order)
        .that_checks_arguments()
        .whose_model_says(json!([{"calls": [{"name": "ext_order"}, {"name": "ext_order"}]}, say("Done.")]))
        .ready()
        .await
}

fn priced(call: &str) -> (&str, serde_json::Value) {
    (call, json!({"price": 1}))
}

/// The reasons for the rejection, after a check that it left no trace.
async fn refused(resume: Resume) -> Vec<ResumeError> {
    let world = two_orders().await;
    let waiting = world.run().await;
    let told = world.sink.told();

    let error = world.resume(&waiting.run_id, resume).await.unwrap_err();

    assert_eq!(world.runner.report(&waiting.run_id).await.unwrap().version, waiting.version);
    assert_eq!(world.sink.told(), told);
    let RunnerError::Refused(refusals) = error else { panic!("{error}") };
    refusals
}

#[tokio::test(start_paused = true)]
async fn a_resume_is_refused_when_it_names_an_unknown_call() {
    let refusals = refused(results([priced("call_1_1"), priced("call_1_2"), priced("elsewhere")])).await;
    assert_eq!(refusals, [ResumeError::UnknownCall { call_id: "elsewhere".into() }]);
}

#[tokio::test(start_paused = true)]
async fn a_resume_is_refused_when_it_decides_where_a_result_is_owed() {
    let refusals = refused(decisions([("call_1_1", yes())]).partial()).await;
    let (expected, given) = ("a result from the caller".into(), "a decision".into());
    assert_eq!(refusals, [ResumeError::WrongKind { call_id: "call_1_1".into(), expected, given }]);
}

#[tokio::test(start_paused = true)]
async fn a_resume_is_refused_when_it_leaves_something_out_without_saying_so() {
    let refusals = refused(results([priced("call_1_2")])).await;
    assert_eq!(refusals, [ResumeError::Incomplete { missing: vec!["call_1_1".into()] }]);
}

#[tokio::test(start_paused = true)]
async fn a_resume_is_refused_when_it_answers_one_call_twice() {
    let refusals = refused(results([priced("call_1_1"), priced("call_1_1")]).partial()).await;
    assert_eq!(refusals, [ResumeError::Duplicate { call_id: "call_1_1".into() }]);
}

#[tokio::test(start_paused = true)]
async fn a_resume_is_refused_when_the_run_has_moved_on() {
    let late = Resume { expected_version: Some(3), ..results([priced("call_1_1"), priced("call_1_2")]) };
    let refusals = refused(late).await;
    assert!(matches!(&refusals[..], [ResumeError::VersionConflict { expected: 3, .. }]), "{refusals:?}");
}

#[tokio::test(start_paused = true)]
async fn a_resume_is_refused_when_a_result_breaks_its_schema() {
    let refusals = refused(results([("call_1_1", json!({"price": 1})), ("call_1_2", json!({"cost": 1}))])).await;
    let [ResumeError::Invalid { call_id, what, problems, .. }] = &refusals[..] else { panic!("{refusals:?}") };
    assert_eq!((call_id.as_str(), what.as_str()), ("call_1_2", "the result"));
    assert!(problems.contains("price"), "{problems}");
}

#[tokio::test(start_paused = true)]
async fn a_settled_call_takes_no_other_answer() {
    let world = two_orders().await;
    let run = world.run().await.run_id;
    world.resume(&run, results([priced("call_1_1")]).partial()).await.unwrap();

    let other = results([("call_1_1", json!({"price": 2}))]).partial();
    let error = world.resume(&run, other).await.unwrap_err();

    assert_eq!(error, RunnerError::Refused(vec![ResumeError::AlreadySettled { call_id: "call_1_1".into() }]));
    assert_eq!(error.code(), ErrorCode::Conflict);
}

#[tokio::test(start_paused = true)]
async fn an_ended_run_accepts_nothing() {
    let world = given_an_agent().whose_model_says(json!([say("Done.")])).ready().await;
    let run = world.run().await.run_id;

    let message = world.runner.message(&run, Message::user("One more thing")).await.unwrap_err();
    let cancel = world.runner.cancel(&run, None, None).await.unwrap_err();
    let result = world.resume(&run, results([priced("call_1_1")])).await.unwrap_err();

    let over = RunnerError::Refused(vec![ResumeError::RunEnded { status: "completed".into() }]);
    assert_eq!([message, cancel, result], [over.clone(), over.clone(), over]);
    let nothing = world.runner.resume_run(&run, Input::Resume(Resume::default()), None).await.unwrap();
    assert_eq!(nothing.until_idle().await.unwrap().status, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_message_of_white_space_is_refused_before_and_during_a_run() {
    let world = two_orders().await;
    let waiting = world.run().await;
    for blank in ["", " \n\t"] {
        let refused = world.runner.message(&waiting.run_id, Message::user(blank)).await.unwrap_err();
        assert_eq!(refused, RunnerError::Refused(vec![ResumeError::EmptyMessage]));
        let refused = world.runner.execute(Request::new("clerk", blank)).await.unwrap_err();
        assert_eq!(refused, RunnerError::EmptyMessage);
    }
    assert_eq!(world.runner.report(&waiting.run_id).await.unwrap().version, waiting.version);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_does_not_exist_is_not_found() {
    let world = two_orders().await;
    let error = world.resume(&"run_9".into(), results([priced("call_1_1")])).await.unwrap_err();
    assert_eq!((error.code(), error), (ErrorCode::NotFound, RunnerError::NoSuchRun("run_9".into())));
}

#[tokio::test(start_paused = true)]
async fn a_result_in_plain_words_is_refused_where_a_schema_asks_for_more() {
    let words = Outcome::Returned(ToolOutput::text("it costs 1"));
    let refusals = refused(Resume::default().with("call_1_1", words).partial()).await;
    let [ResumeError::Invalid { call_id, what, .. }] = &refusals[..] else { panic!("{refusals:?}") };
    assert_eq!((call_id.as_str(), what.as_str()), ("call_1_1", "the result"));
}
