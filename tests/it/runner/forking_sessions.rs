//! Forks of runs of a session: each has its own copy of the conversation before it (issue 39, row 20).

use serde_json::json;
use toolgate::core::chat::{Media, Message, Part};
use toolgate::core::id::{RunId, SessionId, Tenant};
use toolgate::runner::{AgentRunner, Fork, Report, Request, Retry};

use super::world::{Given, Kept, given_an_agent, on_every_store, said, say};

fn answering(answers: &[&str]) -> Given {
    given_an_agent().whose_model_says(answers.iter().map(|text| say(text)).collect())
}

async fn say_to(runner: &AgentRunner, session: &str, text: &str) -> Report {
    let session = Some(SessionId::from(session));
    runner.execute(Request { session, ..Request::new("clerk", text) }).await.unwrap()
}

async fn fork(runner: &AgentRunner, source: &RunId, text: &str) -> Report {
    let fork = Fork { message: Some(Message::user(text)), ..Fork::default() };
    runner.fork(source, fork).await.unwrap().until_idle().await.unwrap()
}

async fn delete(runner: &AgentRunner, session: &str) {
    runner.delete_session(&Tenant::default(), &session.into(), "ann", None).await.unwrap();
}

/// The messages of a session, each with its run.
async fn messages(runner: &AgentRunner, session: &str) -> Vec<(RunId, String)> {
    let messages = runner.session_messages(&Tenant::default(), &session.into()).await.unwrap();
    messages.into_iter().map(|of| (of.run, of.message.text())).collect()
}

on_every_store! {
    async fn a_fork_keeps_its_conversation_when_the_session_of_its_source_is_deleted(kept: Kept) {
        let world = answering(&["One.", "Two.", "Three.", "Four."]).kept(kept).await;
        let runner = &world.runner;
        let first = say_to(runner, "chat", "First").await;
        let second = say_to(runner, "chat", "Second").await;
        let forked = fork(runner, &second.run_id, "Instead").await;
        let session = forked.session_id.as_str();
        let before = messages(runner, session).await;
        let texts: Vec<&str> = before.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["First", "One.", "Second", "Two.", "Instead", "Three."]);
        assert!(before.iter().all(|(run, _)| *run == forked.run_id), "{before:?}");

        runner.purge(&first.run_id).await.unwrap();
        delete(runner, "chat").await;

        assert_eq!(messages(runner, session).await, before);
        let next = say_to(runner, session, "Go on").await;
        let whole =
            ["user: First", "model: One.", "user: Second", "model: Two.", "user: Instead", "model: Three.", "user: Go on"];
        assert_eq!(said(&next)[..7], whole);
    }

    async fn a_fork_is_listed_under_its_own_message(kept: Kept) {
        let world = answering(&["One.", "Two.", "Three."]).kept(kept).await;
        let runner = &world.runner;
        let first = say_to(runner, "chat", "First").await;
        let forked = fork(runner, &first.run_id, "Instead").await;
        let title = async |run: &RunId| runner.row(run).await.unwrap().unwrap().title;
        assert_eq!(title(&first.run_id).await, "First");
        assert_eq!(title(&forked.run_id).await, "Instead");
        let session = runner.session(&Tenant::default(), &forked.session_id).await.unwrap().unwrap();
        assert_eq!(session.title, "Instead");

        // The title of a session is deleted with the run that it quotes.
        let again = runner.fork(&forked.run_id, Fork::default()).await.unwrap().until_idle().await.unwrap();
        let session = runner.session(&Tenant::default(), &again.session_id).await.unwrap().unwrap();
        assert_eq!(session.title, title(&again.run_id).await);
    }

    async fn a_fork_of_a_fork_and_a_retry_of_a_fork_keep_the_conversation(kept: Kept) {
        let world = answering(&["One.", "Two.", "Three.", "Four.", "Five.", "Six."]).kept(kept).await;
        let runner = &world.runner;
        say_to(runner, "chat", "First").await;
        let second = say_to(runner, "chat", "Second").await;
        let forked = fork(runner, &second.run_id, "Instead").await;
        let copy = fork(runner, &forked.run_id, "Or").await;
        let retried = runner.retry(&forked.run_id, Retry::default()).await.unwrap().until_idle().await.unwrap();

        delete(runner, "chat").await;
        runner.purge(&forked.run_id).await.unwrap();

        for run in [&copy, &retried] {
            let next = say_to(runner, run.session_id.as_str(), "Go on").await;
            assert_eq!(said(&next)[..2], ["user: First", "model: One."], "{next:?}");
        }
        delete(runner, retried.session_id.as_str()).await;
        let next = say_to(runner, copy.session_id.as_str(), "Go on").await;
        assert_eq!(said(&next)[..2], ["user: First", "model: One."], "{next:?}");
    }

    async fn the_copy_of_a_conversation_is_deleted_with_its_fork(kept: Kept) {
        let world = answering(&["One.", "Two.", "Three.", "Four."]).kept(kept).await;
        let runner = &world.runner;
        say_to(runner, "chat", "a secret").await;
        let second = say_to(runner, "chat", "Second").await;
        let forked = fork(runner, &second.run_id, "Instead").await;
        let next = say_to(runner, forked.session_id.as_str(), "Next").await;
        delete(runner, "chat").await;

        runner.purge(&forked.run_id).await.unwrap();

        assert_eq!(messages(runner, forked.session_id.as_str()).await, [
            (next.run_id.clone(), "Next".to_owned()),
            (next.run_id.clone(), "Four.".to_owned()),
        ]);
    }

    async fn a_fork_keeps_the_media_of_the_runs_before_it(kept: Kept) {
        let picture = json!({"media": [{"media_type": "image/png", "data": "iVBORw0KGgo="}]});
        let turns = json!([picture, say("Two."), say("Three.")]);
        let world = given_an_agent().whose_model_says(turns).kept(kept).await;
        let runner = &world.runner;
        say_to(runner, "chat", "Draw").await;
        let second = say_to(runner, "chat", "Second").await;
        let forked = fork(runner, &second.run_id, "Instead").await;

        delete(runner, "chat").await;

        let drawn = &runner.report(&forked.run_id).await.unwrap().messages[1];
        let Part::Image(Media { url: Some(url), .. }) = &drawn.content[0] else { panic!("{drawn:?}") };
        let handle = toolgate::core::blob::BlobHandle::parse(url.strip_prefix("media://").unwrap()).unwrap();
        assert!(runner.blobs().unwrap().get(&handle).await.unwrap().is_some());
    }
}
