//! Real runs in several processes on one store: one process counts each event once.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate::core::id::ModelName;
use toolgate::core::policy::{Match, Policy, Rule, Verdict};
use toolgate::core::run::{Decision, DecisionKind, Event, Status};
use toolgate::core::tool::{ExternalTool, Outcome, ToolOutput};
use toolgate::models::scripted::{Script, ScriptedModel};
use toolgate::ports::RunStore;
use toolgate::runner::{Agent, AgentRunner, Answer, Fork, Request, Resume};
use toolgate::stores::MemoryStore;
use toolgate::telemetry::spans::{SpanContent, project};

use super::Records;
use crate::fakes::{FakeIds, FakeServers, tool};

/// Processes that share a store and servers.
struct Machine {
    store: Arc<MemoryStore>,
    servers: Arc<FakeServers>,
    ids: Arc<FakeIds>,
    agent: Agent,
}

impl Machine {
    /// An agent that reads and breaks files, and requires approval for deletions.
    fn whose_model_says(turns: Value) -> Self {
        let script = Script::from_json(&json!({"turns": turns}).to_string()).unwrap();
        let servers = FakeServers::default();
        ["read", "break", "delete"].iter().for_each(|name| servers.tool_access("files", tool(name)));
        servers.answer("break", Outcome::Returned(ToolOutput::error("it broke")));
        let guarded = Match { tool: Some("*_delete".into()), ..Match::default() };
        let ask = Rule::new("guard", Verdict::Ask, "it cannot be undone", guarded, Vec::new(), Vec::new()).unwrap();
        let mut policy = Policy::allow_always();
        policy.rules.push(ask);
        let model = Arc::new(ScriptedModel::new("scripted", script));
        let agent = Agent {
            model_name: "main".into(),
            servers: vec!["files".into()],
            policy: Arc::new(policy),
            ..Agent::new("clerk", model)
        };
        Self { store: Arc::default(), servers: Arc::new(servers), ids: Arc::default(), agent }
    }

    fn process(&self, name: &str) -> (AgentRunner, Records) {
        let records = Records::default();
        let runner = AgentRunner::builder()
            .store(self.store.clone())
            .servers(self.servers.clone())
            .ids(self.ids.clone())
            .node(name.into())
            .sink(records.sink())
            .agent(self.agent.clone())
            .build()
            .unwrap();
        (runner, records)
    }
}

fn all_at_once() -> Machine {
    Machine::whose_model_says(json!([
        {"calls": [
            {"id": "r", "name": "mcp_files_read"},
            {"id": "b", "name": "mcp_files_break"},
            {"id": "d", "name": "mcp_files_delete"},
            {"id": "x", "name": "ext_look_up"},
            {"id": "u", "name": "make_coffee"},
        ]},
        {"say": "Done."},
    ]))
}

fn request() -> Request {
    let look_up: ExternalTool = serde_json::from_value(json!({"name": "look_up"})).unwrap();
    Request::new("clerk", "Hello").external_tool(look_up)
}

fn yes_and_the_result() -> Resume {
    Resume::default().with("x", Answer::output("42")).with("d", Decision::new(DecisionKind::Approve, "ann"))
}

#[tokio::test]
async fn two_processes_count_each_event_of_a_run_once() {
    let machine = all_at_once();
    let (first, of_first) = machine.process("first");
    let report = first.execute(request()).await.unwrap();
    assert_eq!(report.status, Status::Pending);
    insta::assert_yaml_snapshot!("in_the_first_process", of_first.counts());

    let (second, of_second) = machine.process("second");
    let report = second.resume(&report.run_id, yes_and_the_result()).await.unwrap();
    assert_eq!(report.status, Status::Completed);
    insta::assert_yaml_snapshot!("in_the_second_process", of_second.counts());
}

#[tokio::test]
async fn a_fork_counts_only_its_own_facts() {
    let machine = all_at_once();
    let (runner, records) = machine.process("one");
    let original = runner.execute(request()).await.unwrap();
    let (elsewhere, of_fork) = machine.process("other");

    let fork = elsewhere.fork(&original.run_id, Fork::default()).await.unwrap().until_idle().await.unwrap();
    let (asked, counts) = (of_fork.count("toolgate.approvals.requested"), of_fork.counts());
    assert_eq!((asked, counts.len(), fork.status), (1.0, 1, Status::Pending), "its policy asks again: {counts:?}");

    elsewhere.resume(&fork.run_id, yes_and_the_result()).await.unwrap();
    assert_eq!((of_fork.count("toolgate.runs"), of_fork.count("toolgate.model.attempts")), (1.0, 1.0));
    let turns = of_fork.lines().into_iter().find(|line| line.starts_with("toolgate.run.turns")).unwrap();
    assert!(turns.ends_with("} 1"), "it has one turn of its own: {turns}");
    assert_eq!(records.count("toolgate.runs"), 0.0, "the other run still waits");
}

#[tokio::test]
async fn the_process_that_cancels_an_idle_run_counts_it() {
    let machine = all_at_once();
    let (first, of_first) = machine.process("first");
    let run = first.execute(request()).await.unwrap().run_id;
    let (second, of_second) = machine.process("second");

    second.cancel(&run, None, None).await.unwrap();

    assert_eq!((of_first.count("toolgate.runs"), of_second.count("toolgate.runs")), (0.0, 1.0));
    assert_eq!(of_second.counts().len(), 3, "{:?}", of_second.counts());
    assert!(of_second.lines()[0].contains("clerk") && of_second.lines()[0].contains("cancelled"));
}

#[tokio::test]
async fn the_driver_counts_a_run_cancelled_from_another_process() {
    let machine = Machine::whose_model_says(json!([{"calls": [{"id": "r", "name": "mcp_files_read"}]}]));
    machine.servers.hang_in("read");
    let (first, of_first) = machine.process("first");
    let mut execution = first.start(request()).await.unwrap();
    while let Some(update) = execution.updates.next().await {
        if format!("{update:?}").contains("CallsStarted") {
            break;
        }
    }
    let (second, of_second) = machine.process("second");

    second.cancel(&execution.run, None, None).await.unwrap();
    execution.until_idle().await.unwrap();

    assert_eq!((of_first.count("toolgate.runs"), of_second.counts().len()), (1.0, 0));
}

#[tokio::test]
async fn a_call_in_doubt_has_no_latency() {
    let machine = Machine::whose_model_says(json!([
        {"calls": [{"id": "r", "name": "mcp_files_read"}]}, {"say": "Done."},
    ]));
    let (runner, records) = machine.process("one");
    machine.servers.panic_in("read");
    runner.execute(request()).await.unwrap();
    let calls: Vec<String> =
        records.lines().into_iter().filter(|line| line.starts_with("toolgate.tool.calls")).collect();
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert!(calls[0].contains("toolgate.outcome=panicked"), "{calls:?}");
}

#[tokio::test]
async fn a_direct_tool_call_has_no_model_span_and_counts_no_model_attempt() {
    let machine = all_at_once();
    let (runner, records) = machine.process("a");
    let execution = runner.call_tool(Request::new("clerk", ""), "mcp_files_read", &Default::default()).await.unwrap();
    let run = execution.run.clone();
    assert_eq!(execution.until_idle().await.unwrap().status, Status::Completed);

    for metric in ["toolgate.model.attempts", "gen_ai.client.operation.duration"] {
        assert_eq!(records.count(metric), 0.0, "{metric}: {:?}", records.lines());
    }
    assert_eq!(records.count("toolgate.tool.calls"), 1.0);
    let journal = machine.store.load(&run, 0).await.unwrap();
    let spans = project(&run, &journal, SpanContent::default(), Arc::new(|_: &ModelName| None));
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    // A slow machine waits for the server, and each wait is a span too.
    let waits = journal.iter().filter(|entry| matches!(entry.event, Event::Waited { .. })).count();
    let expected = [&vec!["tools/list files"; 1 + waits][..], &["execute_tool mcp_files_read", "invoke_agent clerk"]];
    assert_eq!(names, expected.concat());
}
