//! Fallback models: which model is called, for how long, and the cost.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use toolgate::core::chat::{Reply, Usage};
use toolgate::core::error::{ErrorCode, Failure};
use toolgate::core::id::{ModelName, RunId};
use toolgate::core::run::{Backoff, Event, Input, Limits, Resume, Status};
use toolgate::models::scripted::{Script, ScriptedModel};
use toolgate::ports::{Conversation, DeltaSink, Model, ModelFailure, ModelIdentity, ModelRequest};
use toolgate::runner::{AgentRunner, Fork, NamedModel, Request, RunnerError};
use toolgate::stores::MemoryStore;

use super::world::{Given, World, given_an_agent, results, said, say};

/// An agent whose model `scripted` has these turns, and whose fallback `backup` has the others.
fn two_models(first: Value, backup: Value) -> Given {
    given_an_agent().whose_model_says(first).with_a_fallback("backup", backup)
}

/// The models that were called, in order.
async fn asked(runner: &AgentRunner, run: &RunId) -> Vec<String> {
    let journal = runner.journal(run).await.unwrap();
    let models = journal.iter().filter_map(|recorded| match &recorded.event {
        Event::ModelCalled { model, .. } => Some(model.to_string()),
        _ => None,
    });
    models.collect()
}

fn reads() -> Value {
    json!({"calls": [{"name": "mcp_files_read"}]})
}

fn fails(code: &str) -> Value {
    json!({"fail": {"code": code}})
}

/// The first model fails once and would answer after that. A tool takes this long between the failure and the next
/// turn.
async fn after_a_tool_that_takes(seconds: u64) -> Vec<String> {
    let once = json!({"fail": {"code": "provider_unavailable", "times": 1}});
    let world = two_models(json!([once, say("Done.")]), json!([reads(), say("Done.")]))
        .with_tools("files", &["read"])
        .where_servers(|servers| servers.take_ms("read", seconds * 1000))
        .within(Limits { max_attempts: 1, ..Limits::default() })
        .ready()
        .await;
    let report = world.run().await;
    assert_eq!(report.status, Status::Completed);
    asked(&world.runner, &report.run_id).await
}

#[tokio::test(start_paused = true)]
async fn a_provider_lost_in_a_tool_loop_is_replaced_by_its_fallback() {
    let first = json!([reads(), fails("provider_unavailable"), say("Never said.")]);
    let backup = json!([say("Never said."), reads(), say("Done.")]);
    let world = two_models(first, backup).with_tools("files", &["read"]).ready().await;

    let report = world.run().await;

    assert_eq!((report.status, report.output.unwrap().text.as_str()), (Status::Completed, "Done."));
    let models = asked(&world.runner, &report.run_id).await;
    assert_eq!(models, ["scripted", "scripted", "scripted", "scripted", "scripted", "scripted", "backup", "backup"]);
    assert_eq!(world.clock.slept().len(), 4, "time is given before an attempt at the same model alone");
    assert_eq!(world.servers.calls().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn row_3_13_a_run_chooses_among_the_models_of_its_agent() {
    let other = ScriptedModel::new("other", Script::from_json(&json!({"turns": [say("Other.")]}).to_string()).unwrap());
    let other = NamedModel { name: "other".into(), model: Arc::new(other) };
    let world = two_models(json!([say("First.")]), json!([say("Backup.")]))
        .that(|agent| agent.selectable_models.push(other))
        .ready()
        .await;
    let chosen = async |model: &str| {
        let request = Request { model: Some(model.into()), ..Request::new("clerk", "Hello") };
        let report = world.runner.execute(request).await?;
        Ok::<_, RunnerError>((asked(&world.runner, &report.run_id).await, report.output.unwrap().text))
    };

    assert_eq!(chosen("other").await.unwrap(), (vec!["other".to_owned()], "Other.".to_owned()));
    assert_eq!(chosen("backup").await.unwrap(), (vec!["backup".to_owned()], "Backup.".to_owned()));
    let refused = chosen("unknown").await.unwrap_err();
    let told = "agent `clerk` does not allow model `unknown`; it allows scripted, backup, other";
    assert_eq!((refused.code(), refused.to_string().as_str()), (ErrorCode::Validation, told));
}

#[tokio::test(start_paused = true)]
async fn row_3_13_the_delays_between_attempts_are_the_agents() {
    let world = given_an_agent()
        .whose_model_says(json!([{"fail": {"code": "provider_unavailable", "times": 2}}, say("Done.")]))
        .that(|agent| agent.backoff = Backoff::Constant(Duration::from_millis(250)))
        .ready()
        .await;
    assert_eq!(world.run().await.status, Status::Completed);
    assert_eq!(world.clock.slept(), [Duration::from_millis(250); 2]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_model_is_skipped_until_its_cooldown_ends() {
    assert_eq!(after_a_tool_that_takes(30).await, ["scripted", "backup", "backup"]);
    assert_eq!(after_a_tool_that_takes(61).await, ["scripted", "backup", "scripted"]);
}

#[tokio::test(start_paused = true)]
async fn a_permanent_failure_uses_the_fallback_at_once() {
    for code in ["provider_auth", "context_window", "configuration", "internal"] {
        let world = two_models(json!([fails(code)]), json!([say("Done.")])).ready().await;
        let report = world.run().await;
        assert_eq!(asked(&world.runner, &report.run_id).await, ["scripted", "backup"], "{code}");
        assert_eq!((report.status, world.clock.slept()), (Status::Completed, vec![]), "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_truncated_answer_is_requested_from_the_fallback() {
    let cut = json!({"say": "and so", "stop": "context_window", "usage": {"input_tokens": 9}});
    let world = two_models(json!([cut]), json!([say("Done.")])).ready().await;
    let report = world.run().await;
    assert_eq!((report.status, said(&report)), (Status::Completed, vec!["user: Hello".into(), "model: Done.".into()]));
    assert_eq!(report.budget.usage.input_tokens, Some(9));

    let alone = given_an_agent().whose_model_says(json!([cut])).ready().await;
    assert_eq!(alone.run().await.error.unwrap().code, ErrorCode::ContextWindow);
}

#[tokio::test(start_paused = true)]
async fn a_provider_with_a_long_retry_delay_is_skipped_at_once() {
    let patience = json!({"fail": {"code": "provider_rate_limit", "retry_after_ms": 3_600_000}});
    let world = two_models(json!([patience]), json!([say("Done.")])).ready().await;
    let report = world.run().await;
    assert_eq!(asked(&world.runner, &report.run_id).await, ["scripted", "backup"]);
    assert!(world.clock.slept().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_not_requested_from_the_fallback() {
    let stops = |stop: &str| json!({"say": "", "stop": stop});
    for (turn, code) in [
        (fails("content_filter"), ErrorCode::ContentFilter),
        (fails("model_refused"), ErrorCode::ModelRefused),
        (stops("content_filter"), ErrorCode::ContentFilter),
        (stops("refusal"), ErrorCode::ModelRefused),
    ] {
        let world = two_models(json!([turn]), json!([say("Here you are.")])).ready().await;
        let report = world.run().await;
        assert_eq!(report.error.unwrap().code, code);
        assert_eq!(asked(&world.runner, &report.run_id).await, ["scripted"]);
    }
}

#[tokio::test(start_paused = true)]
async fn when_every_model_fails_the_run_ends_with_the_last_failure_and_says_how_many_were_tried() {
    let world = two_models(json!([fails("provider_auth")]), json!([fails("provider_billing")])).ready().await;
    let error = world.run().await.error.unwrap();
    assert_eq!(error.code, ErrorCode::ProviderBilling);
    assert!(error.message.ends_with("(this is the last failure; 2 models were tried)"), "{}", error.message);
}

#[tokio::test(start_paused = true)]
async fn a_model_of_the_chain_has_as_many_attempts_as_it_is_given() {
    let world = two_models(json!([fails("provider_auth")]), json!([fails("provider_unavailable")]))
        .that(|agent| agent.fallback[0].attempts = Some(2))
        .ready()
        .await;
    let report = world.run().await;
    assert_eq!(asked(&world.runner, &report.run_id).await, ["scripted", "backup", "backup"]);
}

/// A model that charges for failures, or panics.
struct Broken(ModelIdentity, Option<Usage>);

impl Broken {
    fn new(usage: Option<Usage>) -> Self {
        let identity = |name: &str| ModelIdentity {
            system: name.into(),
            provider: name.into(),
            model: name.into(),
            settings: Value::Null,
        };
        Self(identity("broken"), usage)
    }
}

impl Model for Broken {
    fn identity(&self) -> &ModelIdentity {
        &self.0
    }

    fn converse(&self) -> Box<dyn Conversation> {
        Box::new(Breaking(self.1))
    }
}

struct Breaking(Option<Usage>);

#[async_trait]
impl Conversation for Breaking {
    async fn reply(&mut self, _request: &ModelRequest<'_>, _deltas: DeltaSink<'_>) -> Result<Reply, ModelFailure> {
        let usage = self.0.expect("the adapter panics on demand");
        let failure = Failure::new(ErrorCode::ProviderInvalidResponse, "the answer was cut off");
        Err(ModelFailure { failure, usage })
    }
}

#[tokio::test(start_paused = true)]
async fn what_every_attempt_used_is_counted() {
    let usage = Usage { input_tokens: Some(7), ..Usage::default() };
    let answer = json!([{"say": "Done.", "usage": {"input_tokens": 100, "output_tokens": 5}}]);
    let world =
        given_an_agent().with_the_model(Broken::new(Some(usage))).with_a_fallback("backup", answer).ready().await;
    let report = world.run().await;
    assert_eq!(report.status, Status::Completed);
    assert_eq!((report.budget.usage.input_tokens, report.budget.usage.output_tokens), (Some(135), Some(5)));
}

#[tokio::test(start_paused = true)]
async fn an_adapter_that_panics_is_replaced_by_its_fallback() {
    let world =
        given_an_agent().with_the_model(Broken::new(None)).with_a_fallback("backup", json!([say("Done.")])).ready();
    assert_eq!(world.await.run().await.status, Status::Completed);
}

/// A run whose first model rejected the key, and which waits for a result.
async fn waiting_on_the_backup() -> (World, RunId) {
    let orders = json!({"calls": [{"name": "ext_order"}]});
    let backup = json!([orders, say("Done.")]);
    let world =
        two_models(json!([fails("provider_auth"), say("Back.")]), backup).with_an_external_tool("order").ready().await;
    let run = world.run().await.run_id;
    (world, run)
}

#[tokio::test(start_paused = true)]
async fn a_cooldown_holds_in_the_process_that_resumes_the_run() {
    let (world, run) = waiting_on_the_backup().await;
    let other = world.another_process().await;
    other.resume(&run, results([("call_1_1", json!("tea"))])).await.unwrap();
    assert_eq!(asked(&other, &run).await, ["scripted", "backup", "backup"]);
}

#[tokio::test(start_paused = true)]
async fn a_removed_model_is_a_failure_that_uses_the_fallback() {
    let (world, run) = waiting_on_the_backup().await;
    tokio::time::sleep(Duration::from_secs(61)).await;
    let other = world.another_process_where(|agent| agent.model_name = "renamed".into()).await;

    let report = other.resume(&run, results([("call_1_1", json!("tea"))])).await.unwrap();

    assert_eq!(report.status, Status::Completed);
    assert_eq!(asked(&other, &run).await, ["scripted", "backup", "scripted", "backup"]);
    let journal = other.journal(&run).await.unwrap();
    let mut failures = journal.iter().filter_map(|recorded| match &recorded.event {
        Event::ModelFailed { error, .. } => Some((error.code, error.message.clone())),
        _ => None,
    });
    let (code, message) = failures.next_back().unwrap();
    assert_eq!(code, ErrorCode::Configuration);
    assert!(message.contains("no model `scripted`"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn without_a_fallback_a_removed_model_ends_the_run() {
    let world = given_an_agent()
        .with_an_external_tool("order")
        .whose_model_says(json!([{"calls": [{"name": "ext_order"}]}, say("Done.")]))
        .ready()
        .await;
    let run = world.run().await.run_id;
    let other = world.another_process_where(|agent| agent.model_name = "renamed".into()).await;
    let report = other.resume(&run, results([("call_1_1", json!("tea"))])).await.unwrap();
    assert_eq!(report.error.unwrap().code, ErrorCode::Configuration);
}

#[tokio::test(start_paused = true)]
async fn a_fork_goes_on_with_the_chain_of_its_source() {
    let (world, run) = waiting_on_the_backup().await;
    let fork =
        world.runner.fork(&run, Fork { at: Some(3), ..Fork::default() }).await.unwrap().until_idle().await.unwrap();
    assert_eq!(fork.status, Status::Pending);
    assert_eq!(asked(&world.runner, &fork.run_id).await[1..], ["scripted", "backup"]);
}

#[tokio::test]
async fn an_agent_that_names_a_model_twice_is_refused() {
    let agent = two_models(json!([]), json!([])).with_a_fallback("backup", json!([])).agent();
    let refused = AgentRunner::builder().store(Arc::new(MemoryStore::new())).agent(agent).build();
    let twice = RunnerError::ModelTwice { agent: "clerk".into(), model: ModelName::from("backup") };
    assert_eq!(refused.err(), Some(twice));
}

/// A process that executes the run until it calls its model, which never answers, and then exits.
fn asks_and_is_gone(store: &Arc<MemoryStore>, run: Option<RunId>) -> RunId {
    let process = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    process.block_on(async {
        let runner = runner_of_a_mute_model(store);
        let execution = match run {
            None => runner.start(Request::new("clerk", "Hello")).await.unwrap(),
            Some(run) => taken_up(&runner, &run).await,
        };
        let length = runner.report(&execution.run).await.unwrap().version;
        let is_asking = |event: &Event| matches!(event, Event::ModelCalled { .. });
        loop {
            let journal = runner.journal(&execution.run).await.unwrap();
            if journal.len() as u64 >= length && journal.last().is_some_and(|last| is_asking(&last.event)) {
                return execution.run;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
}

fn runner_of_a_mute_model(store: &Arc<MemoryStore>) -> AgentRunner {
    let mute = Script::from_json(r#"{"turns": [{"hang": true}]}"#).unwrap();
    let agent = given_an_agent().with_the_model(ScriptedModel::new("scripted", mute)).agent();
    AgentRunner::builder().store(store.clone()).lease(Duration::from_millis(10)).agent(agent).build().unwrap()
}

/// Resumes the run as soon as the previous process is known to be dead.
async fn taken_up(runner: &AgentRunner, run: &RunId) -> toolgate::runner::Execution {
    loop {
        match runner.resume_run(run, Input::Resume(Resume::default()), None).await {
            Ok(execution) => return execution,
            Err(RunnerError::DrivenElsewhere { .. }) => tokio::time::sleep(Duration::from_millis(1)).await,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_run_whose_process_dies_twenty_times_while_the_model_is_asked_is_given_up() {
    let store = Arc::new(MemoryStore::new());
    let mut run = None;
    for _ in 0..20 {
        run = Some(asks_and_is_gone(&store, run));
    }
    let process = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let report = process.block_on(async {
        let runner = runner_of_a_mute_model(&store);
        taken_up(&runner, &run.unwrap()).await.until_idle().await.unwrap()
    });
    let error = report.error.unwrap();
    assert_eq!(error.code, ErrorCode::Internal);
    assert!(error.message.contains("20 times in a row"), "{}", error.message);
}
