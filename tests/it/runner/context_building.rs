//! Ports that are called in each turn: the context builder, and the validators of arguments and answers.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use toolgate::core::chat::{Message, Part};
use toolgate::core::error::{ErrorCode, Failure};
use toolgate::core::lifecycle::{Content, Lifecycle, LifecycleEvent};
use toolgate::core::run::{Budget, Limits, OutputVerdict, Spec, Status};
use toolgate::core::tool::{Tool, Toolset};
use toolgate::ports::{Context, ContextBuilder, InputFindings, OutputValidator, ToolInputValidator};
use toolgate::runner::Request;

use super::world::{given_an_agent, say};
use crate::fakes::{JsonAnswers, StrictInputs};

/// The budget of each call of a port: its name, iterations and tool interactions used, and the limit of the latter.
#[derive(Default)]
struct BudgetRecorder(Mutex<Vec<(&'static str, u32, u32, u32)>>);

impl BudgetRecorder {
    fn record(&self, port: &'static str, budget: &Budget) {
        let limit = budget.limits.max_tool_interactions;
        self.0.lock().unwrap().push((port, budget.iterations, budget.tool_interactions, limit));
    }
}

#[async_trait]
impl ContextBuilder for BudgetRecorder {
    async fn build<'a>(
        &self,
        spec: &'a Spec,
        transcript: &'a [Arc<Message>],
        _tools: &Toolset,
        budget: &Budget,
    ) -> Result<Context<'a>, Failure> {
        self.record("context", budget);
        Ok(Context { system: Cow::Borrowed(&spec.system), messages: Cow::Borrowed(transcript) })
    }
}

#[async_trait]
impl ToolInputValidator for BudgetRecorder {
    fn accepts(&self, tool: &Tool) -> Result<(), String> {
        StrictInputs.accepts(tool)
    }

    async fn check(&self, tool: &Tool, arguments: &Map<String, Value>, budget: &Budget) -> InputFindings {
        self.record("arguments", budget);
        StrictInputs.check(tool, arguments, budget).await
    }

    async fn check_result(&self, tool: &Tool, result: &Value) -> InputFindings {
        StrictInputs.check_result(tool, result).await
    }

    async fn check_form(&self, schema: &Value, form: &Value) -> InputFindings {
        StrictInputs.check_form(schema, form).await
    }
}

#[async_trait]
impl OutputValidator for BudgetRecorder {
    fn takes_schema(&self, schema: &Value) -> Result<(), String> {
        JsonAnswers.takes_schema(schema)
    }

    async fn check(&self, spec: &Spec, answer: &str, budget: &Budget) -> OutputVerdict {
        self.record("answer", budget);
        JsonAnswers.check(spec, answer, budget).await
    }
}

#[tokio::test(start_paused = true)]
async fn rows_2_41_and_2_42_validators_and_context_builder_receive_the_budget_of_the_moment() {
    let recorder = Arc::new(BudgetRecorder::default());
    let look = json!({"calls": [{"name": "mcp_files_read", "arguments": {}}]});
    let world = given_an_agent()
        .with_tools("files", &["read"])
        .that(|agent| agent.rules.validate_output = true)
        .within(Limits { max_tool_interactions: 7, ..Limits::default() })
        .with_the_context(recorder.clone())
        .with_the_arguments_checked_by(recorder.clone())
        .with_the_answers_checked_by(recorder.clone())
        .whose_model_says(json!([look, say("forty-two"), say("42")]))
        .ready()
        .await;

    assert_eq!(world.run().await.status, Status::Completed);

    let expected = [
        ("context", 0, 0, 7),
        ("arguments", 1, 1, 7),
        ("context", 1, 1, 7),
        ("answer", 2, 1, 7),
        ("context", 2, 2, 7),
        ("answer", 3, 2, 7),
    ];
    assert_eq!(*recorder.0.lock().unwrap(), expected);
}

/// Drops the first messages, and marks the last one.
struct Cut(usize);

/// Marks the last message after another builder.
struct Marked<B>(B);

fn with_mark(messages: &[Arc<Message>], mark: String) -> Vec<Arc<Message>> {
    let mut messages = messages.to_vec();
    if let Some(last) = messages.last_mut() {
        Arc::make_mut(last).content.push(Part::text(mark));
    }
    messages
}

#[async_trait]
impl ContextBuilder for Cut {
    async fn build<'a>(
        &self,
        spec: &'a Spec,
        transcript: &'a [Arc<Message>],
        tools: &Toolset,
        budget: &Budget,
    ) -> Result<Context<'a>, Failure> {
        let mark = format!("[turn {} with {} tools]", budget.iterations + 1, tools.iter().count());
        let messages = with_mark(&transcript[self.0..], mark);
        Ok(Context { system: Cow::Borrowed(&spec.system), messages: Cow::Owned(messages) })
    }
}

#[async_trait]
impl<B: ContextBuilder> ContextBuilder for Marked<B> {
    async fn build<'a>(
        &self,
        spec: &'a Spec,
        transcript: &'a [Arc<Message>],
        tools: &Toolset,
        budget: &Budget,
    ) -> Result<Context<'a>, Failure> {
        let inner = self.0.build(spec, transcript, tools, budget).await?;
        let messages = with_mark(&inner.messages, format!("[{} messages]", inner.messages.len()));
        Ok(Context { messages: Cow::Owned(messages), ..inner })
    }
}

#[tokio::test(start_paused = true)]
async fn row_2_20_the_model_reads_in_each_turn_what_composed_builders_built() {
    // The model counts its replies: with the earlier answer in the conversation it would begin with the second turn.
    let turns = json!([
        {"expect": {"contains": "[turn 1 with 1 tools]\n[1 messages]"}, "calls": [{"name": "mcp_files_read"}]},
        {"expect": {"contains": "[turn 2 with 1 tools]\n[3 messages]"}, "say": "Done."},
    ]);
    let world = given_an_agent()
        .with_tools("files", &["read"])
        .with_the_context(Arc::new(Marked(Cut(2))))
        .whose_model_says(turns)
        .ready()
        .await;
    let history = vec![Message::user("Earlier"), Message::assistant("An earlier answer.")];

    let report = world.runner.execute(Request { history, ..world.request() }).await.unwrap();

    assert_eq!((report.status, report.output.unwrap().text.as_str()), (Status::Completed, "Done."));
    let shown: Vec<String> = report.messages.iter().map(|message| message.text()).collect();
    assert!(!shown.iter().any(|text| text.contains("[turn")), "the transcript is unchanged: {shown:?}");
}

/// A context builder that fails.
struct Fails;

#[async_trait]
impl ContextBuilder for Fails {
    async fn build<'a>(
        &self,
        _spec: &'a Spec,
        _transcript: &'a [Arc<Message>],
        _tools: &Toolset,
        _budget: &Budget,
    ) -> Result<Context<'a>, Failure> {
        Err(Failure::new(ErrorCode::ContextWindow, "it does not fit"))
    }
}

/// A context builder that fails once the tool budget is used up.
struct FailsWhenExhausted;

#[async_trait]
impl ContextBuilder for FailsWhenExhausted {
    async fn build<'a>(
        &self,
        spec: &'a Spec,
        transcript: &'a [Arc<Message>],
        _tools: &Toolset,
        budget: &Budget,
    ) -> Result<Context<'a>, Failure> {
        match budget.is_exhausted() {
            true => Err(Failure::new(ErrorCode::ContextWindow, "it does not fit")),
            false => Ok(Context { system: Cow::Borrowed(&spec.system), messages: Cow::Borrowed(transcript) }),
        }
    }
}

/// A context builder that panics.
struct Panics;

#[async_trait]
impl ContextBuilder for Panics {
    async fn build<'a>(
        &self,
        _spec: &'a Spec,
        _transcript: &'a [Arc<Message>],
        _tools: &Toolset,
        _budget: &Budget,
    ) -> Result<Context<'a>, Failure> {
        panic!("no context")
    }
}

#[tokio::test(start_paused = true)]
async fn row_2_58_a_context_that_cannot_be_built_fails_the_run_before_the_model_is_called() {
    let world = given_an_agent().with_the_context(Arc::new(Fails)).ready().await;

    let report = world.run().await;

    assert_eq!(report.error.unwrap().code, ErrorCode::ContextWindow);
    let journal = world.runner.journal(&report.run_id).await.unwrap();
    let mut lifecycle = Lifecycle::new(report.run_id.clone(), Content::Omit);
    let events: Vec<_> = journal.iter().flat_map(|recorded| lifecycle.observe(recorded)).collect();
    let names: Vec<&str> = events.iter().map(LifecycleEvent::name).collect();
    assert_eq!(names, ["execution.started", "tools.listed", "context.build.started", "execution.failed"]);
}

#[tokio::test(start_paused = true)]
async fn row_2_44_exhaustion_is_told_in_a_turn_whose_context_cannot_be_built() {
    let look = json!({"calls": [{"name": "mcp_files_read"}]});
    let given = given_an_agent().with_tools("files", &["read"]).whose_model_says(json!([look]));
    let given = given.within(Limits { max_tool_interactions: 1, ..Limits::default() });
    let world = given.with_the_context(Arc::new(FailsWhenExhausted)).ready().await;

    let report = world.run().await;

    let journal = world.runner.journal(&report.run_id).await.unwrap();
    let mut lifecycle = Lifecycle::new(report.run_id.clone(), Content::Omit);
    let events: Vec<_> = journal.iter().flat_map(|recorded| lifecycle.observe(recorded)).collect();
    let names: Vec<&str> = events.iter().map(LifecycleEvent::name).collect();
    assert_eq!(names[names.len() - 3..], ["tool.budget.exhausted", "context.build.started", "execution.failed"]);
}

#[tokio::test(start_paused = true)]
async fn a_context_builder_that_panics_fails_the_run() {
    let world = given_an_agent().with_the_context(Arc::new(Panics)).ready().await;

    let error = world.run().await.error.unwrap();

    assert_eq!(error.code, ErrorCode::Internal);
    assert!(error.message.contains("the context builder panicked"), "{}", error.message);
}
