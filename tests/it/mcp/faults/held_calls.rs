//! Held calls: the server waits for an answer on the open call, and the work before the question happens once.

use std::sync::Arc;

use serde_json::json;
use toolgate::core::chat::Message;
use toolgate::core::id::RunId;
use toolgate::core::policy::Policy;
use toolgate::core::run::{
    ElicitationAnswer, Event, Input, JournalEntry, PendingInput, PendingItem, ResumeError, Status,
};
use toolgate::core::tool::ElicitationResponse;
use toolgate::models::scripted::{Script, ScriptedModel};
use toolgate::ports::Update;
use toolgate::runner::{Agent, AgentRunner, ElicitationHold, Execution, Report, Request, Resume, RunnerError};
use toolgate::stores::MemoryStore;

use super::*;

/// Longer than any of these tests takes.
const LONG: Duration = Duration::from_secs(600);

struct Scene {
    servers: Arc<Servers>,
    store: Arc<MemoryStore>,
    turns: &'static str,
}

const ONE_ECHO: &str = r#"{"turns": [
    {"calls": [{"id": "echo", "name": "mcp_shop_echo", "arguments": {"text": "charged"}}]},
    {"say": "It says: {{last_result}}"}
]}"#;

const TWO_ECHOES: &str = r#"{"turns": [
    {"calls": [
        {"id": "one", "name": "mcp_shop_echo", "arguments": {"text": "one"}},
        {"id": "two", "name": "mcp_shop_echo", "arguments": {"text": "two"}}
    ]},
    {"say": "Done."}
]}"#;

impl Scene {
    fn of(settings: ServerSettings, turns: &'static str) -> Self {
        Self { servers: Arc::new(servers([("shop", settings)])), store: Arc::default(), turns }
    }

    /// A process that executes runs, and holds calls open for that long.
    fn process(&self, hold: Duration) -> AgentRunner {
        let agent = Agent {
            policy: Arc::new(Policy::allow_always()),
            servers: vec!["shop".into()],
            ..Agent::new("clerk", Arc::new(ScriptedModel::new("scripted", Script::from_json(self.turns).unwrap())))
        };
        AgentRunner::builder()
            .store(self.store.clone())
            .servers(self.servers.clone())
            .poll(Duration::from_millis(20))
            .elicitation_hold(ElicitationHold { usual: hold, servers: Default::default() })
            .agent(agent)
            .build()
            .expect("a runner")
    }
}

async fn started(runner: &AgentRunner) -> Execution {
    runner.start(Request::new("clerk", "Hello")).await.expect("it starts")
}

/// Waits until the server asks on the open call.
async fn asked(execution: &mut Execution) {
    while let Some(update) = execution.updates.next().await {
        if matches!(update, Update::JournalEntry(JournalEntry { event: Event::InputRequested { .. }, .. })) {
            return;
        }
    }
    panic!("the run became idle, and no call was held");
}

/// The same reaction to every open question, and whether a call may be sent a second time.
async fn given(runner: &AgentRunner, run: &RunId, reaction: &ElicitationResponse, repeat: bool) -> Resume {
    let items = runner.load(run).await.expect("a run").pending_items();
    let input = |item: &PendingItem| {
        let PendingItem::Input(PendingInput { call_id, questions, .. }) = item else { panic!("{item:?}") };
        let reactions = questions.keys().map(|key| (key.clone(), reaction.clone())).collect();
        (call_id.clone(), ElicitationAnswer { reactions, by: "ann".into(), via: Default::default(), repeat })
    };
    items.iter().map(input).collect::<Resume>().partial()
}

fn ada() -> ElicitationResponse {
    ElicitationResponse::accept(json!({"name": "Ada"}).as_object().expect("an object").clone())
}

async fn names(runner: &AgentRunner, run: &RunId) -> Vec<&'static str> {
    runner.journal(run).await.expect("a journal").iter().map(|recorded| recorded.event.name()).collect()
}

fn refusal(refused: Result<Report, RunnerError>) -> ResumeError {
    match refused {
        Err(RunnerError::Refused(mut refusals)) if refusals.len() == 1 => refusals.remove(0),
        other => panic!("expected one refusal, got {other:?}"),
    }
}

#[tokio::test]
async fn a_call_that_charges_and_then_asks_charges_once_over_either_transport() {
    let (stdio, stdio_wire) = watched(&["elicits-late"]);
    let endpoint = Endpoint::with(&["elicits-late"]).await;
    for (settings, wire) in [(stdio, &stdio_wire), (endpoint.settings(), &endpoint.wire)] {
        let scene = Scene::of(settings, ONE_ECHO);
        let runner = scene.process(LONG);
        let mut execution = started(&runner).await;
        let run = execution.run.clone();
        asked(&mut execution).await;
        let [PendingItem::Input(PendingInput { held: true, repeats: false, .. })] =
            &runner.load(&run).await.unwrap().pending_items()[..]
        else {
            panic!("the question is shown while the call is open")
        };
        let report = runner.resume(&run, given(&runner, &run, &ada(), false).await).await.unwrap();
        assert_eq!(report.output.unwrap().text, "It says: hello, Ada\ncharged");
        assert_eq!(wire.calls(), ["echo"], "sent once");
        assert_eq!(executed(&scene.servers, "shop").await, 1);
        let facts = names(&runner, &run).await;
        let from = facts.iter().position(|fact| *fact == "tool.started").unwrap();
        let expected = ["tool.started", "tool.input.requested", "tool.input.given", "tool.completed"];
        assert_eq!(facts[from..][..4], expected);
        scene.servers.close().await;
    }
}

#[tokio::test]
async fn waiting_for_a_run_ends_when_a_server_asks_on_an_open_call() {
    let (settings, wire) = watched(&["elicits-late"]);
    let scene = Scene::of(settings, ONE_ECHO);
    let runner = scene.process(LONG);
    let execution = started(&runner).await;
    let run = execution.run.clone();
    assert!(execution.idle_or_elicitation().await.is_none(), "the waiting client may be the one that can answer");
    let state = runner.load(&run).await.unwrap();
    assert_eq!((state.status(), state.open_items().len()), (Status::Running, 1));
    runner.resume(&run, given(&runner, &run, &ada(), false).await).await.unwrap();
    assert_eq!(wire.calls(), ["echo"]);
    scene.servers.close().await;
}

#[tokio::test]
async fn an_answer_given_to_another_process_reaches_the_open_call() {
    let (settings, wire) = watched(&["elicits-late"]);
    let scene = Scene::of(settings, ONE_ECHO);
    let (owner, other) = (scene.process(LONG), scene.process(LONG));
    let mut execution = started(&owner).await;
    let run = execution.run.clone();
    asked(&mut execution).await;
    other.record(&run, given(&other, &run, &ada(), false).await).await.unwrap();
    assert_eq!(execution.until_idle().await.unwrap().status, Status::Completed);
    assert_eq!(wire.calls(), ["echo"]);
    scene.servers.close().await;
}

#[tokio::test]
async fn a_server_that_asks_again_on_the_open_call_is_answered_again() {
    let (settings, wire) = watched(&["elicits-forever"]);
    let scene = Scene::of(settings, ONE_ECHO);
    let runner = scene.process(LONG);
    let mut execution = started(&runner).await;
    let run = execution.run.clone();
    for _ in 0..3 {
        asked(&mut execution).await;
        let version = runner.load(&run).await.unwrap().length();
        let given = given(&runner, &run, &ada(), false).await;
        runner.record(&run, Resume { expected_version: Some(version), ..given }).await.unwrap();
    }
    asked(&mut execution).await;
    runner.cancel(&run, None, None).await.unwrap();
    assert_eq!(execution.until_idle().await.unwrap().status, Status::Cancelled);
    assert_eq!(wire.calls(), ["echo"]);
    scene.servers.close().await;
}

#[tokio::test]
async fn a_call_that_is_not_held_any_longer_is_sent_a_second_time_only_with_consent() {
    let (settings, wire) = watched(&["elicits-late"]);
    let scene = Scene::of(settings, ONE_ECHO);
    let runner = scene.process(Duration::from_millis(50));
    let pending = started(&runner).await.until_idle().await.unwrap();
    let [PendingItem::Input(PendingInput { held: false, repeats: true, .. })] = &pending.pending[..] else {
        panic!("{pending:?}")
    };

    let refused = refusal(runner.resume(&pending.run_id, given(&runner, &pending.run_id, &ada(), false).await).await);
    assert_eq!(refused, ResumeError::RepeatUnconfirmed { call_id: "echo".into() });
    let still = runner.report(&pending.run_id).await.unwrap();
    assert_eq!(
        (still.version, wire.calls().len()),
        (pending.version, 1),
        "the input was rejected, and nothing was sent"
    );

    let report = runner.resume(&pending.run_id, given(&runner, &pending.run_id, &ada(), true).await).await.unwrap();
    assert_eq!(report.status, Status::Completed);
    assert_eq!(wire.calls(), ["echo", "echo"], "as the person agreed to");
    scene.servers.close().await;
}

#[tokio::test]
async fn declining_gives_the_model_an_unknown_outcome_and_sends_nothing() {
    let (settings, wire) = watched(&["elicits-late"]);
    let scene = Scene::of(settings, ONE_ECHO);
    let runner = scene.process(Duration::ZERO);
    let pending = started(&runner).await.until_idle().await.unwrap();
    let declined = given(&runner, &pending.run_id, &ElicitationResponse::decline(), false).await;
    let report = runner.resume(&pending.run_id, declined).await.unwrap();
    assert!(report.output.unwrap().text.starts_with("It says: Outcome unknown"), "the model reads that");
    assert_eq!(wire.calls(), ["echo"]);
    scene.servers.close().await;
}

#[tokio::test]
async fn a_process_that_stops_does_not_hold_calls_for_people() {
    let (settings, _wire) = watched(&["elicits-late"]);
    let scene = Scene::of(settings, ONE_ECHO);
    let runner = scene.process(LONG);
    let mut execution = started(&runner).await;
    asked(&mut execution).await;
    let times = toolgate::runner::DrainTimes { rest: LONG, step: LONG };
    assert_eq!(runner.drain(times).await, 0);
    let report = execution.until_idle().await.unwrap();
    assert_eq!((report.status, report.pending[0].kind()), (Status::Pending, "elicitation"));
    scene.servers.close().await;
}

#[tokio::test]
async fn questions_of_two_calls_on_one_stream_go_to_no_call_for_sure_and_are_not_answered_in_place() {
    let (settings, wire) = watched(&["elicits-late"]);
    let scene = Scene::of(settings, TWO_ECHOES);
    let runner = scene.process(LONG);
    let pending = started(&runner).await.until_idle().await.unwrap();
    let repeats =
        |item: &PendingItem| matches!(item, PendingItem::Input(PendingInput { repeats: true, held: false, .. }));
    assert!(pending.pending.len() == 2 && pending.pending.iter().all(repeats), "{:?}", pending.pending);
    assert_eq!(wire.calls(), ["echo", "echo"]);
    scene.servers.close().await;
}

#[tokio::test]
async fn a_message_to_a_run_does_not_disturb_its_held_call() {
    let (settings, wire) = watched(&["elicits-late"]);
    let scene = Scene::of(settings, ONE_ECHO);
    let runner = scene.process(LONG);
    let mut execution = started(&runner).await;
    let run = execution.run.clone();
    asked(&mut execution).await;
    runner.message(&run, Message::user("and be quick")).await.unwrap();
    let joined = runner.resume_run(&run, Input::Resume(given(&runner, &run, &ada(), false).await), None).await.unwrap();
    assert_eq!(joined.until_idle().await.unwrap().status, Status::Completed);
    assert_eq!(wire.calls(), ["echo"]);
    scene.servers.close().await;
}

#[tokio::test]
async fn a_run_continues_when_the_server_withdraws_its_question_from_the_open_call() {
    let (stdio, stdio_wire) = watched(&["elicits-and-withdraws"]);
    let endpoint = Endpoint::with(&["elicits-and-withdraws"]).await;
    for (settings, wire) in [(stdio, &stdio_wire), (endpoint.settings(), &endpoint.wire)] {
        let scene = Scene::of(settings, ONE_ECHO);
        let report = started(&scene.process(LONG)).await.until_idle().await.unwrap();
        assert_eq!((report.status, report.pending.len()), (Status::Completed, 0));
        assert_eq!(report.output.unwrap().text, "It says: charged");
        assert_eq!(wire.calls(), ["echo"], "sent once");
        scene.servers.close().await;
    }
}
