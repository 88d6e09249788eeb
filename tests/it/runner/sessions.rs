//! Sessions: conversations of successive runs, of which one at a time is live.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use toolgate::core::chat::{Media, Message, Part};
use toolgate::core::error::ErrorCode;
use toolgate::core::id::{SessionId, Tenant};
use toolgate::core::run::{Event, Limits, Restart, RunWarning, Status};
use toolgate::ports::SessionRow;
use toolgate::runner::{AgentRunner, Fork, Report, Request, RunnerError};

use super::world::{Given, Kept, World, answer_to, given_an_agent, on_every_store, results, said, say};

pub(super) fn chat() -> SessionId {
    "chat".into()
}

/// A message to the session.
pub(super) fn message(text: &str) -> Request {
    Request { session: Some(chat()), ..Request::new("clerk", text) }
}

pub(super) async fn say_to(runner: &AgentRunner, text: &str) -> Report {
    runner.execute(message(text)).await.unwrap()
}

pub(super) async fn session(world: &World) -> SessionRow {
    world.runner.session(&Tenant::default(), &chat()).await.unwrap().unwrap()
}

fn answering(answers: &[&str]) -> Given {
    given_an_agent().whose_model_says(answers.iter().map(|text| say(text)).collect())
}

on_every_store! {
    async fn the_next_run_of_a_session_reads_the_runs_before_it(kept: Kept) {
        let world = answering(&["One.", "Two.", "Three."]).kept(kept).await;

        say_to(&world.runner, "First").await;
        say_to(&world.runner, "Second").await;
        let third = say_to(&world.runner, "Third").await;

        let whole = ["user: First", "model: One.", "user: Second", "model: Two.", "user: Third", "model: Three."];
        assert_eq!(said(&third), whole);
        assert_eq!(said(&world.runner.report(&third.run_id).await.unwrap()), whole);
        let row = session(&world).await;
        assert_eq!((row.version, row.runs, &*row.title), (3, 3, "First"));
        assert_eq!(row.head.map(|head| (head.run, head.status)), Some((third.run_id, Status::Completed)));
    }

    async fn row_0_06_a_session_from_another_folder_begins_afresh_and_says_so(kept: Kept) {
        let given = answering(&["One.", "Two.", "Three."]).that(|agent| agent.working_directory = Some("/srv/a".into()));
        let world = given.kept(kept).await;
        say_to(&world.runner, "First").await;
        say_to(&world.runner, "Second").await;

        let moved = world.another_process_where(|agent| agent.working_directory = Some("/srv/b".into())).await;
        let afresh = say_to(&moved, "Third").await;
        let again = say_to(&moved, "Fourth").await;

        assert_eq!((said(&afresh), afresh.warnings), (vec!["user: Third".to_owned(), "model: One.".into()], vec![RunWarning::SessionRestarted { restart: Restart::WorkingDirectory }]));
        assert_eq!((said(&again).len(), again.warnings), (4, vec![]), "the new folder is known now");
        let row = session(&world).await;
        assert_eq!((row.version, row.runs, row.head.map(|head| head.run)), (4, 4, Some(again.run_id)));
    }

    async fn a_run_of_a_session_has_only_its_own_messages_in_its_journal(kept: Kept) {
        let world = answering(&["One.", "Two."]).kept(kept).await;
        let first = say_to(&world.runner, "a word that is said once").await;

        let second = say_to(&world.runner, "Second").await;

        let journal = world.runner.journal(&second.run_id).await.unwrap();
        let json = serde_json::to_string(&journal).unwrap();
        assert!(!json.contains("a word that is said once"), "{json}");
        let Event::Started(started) = &journal[0].event else { panic!("a journal begins with its start") };
        let predecessor = started.predecessor.as_ref().unwrap();
        assert_eq!((&predecessor.run, predecessor.position), (&first.run_id, first.version));
    }

    async fn a_session_goes_on_after_a_failure_from_its_last_answered_turn(kept: Kept) {
        let turns = json!([
            {"calls": [{"name": "mcp_files_read"}]},
            {"expect": {"contains": "Go on"}, "say": "Read it."},
        ]);
        let world = given_an_agent().with_tools("files", &["read"]).whose_model_says(turns).kept(kept).await;
        let failed = say_to(&world.runner, "Read").await;
        assert_eq!(failed.status, Status::Failed);

        let second = say_to(&world.runner, "Go on").await;

        assert_eq!(answer_to(&second, "call_1_1"), "read done");
        let last = second.messages.last().unwrap();
        assert_eq!(last.text(), "Read it.");
    }

    async fn a_session_keeps_what_a_run_gathered_before_its_turn_limit(kept: Kept) {
        let calls = json!({"calls": [{"name": "mcp_files_read"}]});
        let world = given_an_agent()
            .with_tools("files", &["read"])
            .within(Limits { max_iterations: 2, ..Limits::default() })
            .whose_model_says(json!([calls, calls, say("Half of it."), say("The rest.")]))
            .kept(kept)
            .await;
        let first = say_to(&world.runner, "Read").await;
        assert_eq!(first.error.map(|error| error.code), Some(ErrorCode::TurnLimit));

        let second = say_to(&world.runner, "Go on").await;

        assert_eq!(answer_to(&second, "call_1_1"), "read done");
        assert_eq!(second.output.as_ref().map(|output| &*output.text), Some("The rest."), "{second:?}");
        assert!(!serde_json::to_string(&second.messages).unwrap().contains("[toolgate]"), "a note about another budget");
    }

    async fn a_session_has_one_live_run(kept: Kept) {
        let world = given_an_agent()
            .with_an_external_tool("order")
            .whose_model_says(json!([{"calls": [{"name": "ext_order"}]}, say("Ordered."), say("Again.")]))
            .kept(kept)
            .await;
        let request = || Request { session: Some(chat()), ..world.request() };
        let pending = world.runner.execute(request()).await.unwrap();
        assert_eq!(pending.status, Status::Pending);
        let before = session(&world).await;

        let refused = world.another_process().await.start(request()).await.unwrap_err();

        let RunnerError::SessionBusy { session: busy, head } = &refused else { panic!("{refused}") };
        assert_eq!((busy, &head.run, head.status, head.version), (&chat(), &pending.run_id, Status::Pending, pending.version));
        assert_eq!((refused.code(), refused.is_retryable()), (ErrorCode::Conflict, true));
        assert_eq!(session(&world).await, before);
        world.resume(&pending.run_id, results([("call_1_1", json!("tea"))])).await.unwrap();
        assert_eq!(world.runner.execute(request()).await.unwrap().status, Status::Completed);
    }

    async fn a_pending_run_of_a_session_continues_in_another_process_with_the_conversation(kept: Kept) {
        let world = given_an_agent()
            .with_an_external_tool("order")
            .whose_model_says(json!([say("One."), {"calls": [{"name": "ext_order"}]}, {"say": "It says: {{last_result}}."}]))
            .kept(kept)
            .await;
        say_to(&world.runner, "First").await;
        let second = world.runner.execute(Request { session: Some(chat()), ..world.request() }).await.unwrap();
        let call = second.pending[0].call_id().unwrap().clone();

        let other = world.another_process().await;
        let done = other.resume(&second.run_id, results([(call.as_str(), json!("tea"))])).await.unwrap();

        assert_eq!(done.output.unwrap().text, "It says: tea.");
        assert_eq!(said(&second)[..2], ["user: First", "model: One."]);
        assert_eq!(done.messages[..2], second.messages[..2]);
    }

    async fn of_racing_runs_each_reads_the_run_before_it_or_is_refused(kept: Kept) {
        let world = answering(&["One.", "Two.", "Three.", "Four."]).kept(kept).await;
        let other = world.another_process().await;
        let (mut started, mut refused) = (Vec::new(), 0);
        for round in 0..10 {
            let (one, two) = (world.runner.start(message("here")), other.start(message("there")));
            let (one, two) = tokio::join!(one, two);
            for outcome in [one, two] {
                match outcome {
                    Ok(execution) => started.push(execution.until_idle().await.unwrap().run_id),
                    Err(RunnerError::SessionBusy { .. } | RunnerError::SessionChanging(_)) => refused += 1,
                    Err(error) => panic!("round {round}: {error}"),
                }
            }
        }

        let row = session(&world).await;
        assert_eq!(started.len() + refused, 20);
        assert_eq!(row.runs, started.len() as u64);
        let mut chain = BTreeSet::new();
        let mut next = row.head.map(|head| head.run);
        while let Some(run) = next {
            let started = world.runner.load(&run).await.unwrap().started().clone();
            next = started.predecessor.as_ref().map(|predecessor| predecessor.run.clone());
            chain.insert(run);
        }
        assert_eq!(chain, started.into_iter().collect());
    }

    async fn a_run_without_a_session_is_continued_by_its_id(kept: Kept) {
        let world = answering(&["One.", "Two."]).kept(kept).await;
        let first = world.run().await;
        let session = SessionId::from(first.run_id.as_str());

        let second = world.runner.execute(Request { session: Some(session.clone()), ..Request::new("clerk", "And?") }).await.unwrap();

        assert_eq!(said(&second), ["user: Hello", "model: One.", "user: And?", "model: Two."]);
        let row = world.runner.session(&Tenant::default(), &session).await.unwrap().unwrap();
        assert_eq!((row.runs, &*row.title), (2, "Hello"));
    }

    async fn a_fork_begins_a_session_of_its_own(kept: Kept) {
        let world = answering(&["One.", "Two.", "Three."]).kept(kept).await;
        say_to(&world.runner, "First").await;
        let second = say_to(&world.runner, "Second").await;
        let before = session(&world).await;

        let fork = Fork { message: Some(Message::user("Instead")), ..Fork::default() };
        let forked = world.runner.fork(&second.run_id, fork).await.unwrap().until_idle().await.unwrap();

        assert_eq!(said(&forked)[..2], ["user: First", "model: One."]);
        assert_eq!(said(&forked).last().map(String::as_str), Some("model: Three."));
        assert_eq!(forked.session_id.as_str(), forked.run_id.as_str());
        assert_eq!(session(&world).await, before);
    }

    async fn a_deleted_run_leaves_the_conversation(kept: Kept) {
        let world = answering(&["One.", "Two.", "Three."]).kept(kept).await;
        say_to(&world.runner, "First").await;
        let second = say_to(&world.runner, "a secret").await;
        let third = say_to(&world.runner, "Third").await;
        assert!(said(&third).contains(&"user: a secret".to_owned()));

        world.runner.purge(&second.run_id).await.unwrap();
        let fourth = say_to(&world.runner, "Fourth").await;

        assert_eq!(said(&fourth)[..5], ["user: First", "model: One.", "user: Third", "model: Three.", "user: Fourth"]);
    }

    async fn the_title_of_a_session_is_deleted_with_the_run_that_it_quotes(kept: Kept) {
        let world = answering(&["One.", "Two."]).kept(kept).await;
        let first = say_to(&world.runner, "a secret").await;
        assert_eq!(session(&world).await.title, "a secret");

        world.runner.purge(&first.run_id).await.unwrap();

        assert_eq!(session(&world).await.title, "");
        say_to(&world.runner, "Second").await;
        assert_eq!(session(&world).await.title, "Second");
    }

    async fn a_deleted_head_leaves_the_conversation_too(kept: Kept) {
        let world = answering(&["One.", "Two.", "Three."]).kept(kept).await;
        say_to(&world.runner, "First").await;
        let second = say_to(&world.runner, "a secret").await;

        world.runner.purge(&second.run_id).await.unwrap();
        let third = say_to(&world.runner, "Third").await;

        assert_eq!(said(&third)[..3], ["user: First", "model: One.", "user: Third"]);
    }

    // Issue 39, row 24
    async fn a_page_of_messages_reads_only_the_segments_it_shows(kept: Kept) {
        let answers: Vec<String> = (0..10).map(|number| format!("Answer {number}.")).collect();
        let world = answering(&answers.iter().map(String::as_str).collect::<Vec<_>>()).kept(kept).await;
        for number in 0..10 {
            say_to(&world.runner, &format!("Message {number}")).await;
        }
        let whole = world.runner.session_messages(&Tenant::default(), &chat()).await.unwrap();
        assert_eq!(whole.len(), 20);
        world.store.take_read_segments();

        for from in 0..21 {
            let page = world.runner.session_messages_page(&Tenant::default(), &chat(), from, 3).await.unwrap();

            assert_eq!(page, whole[from.min(20)..(from + 3).min(20)], "from {from}");
            assert!(world.store.take_read_segments().len() <= 2, "from {from}");
        }
        world.runner.purge(&whole[4].run).await.unwrap();
        let rest: Vec<_> = whole.iter().filter(|of| of.run != whole[4].run).cloned().collect();
        let page = world.runner.session_messages_page(&Tenant::default(), &chat(), 3, 4).await.unwrap();
        assert_eq!(page, rest[3..7]);
    }

    async fn a_run_reads_only_the_segments_that_its_process_does_not_know(kept: Kept) {
        let world = answering(&["One.", "Two.", "Three.", "Four.", "Five.", "Six."]).kept(kept).await;
        for text in ["First", "Second", "Third", "Fourth"] {
            say_to(&world.runner, text).await;
            let read = world.store.take_read_segments();
            assert!(read.len() <= 1, "{text} reads {read:?}");
        }

        let fifth = say_to(&world.another_process().await, "Fifth").await;
        let sixth = say_to(&world.runner, "Sixth").await;

        assert_eq!(said(&fifth).len(), 10);
        assert_eq!(said(&sixth)[..10], said(&fifth));
        assert!(world.store.take_read_segments().len() <= 2);
    }

    async fn an_image_of_the_first_run_reaches_the_model_in_the_third(kept: Kept) {
        let world = answering(&["One.", "Two.", "Three."]).kept(kept).await;
        let picture = Part::Image(Media::inline("image/png", b"\x89PNG\r\n\x1a\nnot much of a picture"));
        let mut first = message("Look");
        first.input.content.push(picture.clone());
        world.runner.execute(first).await.unwrap();

        say_to(&world.runner, "Second").await;
        let third = say_to(&world.runner, "Third").await;

        assert_eq!(third.messages[0].content[1], picture);
    }
}

#[tokio::test(start_paused = true)]
async fn a_head_beyond_its_deadline_is_ended_and_continued() {
    let world = given_an_agent()
        .with_an_external_tool("order")
        .within(Limits { deadline_s: Some(60), ..Limits::default() })
        .whose_model_says(json!([{"calls": [{"name": "ext_order"}]}, say("Two.")]))
        .ready()
        .await;
    let first = world.runner.execute(Request { session: Some(chat()), ..world.request() }).await.unwrap();
    assert_eq!(first.status, Status::Pending);
    tokio::time::sleep(Duration::from_secs(61)).await;

    let second = say_to(&world.runner, "Still there?").await;

    assert_eq!(world.runner.report(&first.run_id).await.unwrap().status, Status::Expired);
    assert_eq!(second.status, Status::Completed, "{:?}", second.error);
}

#[tokio::test(start_paused = true)]
async fn a_call_id_of_an_earlier_run_is_not_used_again() {
    let calls = json!({"calls": [{"name": "mcp_files_read", "id": "same"}]});
    let turns = json!([calls, say("One."), calls, say("Two.")]);
    let world = given_an_agent().with_tools("files", &["read"]).whose_model_says(turns).ready().await;

    say_to(&world.runner, "First").await;
    let second = say_to(&world.runner, "Second").await;

    let ids = second.messages.iter().flat_map(|message| &message.content).filter_map(Part::tool_use);
    let ids: BTreeSet<String> = ids.map(|(id, ..)| id.to_string()).collect();
    assert_eq!(ids.len(), 2, "{ids:?}");
}

#[tokio::test(start_paused = true)]
async fn a_session_belongs_to_its_agent_its_principal_and_its_tenant() {
    let world = answering(&["One.", "Two."]).ready().await;
    let of_ann = Request { principal: Some("ann".into()), ..message("First") };
    world.runner.execute(of_ann.clone()).await.unwrap();

    let of_bob = Request { principal: Some("bob".into()), ..message("What did ann say?") };
    let refused = world.runner.start(of_bob).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Forbidden, "{refused}");
    let refused = world.runner.start(message("What did ann say?")).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Forbidden, "{refused}");

    let elsewhere = Request { tenant: "other".into(), ..of_ann };
    let report = world.runner.execute(elsewhere).await.unwrap();
    assert_eq!(said(&report), ["user: First", "model: One."]);
}

#[tokio::test(start_paused = true)]
async fn a_session_with_a_conversation_takes_no_other_history() {
    let world = answering(&["One.", "Two."]).ready().await;
    let with_history = || Request { history: vec![Message::user("Hi"), Message::assistant("Hi.")], ..message("First") };
    world.runner.execute(with_history()).await.unwrap();

    let refused = world.runner.start(with_history()).await.unwrap_err();

    assert_eq!(refused, RunnerError::SessionHasHistory(chat()));
    assert_eq!(said(&say_to(&world.runner, "Second").await)[..3], ["user: Hi", "model: Hi.", "user: First"]);
}

#[tokio::test(start_paused = true)]
async fn a_single_tool_call_uses_the_grants_of_a_session_and_is_no_part_of_it() {
    let world = answering(&["One.", "Two."]).with_tools("files", &["read"]).ready().await;
    let call = async || {
        let execution = world.runner.call_tool(message(""), "mcp_files_read", &Default::default()).await.unwrap();
        execution.until_idle().await.unwrap()
    };

    let before = call().await;
    let first = say_to(&world.runner, "First").await;
    let within = call().await;
    let second = say_to(&world.runner, "Second").await;

    for called in [before, within] {
        assert_eq!((called.output.unwrap().text, called.session_id), ("read done".to_owned(), chat()));
    }
    assert_eq!(said(&first), ["user: First", "model: One."]);
    assert_eq!(said(&second), ["user: First", "model: One.", "user: Second", "model: Two."]);
    assert_eq!(world.servers.calls().len(), 2);
}
