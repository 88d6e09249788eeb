//! Forks: runs of their own with a copied history.

use std::time::Duration;

use serde_json::json;
use toolgate::core::chat::Message;
use toolgate::core::policy::{Policy, Verdict};
use toolgate::core::run::{ElicitationAnswer, PendingItem, Status};
use toolgate::core::tool::{CallReply, ElicitationRequest, ElicitationResponse, Outcome, Question, ToolOutput};
use toolgate::ports::RunFilter;
use toolgate::runner::{Fork, Report, Resume, RunnerError};

use super::world::{Given, Kept, World, answer_to, decisions, given_an_agent, on_every_store, results, said, say, yes};

on_every_store! {
    async fn a_fork_at_the_end_goes_on_with_a_new_message_and_leaves_its_source_alone(kept: Kept) {
        let world = given_an_agent().whose_model_says(json!([say("One."), say("Two.")])).kept(kept).await;
        let source = world.run().await;

        let message = Some(Message::user("And?"));
        let fork = world.runner.fork(&source.run_id, Fork { message, ..Fork::default() }).await.unwrap().until_idle().await.unwrap();

        assert_eq!(said(&fork), ["user: Hello", "model: One.", "user: And?", "model: Two."]);
        let untouched = world.runner.report(&source.run_id).await.unwrap();
        assert_eq!((untouched.version, untouched.messages), (source.version, source.messages));
        assert_ne!(fork.run_id, source.run_id);
    }
}

#[tokio::test(start_paused = true)]
async fn a_fork_at_a_position_decides_again_from_there() {
    let world = given_an_agent()
        .with_an_external_tool("order")
        .whose_model_says(json!([{"calls": [{"name": "ext_order"}]}, {"say": "It says: {{last_result}}."}]))
        .ready()
        .await;
    let source = world.run().await;
    world.resume(&source.run_id, results([("call_1_1", json!("tea"))])).await.unwrap();

    let fork = world
        .runner
        .fork(&source.run_id, Fork { at: Some(source.version), ..Fork::default() })
        .await
        .unwrap()
        .until_idle()
        .await
        .unwrap();
    let report = world.resume(&fork.run_id, results([("call_1_1", json!("coffee"))])).await.unwrap();

    assert_eq!((fork.status, fork.pending), (Status::Pending, source.pending));
    assert_eq!(report.output.unwrap().text, "It says: coffee.");
}

#[tokio::test(start_paused = true)]
async fn a_call_under_way_in_the_source_is_not_made_again_in_the_fork() {
    let world = given_an_agent()
        .with_tools("files", &["read"])
        .where_servers(|servers| servers.take_ms("read", 1000))
        .whose_model_says(json!([{"calls": [{"name": "mcp_files_read"}]}, say("Done.")]))
        .ready()
        .await;
    let execution = world.start().await;
    tokio::time::sleep(Duration::from_millis(100)).await;

    let fork = world.runner.fork(&execution.run, Fork::default()).await.unwrap().until_idle().await.unwrap();

    assert!(answer_to(&fork, "call_1_1").starts_with("Outcome unknown"));
    assert_eq!(answer_to(&execution.until_idle().await.unwrap(), "call_1_1"), "read done");
    assert_eq!(world.servers.calls(), ["call_1_1"]);
}

#[tokio::test(start_paused = true)]
async fn a_fork_tells_its_watchers_of_the_copied_past_as_of_a_past() {
    let world = given_an_agent().whose_model_says(json!([say("One."), say("Two.")])).ready().await;
    let source = world.run().await;

    let message = Some(Message::user("And?"));
    let mut execution = world.runner.fork(&source.run_id, Fork { message, ..Fork::default() }).await.unwrap();

    let seen = super::watching::everything(&mut execution.updates).await;
    assert_eq!(seen[..2], ["execution.resumed", "message.added"]);
    let fork = execution.until_idle().await.unwrap();
    world.sink.was_told_everything(&fork.run_id, fork.version);
}

#[tokio::test(start_paused = true)]
async fn a_fork_position_must_be_within_the_journal() {
    let world = given_an_agent().whose_model_says(json!([say("One.")])).ready().await;
    let run = world.run().await.run_id;
    for at in [0, 5, 6] {
        let error = world.runner.fork(&run, Fork { at: Some(at), ..Fork::default() }).await.unwrap_err();
        assert_eq!(error, RunnerError::NoSuchPosition { run: run.clone(), length: 5, at });
    }
}

#[tokio::test(start_paused = true)]
async fn an_unspent_approval_is_not_spent_by_a_fork() {
    let world = given_an_agent()
        .with_tools("files", &["delete"])
        .whose_policy_says(Verdict::Ask, "*_delete")
        .whose_model_says(json!([{"calls": [{"name": "mcp_files_delete"}]}, say("Gone.")]))
        .ready()
        .await;
    let run = world.run().await.run_id;
    world.resume(&run, decisions([("call_1_1", yes())])).await.unwrap();
    let decided = world.journal(&run).await.iter().position(|name| *name == "approval.decided").unwrap() as u64;

    let fork = world
        .runner
        .fork(&run, Fork { at: Some(decided + 1), ..Fork::default() })
        .await
        .unwrap()
        .until_idle()
        .await
        .unwrap();

    assert_eq!((fork.status, fork.pending.len()), (Status::Pending, 1));
    assert_eq!(world.servers.calls(), ["call_1_1"]);
}

/// A note on a server and an external refund in one turn, both of which require approval.
fn a_note_and_a_refund() -> Given {
    given_an_agent()
        .with_tools("files", &["note"])
        .with_external(json!({"name": "refund", "deadline_s": 60}))
        .that(|agent| agent.policy = Policy::ask_always().into())
        .whose_model_says(
            json!([{"calls": [{"name": "mcp_files_note"}, {"name": "ext_refund"}]}, say("Done."), say("More.")]),
        )
}

async fn fork(world: &World, source: &Report, at: Option<u64>) -> Report {
    world.runner.fork(&source.run_id, Fork { at, ..Fork::default() }).await.unwrap().until_idle().await.unwrap()
}

fn pending(report: &Report) -> Vec<(&str, &str)> {
    report.pending.iter().map(|item| (item.kind(), item.call_id().unwrap().as_str())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_spent_approval_stays_spent_in_a_fork() {
    let world = a_note_and_a_refund().ready().await;
    let run = world.run().await.run_id;
    let source = world.resume(&run, decisions([("call_1_1", yes()), ("call_1_2", yes())])).await.unwrap();
    assert_eq!(pending(&source), [("external_result", "call_1_2")]);

    let copy = fork(&world, &source, None).await;

    assert_eq!((pending(&copy), answer_to(&copy, "call_1_1")), (vec![("approval", "call_1_2")], "note done".into()));
    let approved = world.resume(&copy.run_id, decisions([("call_1_2", yes())])).await.unwrap();
    assert_eq!(pending(&approved), [("external_result", "call_1_2")]);
    let done = world.resume(&copy.run_id, results([("call_1_2", json!("refunded"))])).await.unwrap();
    assert_eq!((done.status, world.servers.calls()), (Status::Completed, vec!["call_1_1".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn no_fork_runs_a_call_on_an_approval_of_its_source() {
    let world = a_note_and_a_refund().ready().await;
    let waiting = world.run().await;
    for call in ["call_1_1", "call_1_2"] {
        world.resume(&waiting.run_id, decisions([(call, yes())]).partial()).await.unwrap();
    }
    let source = world.resume(&waiting.run_id, results([("call_1_2", json!("refunded"))])).await.unwrap();
    assert_eq!(world.servers.calls(), ["call_1_1"]);

    for at in 1..source.version {
        let copy = Fork { at: Some(at), ..Fork::default() };
        // After its answer the run has no step left.
        let Ok(copy) = world.runner.fork(&source.run_id, copy).await else {
            assert_eq!(at, source.version - 1);
            continue;
        };
        let copy = copy.until_idle().await.unwrap();
        let refunds = pending(&copy).contains(&("external_result", "call_1_2"));
        assert!(!refunds, "a fork at {at} has the application refund a second time");
    }

    assert_eq!(world.servers.calls(), ["call_1_1"], "no fork made the note once more");
}

#[tokio::test(start_paused = true)]
async fn an_expired_approval_does_not_limit_a_fork() {
    let world = a_note_and_a_refund().ready().await;
    let run = world.run().await.run_id;
    world.resume(&run, decisions([("call_1_1", yes()), ("call_1_2", yes())])).await.unwrap();
    tokio::time::advance(Duration::from_secs(61)).await;
    let source = world.resume(&run, Resume::default()).await.unwrap();
    assert!(answer_to(&source, "call_1_2").contains("no result in time"));

    let message = Some(Message::user("And?"));
    let copy = world.runner.fork(&run, Fork { message, ..Fork::default() }).await.unwrap().until_idle().await.unwrap();

    let (past, copied) = (world.journal(&run).await, world.journal(&copy.run_id).await);
    assert_eq!(copied[..past.len() - 1], past[..past.len() - 1], "all but the ending");
    assert_eq!((copy.status, world.servers.calls()), (Status::Completed, vec!["call_1_1".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_fork_asks_again_for_answers_that_were_not_sent() {
    let form = Question::Form { message: "Which size?".into(), schema: json!({"type": "object"}) };
    let questions = [("size".to_owned(), form)].into();
    let asks = CallReply::NeedsInput(ElicitationRequest {
        questions,
        state: None,
        task: None,
        restarts: false,
        interrupted: false,
    });
    let world = given_an_agent()
        .with_tools("shop", &["buy"])
        .where_servers(|servers| servers.reply("buy", [asks, Outcome::Returned(ToolOutput::text("bought")).into()]))
        .whose_model_says(json!([{"calls": [{"name": "mcp_shop_buy"}]}, say("Done.")]))
        .ready()
        .await;
    let run = world.run().await.run_id;
    let reactions = [("size".to_owned(), ElicitationResponse::decline())].into();
    let given = ElicitationAnswer { reactions, by: "ann".into(), via: Default::default(), repeat: false };
    let answers = Resume::default().with("call_1_1", given);
    let source = world.resume(&run, answers).await.unwrap();
    let given = world.journal(&run).await.iter().position(|fact| *fact == "tool.input.given").unwrap() as u64;

    let copy = fork(&world, &source, Some(given + 1)).await;

    assert!(matches!(&copy.pending[..], [PendingItem::Input(_)]), "{:?}", copy.pending);
    assert_eq!(world.servers.calls(), ["call_1_1", "call_1_1"], "asked and answered, in the source alone");
}

#[tokio::test(start_paused = true)]
async fn a_fork_does_not_go_on_without_its_servers() {
    let world = given_an_agent().with_tools("files", &["read"]).whose_model_says(json!([say("One.")])).ready().await;
    let source = world.run().await;
    let elsewhere = world.another_process_where(|agent| agent.servers.clear()).await;

    let refused = elsewhere.fork(&source.run_id, Fork::default()).await.unwrap_err();

    assert!(matches!(refused, RunnerError::ServerMissing { .. }), "{refused}");
    assert_eq!(world.runner.list(&RunFilter::default()).await.unwrap().len(), 1, "nothing was begun");
}
