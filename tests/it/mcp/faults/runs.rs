//! Whole runs with bad servers: the journal, and the messages to the model.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate::core::chat::Part;
use toolgate::core::policy::Policy;
use toolgate::core::run::{Event, PendingApproval, PendingItem, Status};
use toolgate::models::scripted::{Script, ScriptedModel};
use toolgate::runner::{Agent, AgentRunner, Report, Request};
use toolgate::stores::MemoryStore;
use toolgate::validation::SchemaValidator;

use super::*;

/// A run that is pending or has ended.
pub(super) struct Ran {
    pub(super) report: Report,
    journal: Vec<Event>,
}

/// Runs an agent with these servers, whose model replies with these turns.
pub(super) async fn run(servers: &Arc<Servers>, ids: &[&str], turns: Value) -> Ran {
    let script = Script::from_json(&json!({"turns": turns}).to_string()).expect("a script");
    let agent = Agent {
        policy: Arc::new(Policy::allow_always()),
        servers: ids.iter().map(|id| (*id).into()).collect(),
        ..Agent::new("clerk", Arc::new(ScriptedModel::new("scripted", script)))
    };
    let runner = AgentRunner::builder()
        .store(Arc::new(MemoryStore::new()))
        .servers(servers.clone())
        .inputs(Arc::new(SchemaValidator::new()))
        .agent(agent)
        .build()
        .expect("a runner");
    let report = runner.execute(Request::new("clerk", "Hello")).await.expect("it runs");
    let journal = runner.journal(&report.run_id).await.expect("a journal");
    Ran { report, journal: journal.into_iter().map(|recorded| recorded.event).collect() }
}

impl Ran {
    fn facts(&self) -> Vec<&'static str> {
        // The speed of a server decides whether the run waited for it.
        self.journal.iter().filter(|event| !matches!(event, Event::Waited { .. })).map(Event::name).collect()
    }

    /// The tool results that the model read, in order.
    fn answers(&self) -> Vec<String> {
        let parts = self.report.messages.iter().flat_map(|message| &message.content);
        parts
            .filter_map(|part| match part {
                Part::ToolResult { content, .. } => Some(content.iter().filter_map(Part::as_text).collect()),
                _ => None,
            })
            .collect()
    }

    /// The tools that the run leaves out, and why.
    fn left_out(&self) -> Vec<(Option<String>, String)> {
        let toolset = self.journal.iter().find_map(|event| match event {
            Event::ToolsListed { toolset } => Some(toolset),
            _ => None,
        });
        toolset.expect("a toolset").left_out().iter().map(|left| (left.tool.clone(), left.reason.clone())).collect()
    }
}

const ONE_CALL: [&str; 11] = [
    "execution.started",
    "tools.listed",
    "llm.call.started",
    "llm.call.completed",
    "tool.tier.selected",
    "tool.checked",
    "tool.started",
    "tool.completed",
    "llm.call.started",
    "llm.call.completed",
    "execution.ended",
];

#[tokio::test]
async fn a_run_continues_without_a_server_that_never_starts() {
    let bad = within(Duration::from_millis(500), fault(&["hang-at-start"]));
    let servers = Arc::new(servers([("bad", bad), ("good", fault(&[]))]));
    let turns = json!([{"calls": [{"name": "mcp_good_add", "arguments": {"a": 2, "b": 3}}]}, {"say": "Five."}]);
    let ran = run(&servers, &["bad", "good"], turns).await;
    assert_eq!(ran.facts(), ONE_CALL);
    assert_eq!(ran.answers(), [r#"{"sum":5}"#]);
    assert_eq!(ran.report.status, Status::Completed);
    let left_out = ran.left_out();
    assert_eq!(left_out.len(), 1, "{left_out:?}");
    assert!(
        left_out[0].1.starts_with("the MCP server `bad` did not answer the handshake within 0.5 s"),
        "{left_out:?}"
    );
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_costs_that_call_alone_and_the_model_reads_why() {
    let (settings, wire) = watched(&["die-in-call"]);
    let servers = Arc::new(servers([("bad", settings), ("good", fault(&[]))]));
    let turns = json!([
        {"calls": [
            {"name": "mcp_bad_echo", "arguments": {"text": "hello"}},
            {"name": "mcp_good_echo", "arguments": {"text": "hello"}},
        ]},
        {"calls": [{"name": "mcp_bad_count"}]},
        {"say": "Done."},
    ]);
    let ran = run(&servers, &["bad", "good"], turns).await;
    let answers = ran.answers();
    assert!(answers[0].contains("its process ended with exit status: 4"), "{answers:?}");
    assert_eq!(answers[1..], ["hello", r#"{"calls":0}"#], "the server is available again for the next call");
    assert_eq!(wire.calls(), ["echo", "count"], "made once");
    assert_eq!(ran.report.status, Status::Completed);
    servers.close().await;
}

#[tokio::test]
async fn a_second_tool_of_a_name_and_schemas_that_are_none_are_left_out_each_with_its_reason() {
    let servers = Arc::new(servers([("bad", fault(&["duplicate-tool", "malformed-tool"]))]));
    let turns = json!([{"calls": [{"name": "mcp_bad_dangling", "arguments": {"text": "a"}}]}, {"say": "Done."}]);
    let ran = run(&servers, &["bad"], turns).await;
    let malformed = |wrong: &str| format!("its definition is malformed: {wrong}. Correct it in the server");
    let expected = [
        ("bare", malformed("`inputSchema` is missing")),
        ("echo", "listed twice under one name; the first one is used. Give each tool its own name.".to_owned()),
        ("permissive", malformed("`inputSchema` is true, not an object")),
        ("dangling", "its input schema is broken at `#`: Pointer '/$defs/nowhere' does not exist".to_owned()),
    ];
    assert_eq!(ran.left_out(), expected.map(|(tool, reason)| (Some(tool.to_owned()), reason)));
    assert_eq!(ran.answers(), ["Tool does not exist: `mcp_bad_dangling`. Call one of the tools you were given."]);
    servers.close().await;
}

#[tokio::test]
async fn a_result_that_violates_its_schema_reaches_the_model_with_the_error() {
    let servers = Arc::new(servers([("bad", fault(&["bad-output"]))]));
    let turns = json!([{"calls": [{"name": "mcp_bad_add", "arguments": {"a": 2, "b": 3}}]}, {"say": "Odd."}]);
    let ran = run(&servers, &["bad"], turns).await;
    let answer = &ran.answers()[0];
    assert!(answer.starts_with(r#"{"sum":"three"}"#), "{answer}");
    assert!(answer.contains("The structured result does not fit the tool's output schema:"), "{answer}");
    assert_eq!((ran.facts(), ran.report.status), (ONE_CALL.to_vec(), Status::Completed));
    servers.close().await;
}

#[tokio::test]
async fn broken_content_is_an_error_that_names_the_server_and_leaves_the_rest_to_the_model() {
    let servers = Arc::new(servers([("bad", fault(&["broken-content"]))]));
    let turns = json!([{"calls": [{"name": "mcp_bad_echo", "arguments": {"text": "hello"}}]}, {"say": "Odd."}]);
    let ran = run(&servers, &["bad"], turns).await;
    let answer = &ran.answers()[0];
    assert!(answer.starts_with("hello"), "{answer}");
    let told = "[toolgate] The MCP server `bad` sent content that violates MCP. That is a fault of the server and not of the \
                arguments; the call was made and may have taken effect:\n{\"problems\":[{\"path\":\"/content/1/text\",";
    assert!(answer.contains(told), "{answer}");
    let outcome = ran.journal.iter().find_map(|event| match event {
        Event::CallCompleted { outcome, .. } => Some(outcome),
        _ => None,
    });
    let outcome = outcome.expect("an outcome");
    assert!(outcome.is_error(), "{outcome:?}");
    assert_eq!(outcome.problems().len(), 4, "{outcome:?}");
    assert_eq!((ran.facts(), ran.report.status), (ONE_CALL.to_vec(), Status::Completed));
    servers.close().await;
}

#[tokio::test]
async fn megabytes_do_not_reach_the_model() {
    let servers = Arc::new(servers([("bad", fault(&["huge-line-structured=5"]))]));
    let turns = json!([{"calls": [{"name": "mcp_bad_echo", "arguments": {"text": "more"}}]}, {"say": "Too much."}]);
    let ran = run(&servers, &["bad"], turns).await;
    let length = ran.answers()[0].len();
    assert!((1..256 * 1024).contains(&length), "the model reads {length} bytes");
    let mut facts = ONE_CALL.to_vec();
    facts.insert(8, "tools.listed");
    assert_eq!(ran.facts(), facts, "a tool to read the rest with joins the others");
    assert_eq!(ran.report.status, Status::Completed);
    servers.close().await;
}

#[tokio::test]
async fn a_tool_that_becomes_another_one_during_a_run_is_not_called_before_a_person_saw_it() {
    let (settings, wire) = watched(&["tools-change"]);
    let servers = Arc::new(servers([("bad", settings)]));
    let turns = json!([
        {"calls": [{"name": "mcp_bad_echo", "arguments": {"text": "hello"}}]},
        {"calls": [{"name": "mcp_bad_slow", "arguments": {"ms": 1500}}]},
        {"calls": [{"name": "mcp_bad_mutant", "arguments": {"number": 2, "note": "hunter2"}}]},
        {"say": "Four."},
    ]);
    let ran = run(&servers, &["bad"], turns).await;
    assert_eq!(ran.report.status, Status::Pending);
    let [PendingItem::Approval(PendingApproval { reason, .. })] = &ran.report.pending[..] else {
        panic!("{:?}", ran.report.pending)
    };
    assert!(reason.contains("changed the tool's definition during this run"), "{reason}");
    assert_eq!(ran.facts().iter().filter(|fact| **fact == "tools.listed").count(), 2);
    assert_eq!(wire.calls(), ["echo", "slow"], "the policy lets everything run, and still");
    servers.close().await;
}
