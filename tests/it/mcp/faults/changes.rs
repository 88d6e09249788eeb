//! Tools whose definition changes while they are in use.

use std::sync::Arc;

use toolgate::core::id::ServerId;
use toolgate::core::policy::{Match, Policy, Rule, Verdict};
use toolgate::core::run::{Decision, DecisionKind, PendingApproval, PendingItem, Status};
use toolgate::mcp::Recheck;
use toolgate::models::scripted::{Script, ScriptedModel};
use toolgate::ports::McpServers as _;
use toolgate::runner::{Agent, AgentRunner, Report, Request, Resume};
use toolgate::stores::MemoryStore;

use super::*;

/// The current definition of `mutant`.
async fn mutant(servers: &Servers) -> (String, Value) {
    let listed = list(servers, &["bad"]).await.remove(0);
    assert_eq!(listed.left_out, []);
    let mutant = listed.tools.iter().find(|tool| tool.name == "mutant").cloned().expect("it is listed");
    (mutant.description, mutant.input_schema["required"].clone())
}

#[tokio::test]
async fn a_tool_that_changes_is_listed_as_it_is_now_and_a_storm_of_announcements_is_one_change() {
    let (settings, wire) = watched(&["tools-change"]);
    let servers = servers([("bad", settings)]);
    assert_eq!(mutant(&servers).await, ("Doubles a number.".into(), json!(["number"])));
    let (before, asked) = (servers.generation(&[ServerId::from("bad")]), wire.received("tools/list").len());
    assert_eq!(echo(&servers, "bad", "hello").await, "hello");
    eventually("the change is known", async || servers.generation(&[ServerId::from("bad")]) != before).await;
    let (description, required) = mutant(&servers).await;
    assert!(description.contains("password"), "{description}");
    assert_eq!(required, json!(["number", "note"]));
    let told = wire.noted("sent").iter().filter(|sent| sent["method"] == "notifications/tools/list_changed").count();
    assert_eq!(told, 20);
    let asked = wire.received("tools/list").len() - asked;
    assert!((1..=3).contains(&asked), "twenty announcements made it ask {asked} times");
    servers.close().await;
}

/// A run that waits for a decision about `mutant`, at a server that changes the tool without an announcement when
/// `echo` is called.
async fn approved_after_a_silent_change(recheck: Recheck) -> (Report, Wire) {
    let (settings, wire) = watched(&["tools-change-silently"]);
    let servers = Arc::new(servers([("bad", ServerSettings { recheck, ..settings })]));
    let script = json!({"turns": [
        {"calls": [{"id": "double", "name": "mcp_bad_mutant", "arguments": {"number": 2}}]}, {"say": "Done."},
    ]});
    let mut policy = Policy::allow_always();
    let matches = Match { tool: Some("mcp_bad_mutant".into()), ..Match::default() };
    policy
        .rules
        .push(Rule::new("mutant", Verdict::Ask, "because it matters", matches, Vec::new(), Vec::new()).unwrap());
    let model = ScriptedModel::new("scripted", Script::from_json(&script.to_string()).expect("a script"));
    let agent = Agent { policy: Arc::new(policy), servers: vec!["bad".into()], ..Agent::new("clerk", Arc::new(model)) };
    let runner = AgentRunner::builder()
        .store(Arc::new(MemoryStore::new()))
        .servers(servers.clone())
        .agent(agent)
        // The changed schema requires an argument more; the scenario is about the approval.
        .without_validation()
        .build()
        .expect("a runner");
    let waiting = runner.execute(Request::new("clerk", "Hello")).await.expect("it runs");
    assert!(matches!(&waiting.pending[..], [PendingItem::Approval(_)]), "{waiting:?}");
    echo(&servers, "bad", "hello").await;
    let resume = Resume::default().with("double", Decision::new(DecisionKind::Approve, "ann"));
    let report = runner.resume(&waiting.run_id, resume).await.expect("the run resumes");
    servers.close().await;
    (report, wire)
}

#[tokio::test]
async fn a_definition_that_changed_without_an_announcement_does_not_run_on_an_earlier_approval() {
    for recheck in [Recheck::Approved, Recheck::Always] {
        let (report, wire) = approved_after_a_silent_change(recheck).await;
        let [PendingItem::Approval(PendingApproval { differences, .. })] = &report.pending[..] else {
            panic!("{report:?}")
        };
        assert!(!differences.is_empty(), "a person is shown what changed");
        assert_eq!(wire.calls(), ["echo"], "the changed tool was not called");
    }
}

#[tokio::test]
async fn recheck_never_trusts_the_announcements_of_the_server() {
    let (report, wire) = approved_after_a_silent_change(Recheck::Never).await;
    assert_eq!(report.status, Status::Completed);
    assert_eq!(wire.calls(), ["echo", "mutant"]);
}
