//! Retries: a fork of an ended run that takes the run's place in its session.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate::core::chat::Message;
use toolgate::core::error::ErrorCode;
use toolgate::core::id::{SessionId, Tenant};
use toolgate::core::policy::Verdict;
use toolgate::core::run::{Event, Limits, Status, TighterLimits, Trigger};
use toolgate::ports::SessionRow;
use toolgate::runner::{AgentRunner, Fork, Report, Request, Retry, RunnerError};

use super::world::{
    Given, Kept, World, answer_to, decisions, given_an_agent, on_every_store, results, said, say, yes_for_the_session,
};

fn in_chat(text: &str) -> Request {
    Request { session: Some("chat".into()), ..Request::new("clerk", text) }
}

async fn say_to(runner: &AgentRunner, text: &str) -> Report {
    runner.execute(in_chat(text)).await.unwrap()
}

async fn retry(runner: &AgentRunner, source: &Report, message: Option<&str>) -> Report {
    let retry = Retry { message: message.map(Message::user), ..Retry::default() };
    runner.retry(&source.run_id, retry).await.unwrap().until_idle().await.unwrap()
}

async fn session(world: &World, id: &str) -> SessionRow {
    world.runner.session(&Tenant::default(), &SessionId::from(id)).await.unwrap().unwrap()
}

/// The messages of the session, each with the number of its run in this list.
async fn messages(world: &World, runs: &[&Report]) -> Vec<(usize, String)> {
    let messages = world.runner.session_messages(&Tenant::default(), &"chat".into()).await.unwrap();
    let number = |run| runs.iter().position(|report| report.run_id == run).unwrap();
    messages.into_iter().map(|message| (number(message.run), message.message.text())).collect()
}

fn answering(turns: Value) -> Given {
    given_an_agent().whose_model_says(turns)
}

fn down() -> Value {
    json!({"fail": {"code": "provider_unavailable"}})
}

on_every_store! {
    async fn row_4_23_a_retry_takes_the_place_of_a_failed_run_in_its_session(kept: Kept) {
        let world = answering(json!([say("One."), down()])).kept(kept).await;
        let first = say_to(&world.runner, "First").await;
        let failed = say_to(&world.runner, "Second").await;
        assert_eq!(failed.status, Status::Failed);
        let repaired = answering(json!([say("One."), say("Two."), say("Three.")])).sharing(&world).await;

        let retried = retry(&repaired.runner, &failed, None).await;
        let third = say_to(&repaired.runner, "Third").await;

        let whole = ["user: First", "model: One.", "user: Second", "model: Two.", "user: Third", "model: Three."];
        assert_eq!((said(&retried), said(&third)), (whole[..4].iter().map(|line| (*line).to_owned()).collect(), whole.map(str::to_owned).to_vec()));
        let journal = world.runner.journal(&retried.run_id).await.unwrap();
        let Event::Started(started) = &journal[0].event else { panic!("a journal begins with its start") };
        assert!(matches!(&started.trigger, Trigger::Retry { run, .. } if *run == failed.run_id), "{:?}", started.trigger);
        assert_eq!((&started.predecessor.as_ref().unwrap().run, started.session.as_str()), (&first.run_id, "chat"));
        let row = session(&world, "chat").await;
        assert_eq!((row.runs, row.version, row.head.map(|head| head.run)), (4, 4, Some(third.run_id.clone())));
        let texts = ["First", "One.", "Second", "Two.", "Third", "Three."].map(str::to_owned);
        let runs = [0, 0, 1, 1, 2, 2];
        assert_eq!(messages(&world, &[&first, &retried, &third]).await, runs.into_iter().zip(texts).collect::<Vec<_>>());
        assert_eq!(world.runner.report(&failed.run_id).await.unwrap().messages, failed.messages);
    }

    async fn a_retry_of_a_completed_run_answers_again(kept: Kept) {
        let world = answering(json!([say("One."), say("Two.")])).kept(kept).await;
        say_to(&world.runner, "First").await;
        let second = say_to(&world.runner, "Second").await;
        let other = answering(json!([say("One."), say("Another two."), say("Better.")])).sharing(&world).await;

        let again = retry(&other.runner, &second, None).await;
        let more = retry(&other.runner, &again, Some("In English")).await;

        assert_eq!(said(&again), ["user: First", "model: One.", "user: Second", "model: Another two."]);
        assert_eq!(said(&more)[2..], ["user: Second", "model: Another two.", "user: In English", "model: Better."]);
    }

    async fn a_retry_of_a_run_that_is_not_the_latest_reads_the_latest(kept: Kept) {
        let world = answering(json!([say("One."), say("Two.")])).kept(kept).await;
        let first = say_to(&world.runner, "First").await;
        let second = say_to(&world.runner, "Second").await;
        let before = session(&world, "chat").await;

        let refused = world.runner.retry(&first.run_id, Retry::default()).await.unwrap_err();

        let RunnerError::NotTheHead { run, head: Some(head) } = &refused else { panic!("{refused}") };
        assert_eq!((run, &head.run, head.status), (&first.run_id, &second.run_id, Status::Completed));
        assert_eq!(refused.to_string(), format!("run `{}` is not the latest of its session; fork it", first.run_id));
        assert_eq!((refused.code(), refused.is_retryable()), (ErrorCode::Conflict, false));
        assert_eq!(session(&world, "chat").await, before);
    }

    async fn a_live_run_is_not_retried(kept: Kept) {
        let world = answering(json!([{"calls": [{"name": "ext_order"}]}])).with_an_external_tool("order").kept(kept).await;
        let live = world.run().await;

        let refused = world.runner.retry(&live.run_id, Retry::default()).await.unwrap_err();

        assert!(matches!(&refused, RunnerError::NotEnded { status: Status::Pending, .. }), "{refused}");
        assert_eq!(refused.code(), ErrorCode::Conflict);
    }

    async fn of_racing_retries_one_takes_the_place(kept: Kept) {
        let world = answering(json!([say("One.")])).kept(kept).await;
        let mut source = say_to(&world.runner, "First").await;
        let other = world.another_process().await;

        for round in 0..10 {
            let (here, there) = tokio::join!(
                world.runner.retry(&source.run_id, Retry::default()),
                other.retry(&source.run_id, Retry::default())
            );
            let (won, lost) = match (here, there) {
                (Ok(won), Err(lost)) | (Err(lost), Ok(won)) => (won, lost),
                (here, there) => panic!("round {round}: {:?} {:?}", here.err(), there.err()),
            };
            let RunnerError::NotTheHead { head: Some(head), .. } = &lost else { panic!("{lost}") };
            assert_eq!(head.run, won.run);
            source = won.until_idle().await.unwrap();
        }

        assert_eq!(session(&world, "chat").await.runs, 11);
        assert_eq!(messages(&world, &[&source]).await, [(0, "First".to_owned()), (0, "One.".to_owned())]);
    }

    async fn a_retry_of_a_run_without_a_session_has_the_runs_id_as_its_session(kept: Kept) {
        let world = answering(json!([say("One."), say("Two.")])).kept(kept).await;
        let source = world.run().await;

        let again = retry(&world.runner, &source, None).await;
        let session_id = Some(SessionId::from(source.run_id.as_str()));
        let next = Request { session: session_id, ..Request::new("clerk", "And?") };
        let next = world.runner.execute(next).await.unwrap();

        assert_eq!(again.session_id.as_str(), source.run_id.as_str());
        assert_eq!(said(&next), ["user: Hello", "model: One.", "user: And?", "model: Two."]);
        assert_eq!(session(&world, source.run_id.as_str()).await.runs, 3);
    }

    async fn a_retry_keeps_its_messages_when_its_source_is_deleted(kept: Kept) {
        let world = answering(json!([say("One."), say("Two.")])).kept(kept).await;
        let source = say_to(&world.runner, "First").await;
        let again = retry(&world.runner, &source, None).await;

        world.runner.purge(&source.run_id).await.unwrap();
        let second = say_to(&world.runner, "Second").await;

        assert_eq!(said(&second), ["user: First", "model: One.", "user: Second", "model: Two."]);
        world.runner.delete_session(&Tenant::default(), &"chat".into(), "ann", None).await.unwrap();
        let gone = world.runner.retry(&again.run_id, Retry::default()).await.unwrap_err();
        assert_eq!(gone.code(), ErrorCode::Gone, "{gone}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_uses_the_grants_of_its_session() {
    let delete = json!({"calls": [{"name": "mcp_files_delete"}]});
    let world = answering(json!([delete, say("Gone."), delete, say("Twice.")]))
        .with_tools("files", &["delete"])
        .whose_policy_says(Verdict::Ask, "*_delete")
        .ready()
        .await;
    let waiting = say_to(&world.runner, "Delete it").await;
    let source = world.resume(&waiting.run_id, decisions([("call_1_1", yes_for_the_session())])).await.unwrap();
    assert_eq!((source.status, world.servers.calls().len()), (Status::Completed, 1));
    let fork = Fork { message: Some(Message::user("Once more")), ..Fork::default() };
    let fork = world.runner.fork(&source.run_id, fork).await.unwrap().until_idle().await.unwrap();

    let again = retry(&world.runner, &source, Some("Once more")).await;

    assert_eq!((fork.status, again.status), (Status::Pending, Status::Completed), "{:?}", again.error);
    assert_eq!(world.servers.calls().len(), 2, "the copied call is not sent again");
}

#[tokio::test(start_paused = true)]
async fn a_retry_of_a_cancelled_run_says_what_was_in_doubt() {
    let world = answering(json!([{"calls": [{"name": "mcp_files_hang"}]}, say("Done.")]))
        .with_tools("files", &["hang"])
        .where_servers(|servers| servers.hang_in("hang"))
        .ready()
        .await;
    let execution = world.runner.start(in_chat("Go")).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    world.runner.cancel(&execution.run, None, None).await.unwrap();
    let source = execution.until_idle().await.unwrap();

    let again = retry(&world.runner, &source, Some("Look again")).await;

    assert!(answer_to(&again, "call_1_1").starts_with("Outcome unknown"), "{:#?}", said(&again));
    assert!(said(&again).contains(&"user: Look again".to_owned()), "{:#?}", said(&again));
    assert_eq!((again.status, world.servers.calls().len()), (Status::Completed, 1));
}

#[tokio::test(start_paused = true)]
async fn a_retry_has_limits_and_metadata_of_its_own() {
    let world = answering(json!([{"calls": [{"name": "ext_order"}]}, say("So far."), say("All.")]))
        .with_an_external_tool("order")
        .within(Limits { max_iterations: 1, ..Limits::default() })
        .ready()
        .await;
    let waiting = world.run().await;
    let source = world.resume(&waiting.run_id, results([("call_1_1", json!("tea"))])).await.unwrap();
    assert_eq!(source.status, Status::Incomplete);
    let roomy = world.another_process_where(|agent| agent.limits.max_iterations = 9).await;
    let limits = |most| TighterLimits { max_iterations: Some(most), ..TighterLimits::default() };

    let wider = roomy.retry(&source.run_id, Retry { limits: limits(10), ..Retry::default() }).await.unwrap_err();
    let metadata = json!({"try": 2}).as_object().cloned();
    let message = Some(Message::user("Go on"));
    let again = Retry { message, limits: limits(5), metadata, ..Retry::default() };
    let again = roomy.retry(&source.run_id, again).await.unwrap().until_idle().await.unwrap();

    assert!(matches!(wider, RunnerError::WiderLimit { .. }), "{wider}");
    assert_eq!((again.status, again.budget.limits.max_iterations), (Status::Completed, 5));
    assert_eq!(world.runner.load(&again.run_id).await.unwrap().started().metadata["try"], 2);
}
