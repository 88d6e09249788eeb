//! Compaction (issue 19 A, FEATURES 0.31): a model summarizes the beginning of a long conversation.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use toolgate::core::chat::{Reply, Role};
use toolgate::core::error::ErrorCode;
use toolgate::core::lifecycle::{Content, Lifecycle};
use toolgate::core::run::{COMPACTION_INSTRUCTION, Compaction, Event, Status, ToolAccess};
use toolgate::models::scripted::{Script, ScriptedModel};
use toolgate::ports::{Conversation, DeltaSink, Model, ModelFailure, ModelIdentity, ModelRequest};
use toolgate::runner::{AgentRunner, Report, Request, Retry, RunnerError, SessionCompaction};
use toolgate::telemetry::spans::{Span, SpanContent, project};

use super::world::{Given, Kept, LEASE, World, answer_to, given_an_agent, names, on_every_store, said, say};

/// A request as the model read it.
#[derive(Clone, Debug)]
pub(super) struct Read {
    system: String,
    tools: Vec<String>,
    tool_access: ToolAccess,
    /// The messages, each as JSON.
    messages: Vec<String>,
}

impl Read {
    fn is_for_a_summary(&self) -> bool {
        self.messages.last().is_some_and(|last| last.contains("Write a summary of the conversation so far."))
    }

    fn contains(&self, text: &str) -> bool {
        self.messages.iter().any(|message| message.contains(text))
    }
}

/// A strict scripted model that records what it reads.
#[derive(Clone)]
struct Recording {
    inner: ScriptedModel,
    read: Arc<Mutex<Vec<Read>>>,
}

impl Model for Recording {
    fn identity(&self) -> &ModelIdentity {
        self.inner.identity()
    }

    fn converse(&self) -> Box<dyn Conversation> {
        Box::new(RecordingConversation { inner: self.inner.converse(), read: self.read.clone() })
    }
}

struct RecordingConversation {
    inner: Box<dyn Conversation>,
    read: Arc<Mutex<Vec<Read>>>,
}

#[async_trait]
impl Conversation for RecordingConversation {
    async fn reply(&mut self, request: &ModelRequest<'_>, deltas: DeltaSink<'_>) -> Result<Reply, ModelFailure> {
        self.read.lock().unwrap().push(Read {
            system: request.system.to_owned(),
            tools: request.tools.iter().map(|tool| tool.name.to_string()).collect(),
            tool_access: request.tool_access,
            messages: request.messages.iter().map(|message| serde_json::to_string(message).unwrap()).collect(),
        });
        self.inner.reply(request, deltas).await
    }
}

/// An agent with this script and compaction, and what its model reads.
pub(super) fn compacting(script: Value, compaction: Option<Compaction>) -> (Given, Arc<Mutex<Vec<Read>>>) {
    let read = Arc::<Mutex<Vec<Read>>>::default();
    let inner = ScriptedModel::new("scripted", Script::from_json(&script.to_string()).unwrap());
    let given = given_an_agent()
        .with_tools("files", &["read"])
        .with_the_model(Recording { inner, read: read.clone() })
        .that(|agent| {
            agent.instructions = "Be brief.".into();
            agent.rules.compaction = compaction;
        });
    (given, read)
}

pub(super) fn at(tokens: u64) -> Option<Compaction> {
    Some(Compaction { at_tokens: Some(tokens), keep_tokens: 0, model: None })
}

pub(super) fn used(tokens: u64, turn: Value) -> Value {
    let mut turn = turn;
    turn["usage"] = json!({"input_tokens": tokens, "output_tokens": 1});
    turn
}

pub(super) fn reading() -> Value {
    json!({"calls": [{"name": "mcp_files_read"}]})
}

pub(super) async fn say_to(runner: &AgentRunner, text: &str) -> Report {
    runner.execute(Request { session: Some("chat".into()), ..Request::new("clerk", text) }).await.unwrap()
}

pub(super) async fn conversation(world: &World) -> Vec<String> {
    let messages = world.runner.session_messages(&Default::default(), &"chat".into()).await.unwrap();
    messages.into_iter().map(|of| of.message.text()).collect()
}

pub(super) async fn compacted(world: &World) -> Report {
    let execution = world.runner.compact(SessionCompaction::new("chat")).await.unwrap();
    execution.until_idle().await.unwrap()
}

on_every_store! {
    async fn a_run_after_a_compaction_sends_the_summary_and_not_the_old_turns(kept: Kept) {
        let turns = json!([say("One."), say("Two."), say("Three.")]);
        let (given, read) = compacting(json!({"turns": turns, "summary": say("They counted to two.")}), at(1_000_000));
        let world = given.that(|agent| agent.rules.compaction = Some(Compaction { keep_tokens: 0, ..Compaction::default() })).kept(kept).await;
        say_to(&world.runner, "First").await;
        say_to(&world.runner, "Second").await;
        let before = conversation(&world).await;

        let summary = compacted(&world).await;
        let third = say_to(&world.runner, "Third").await;

        assert_eq!(summary.status, Status::Completed);
        assert!(summary.output.unwrap().text.starts_with("They counted to two."));
        assert_eq!(third.output.unwrap().text, "Three.");
        let last = read.lock().unwrap().last().cloned().unwrap();
        assert!(last.contains("They counted to two."), "{last:?}");
        assert!(!last.contains("First") && !last.contains("One."), "{last:?}");
        let whole = conversation(&world).await;
        assert_eq!(whole[..4], before);
        assert_eq!(whole, ["First", "One.", "Second", "Two.", "Third", "Three."]);
        let report = world.runner.report(&third.run_id).await.unwrap();
        assert_eq!(said(&report)[..2], ["user: First", "model: One."]);
    }

    async fn a_long_run_is_compacted_at_its_threshold_and_calls_stay_with_their_results(kept: Kept) {
        let turns = json!([used(10, reading()), used(90, reading()), used(120, reading()), say("All read.")]);
        let (given, read) = compacting(json!({"turns": turns, "summary": used(7, say("Read twice."))}), None);
        let world = given
            .that(|agent| agent.rules.compaction = Some(Compaction { at_tokens: Some(120), keep_tokens: 10, model: None }))
            .kept(kept)
            .await;

        let report = say_to(&world.runner, "Read everything").await;

        assert_eq!(report.output.as_ref().map(|output| &*output.text), Some("All read."), "{report:?}");
        let read = read.lock().unwrap().clone();
        assert_eq!(read.iter().filter(|request| request.is_for_a_summary()).count(), 1);
        let last = read.last().unwrap();
        assert!(last.contains("Read everything") && last.contains("Read twice."), "{last:?}");
        assert!(!last.contains("call_2_1") && last.contains("call_3_1"), "{last:?}");
        for call in ["call_1_1", "call_2_1", "call_3_1"] {
            assert_eq!(answer_to(&report, call), "read done");
        }
        assert_eq!(report.budget.usage.input_tokens, Some(10 + 90 + 120 + 7));
    }

    async fn a_failed_compaction_lets_the_turn_go_on(kept: Kept) {
        let turns = json!([used(100, reading()), say("Read.")]);
        let fail = json!({"fail": {"code": "provider_unavailable"}});
        let (given, read) = compacting(json!({"turns": turns, "summary": fail}), at(50));
        let world = given.kept(kept).await;

        let report = say_to(&world.runner, "Read").await;

        assert_eq!((report.status, report.output.unwrap().text.as_str()), (Status::Completed, "Read."));
        let journal = world.journal(&report.run_id).await;
        let tried: Vec<_> = journal.into_iter().filter(|name| name.starts_with("compaction")).collect();
        assert_eq!(tried, ["compaction.started", "compaction.failed"]);
        assert!(read.lock().unwrap().last().unwrap().contains("call_1_1"));
    }

    async fn a_context_window_error_compacts_once_and_asks_again(kept: Kept) {
        let full = json!({"fail": {"code": "context_window", "times": 1}, "say": "Read."});
        let (given, _) = compacting(json!({"turns": [reading(), full], "summary": say("They read.")}), None);
        let given = given.that(|agent| agent.rules.compaction = Some(Compaction { keep_tokens: 0, ..Compaction::default() }));
        let world = given.kept(kept).await;

        let report = say_to(&world.runner, "Read").await;

        assert_eq!(report.output.as_ref().map(|output| &*output.text), Some("Read."), "{report:?}");
        let journal = world.journal(&report.run_id).await;
        assert_eq!(journal.iter().filter(|name| **name == "compaction.completed").count(), 1);
    }

    async fn a_compaction_whose_process_stopped_is_made_again(kept: Kept) {
        let turns = json!([used(100, reading()), say("Read.")]);
        let hang = json!({"hang": true});
        let (given, read) = compacting(json!({"turns": turns, "summary": hang}), at(50));
        let world = given.kept(kept).await;
        world.store.stop_renewing();
        let started = world.runner.start(Request::new("clerk", "Read")).await.unwrap();
        while !read.lock().unwrap().last().is_some_and(Read::is_for_a_summary) {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        tokio::time::sleep(LEASE * 2).await;

        let (other, _) = compacting(json!({"turns": turns, "summary": say("They read.")}), at(50));
        let model = other.agent().model;
        let other = world.another_process_where(|agent| agent.model = model).await;
        let mut taken = other.recover().await.unwrap();
        let report = taken.remove(0).until_idle().await.unwrap();

        assert_eq!(report.output.unwrap().text, "Read.");
        let journal = other.journal(&started.run).await.unwrap();
        let tried: Vec<_> = names(&journal).into_iter().filter(|name| name.starts_with("compaction")).collect();
        assert_eq!(tried, ["compaction.started", "compaction.started", "compaction.completed"]);
        let attempts = journal.iter().filter_map(|recorded| match &recorded.event {
            Event::CompactionStarted { attempt, .. } => Some(*attempt),
            _ => None,
        });
        assert_eq!(attempts.collect::<Vec<_>>(), [1, 2]);
    }

    // Issue 39, row 19
    async fn a_retry_of_a_compaction_compacts_again(kept: Kept) {
        for is_failed in [true, false] {
            let summary = || say("They counted.");
            let turns = json!([say("One."), say("Two."), say("Three.")]);
            let script = match is_failed {
                true => json!({"turns": turns}),
                false => json!({"turns": turns, "summary": summary()}),
            };
            let keeping = |given: Given| given.that(|agent| agent.rules.compaction = Some(Compaction { keep_tokens: 0, ..Compaction::default() }));
            let world = keeping(compacting(script, None).0).kept(kept).await;
            say_to(&world.runner, "First").await;
            let before = conversation(&world).await;
            let first = compacted(&world).await;
            assert_eq!(first.status == Status::Failed, is_failed, "{first:?}");
            let (given, read) = compacting(json!({"turns": turns, "summary": summary()}), None);
            let world = keeping(given).sharing(&world).await;

            let retried = world.runner.retry(&first.run_id, Retry::default()).await.unwrap().until_idle().await.unwrap();

            assert!(retried.output.unwrap().text.starts_with("They counted."), "is_failed: {is_failed}");
            assert!(read.lock().unwrap().iter().all(Read::is_for_a_summary), "is_failed: {is_failed}");
            assert_eq!(conversation(&world).await, before);
            let next = say_to(&world.runner, "Second").await;
            assert_eq!(next.status, Status::Completed);
            let last = read.lock().unwrap().last().cloned().unwrap();
            assert!(last.contains("They counted.") && !last.contains("First"), "{last:?}");
        }
    }
}

#[tokio::test]
async fn the_request_for_a_summary_begins_with_the_request_of_the_turn_before() {
    let turns = json!([used(10, reading()), used(100, reading()), say("Read.")]);
    let (given, read) = compacting(json!({"turns": turns, "summary": say("They read.")}), at(50));
    let world = given.kept(Kept::InMemory).await;

    say_to(&world.runner, "Read").await;

    let read = read.lock().unwrap().clone();
    let [_, before, summary, _] = &read[..] else { panic!("{read:?}") };
    assert!(summary.is_for_a_summary());
    assert_eq!((&before.system, &before.tools), (&summary.system, &summary.tools));
    assert_eq!(summary.messages[..before.messages.len()], before.messages[..]);
    assert_eq!((before.tool_access, summary.tool_access), (ToolAccess::Enabled, ToolAccess::FinalAnswer));
    assert!(summary.messages.last().unwrap().contains(&COMPACTION_INSTRUCTION[..60]));
}

#[tokio::test]
async fn a_new_run_with_a_long_conversation_before_it_is_compacted_first() {
    let turns = json!([used(500, say("One.")), say("Two.")]);
    let (given, read) = compacting(json!({"turns": turns, "summary": say("They began.")}), at(400));
    let world = given.kept(Kept::InMemory).await;
    say_to(&world.runner, "First").await;

    let second = say_to(&world.runner, "Second").await;

    assert_eq!(second.output.unwrap().text, "Two.");
    let last = read.lock().unwrap().last().cloned().unwrap();
    assert!(last.contains("They began.") && last.contains("Second") && !last.contains("First"), "{last:?}");
    assert_eq!(conversation(&world).await, ["First", "One.", "Second", "Two."]);
}

#[tokio::test]
async fn another_model_writes_the_summary_if_one_is_named() {
    let (given, read) = compacting(json!({"turns": [used(100, reading()), say("Read.")]}), None);
    let writer = json!({"turns": [], "summary": say("They read.")});
    let writer = ScriptedModel::new("writer", Script::from_json(&writer.to_string()).unwrap());
    let given = given.that(|agent| {
        agent.rules.compaction = Some(Compaction { at_tokens: Some(50), keep_tokens: 0, model: Some("writer".into()) });
        agent.compaction_model = Some(toolgate::runner::NamedModel { name: "writer".into(), model: Arc::new(writer) });
    });
    let world = given.kept(Kept::InMemory).await;

    let report = say_to(&world.runner, "Read").await;

    assert_eq!(report.output.unwrap().text, "Read.");
    assert!(read.lock().unwrap().last().unwrap().contains("They read."));
}

#[tokio::test]
async fn a_session_without_anything_to_replace_is_compacted_to_nothing() {
    let (given, read) = compacting(json!({"turns": [say("One.")]}), None);
    let world = given.kept(Kept::InMemory).await;
    say_to(&world.runner, "First").await;

    let done = compacted(&world).await;

    assert_eq!((done.status, done.output.unwrap().text.as_str()), (Status::Completed, ""));
    assert_eq!(read.lock().unwrap().len(), 1);
    let unknown = world.runner.compact(SessionCompaction::new("other")).await.unwrap_err();
    assert!(matches!(unknown, RunnerError::NoSuchSession(_)), "{unknown}");
}

#[tokio::test]
async fn a_compaction_on_request_that_fails_leaves_the_conversation() {
    let (given, read) = compacting(json!({"turns": [say("One."), say("Two.")]}), None);
    let given =
        given.that(|agent| agent.rules.compaction = Some(Compaction { keep_tokens: 0, ..Compaction::default() }));
    let world = given.kept(Kept::InMemory).await;
    say_to(&world.runner, "First").await;

    let failed = compacted(&world).await;
    let second = say_to(&world.runner, "Second").await;

    assert_eq!(failed.error.unwrap().code, ErrorCode::ProviderRejected);
    assert_eq!(second.output.unwrap().text, "Two.");
    assert!(read.lock().unwrap().last().unwrap().contains("First"));
    let assistants = second.messages.iter().filter(|message| message.role == Role::Assistant);
    assert_eq!(assistants.count(), 2);
}

#[tokio::test]
async fn row_0_31_a_compaction_is_in_the_event_stream_and_has_a_span() {
    let turns = json!([used(100, reading()), say("Read.")]);
    let (given, _) = compacting(json!({"turns": turns, "summary": used(7, say("They read."))}), at(50));
    let world = given.kept(Kept::InMemory).await;
    let report = say_to(&world.runner, "Read").await;
    let journal = world.runner.journal(&report.run_id).await.unwrap();

    let mut lifecycle = Lifecycle::new(report.run_id.clone(), Content::Omit);
    let told: Vec<_> = journal.iter().flat_map(|recorded| lifecycle.observe(recorded)).collect();
    let spans = project(&report.run_id, &journal, SpanContent::default(), Arc::new(|_| None));

    let of_compaction: Vec<_> = told.iter().filter(|event| event.name().contains("compaction")).collect();
    let names: Vec<_> = of_compaction.iter().map(|event| event.name()).collect();
    assert_eq!(names, ["conversation.compaction.started", "conversation.compaction.completed"]);
    let completed = serde_json::to_value(&of_compaction[1].fact).unwrap();
    assert_eq!(completed["cumulative"]["input_tokens"], 107, "{completed}");
    assert!(!completed.to_string().contains("They read."), "content is left out: {completed}");
    let is_compaction =
        |span: &&Span| span.attributes.iter().any(|attribute| format!("{attribute:?}").contains("toolgate.operation"));
    let summaries: Vec<_> = spans.iter().filter(is_compaction).collect();
    assert_eq!(summaries.len(), 1);
    assert!(format!("{:?}", summaries[0]).contains("They read."));
    assert_eq!(spans.iter().filter(|span| span.name.starts_with("chat ")).count(), 3);
}
