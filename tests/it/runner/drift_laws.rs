//! Laws of drift: names, definitions, addresses, trust and policies change between any two steps.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use toolgate::core::id::{CallId, RunId, ServerId};
use toolgate::core::policy::{Condition, Match, Policy, Rule, Subject, Verdict};
use toolgate::core::run::{AnswerForm, Binding, DecisionKind, Event, JournalEntry, PendingItem, Run, Status};
use toolgate::core::tool::{Arguments, Origin, ServerTools, Toolset, ToolsetRules};
use toolgate::runner::{Answer, Report, Resume};

use super::world::{World, given_an_agent, no, say, yes, yes_but_with};
use crate::fakes::{endpoint_of, tool, tools};

type Servers = BTreeMap<ServerId, ServerTools>;

/// More pending items than a run of this size can have.
const ENOUGH: usize = 100;

fn files(servers: &mut Servers) -> &mut ServerTools {
    servers.get_mut(&"files".into()).unwrap()
}

/// The possible changes. Most of the time nothing changes.
const CHANGES: [fn(&mut Servers); 9] = [
    |_| {},
    |_| {},
    |_| {},
    |servers| files(servers).trusted ^= true,
    |servers| tools(servers, "files").iter_mut().for_each(|tool| tool.description.push('!')),
    |servers| files(servers).endpoint = Some(endpoint_of("sha256:another program")),
    |servers| {
        let tools = tools(servers, "files");
        tools.iter_mut().for_each(|tool| tool.annotations.read_only_hint = Some(true));
    },
    // The other server takes the name of `a_b`, or returns it.
    |servers| {
        let tools = tools(servers, "files_a");
        match tools.iter().position(|tool| tool.name == "b") {
            Some(place) => drop(tools.remove(place)),
            None => tools.push(tool("b")),
        }
    },
    |servers| {
        let tools = tools(servers, "files");
        match tools.iter().position(|tool| tool.name == "read") {
            Some(place) => drop(tools.remove(place)),
            None => tools.push(tool("read")),
        }
    },
];

fn policies() -> Vec<Arc<Policy>> {
    let rule = |verdict, matches| Rule::new("rule", verdict, "the rule says so", matches, vec![], vec![]).unwrap();
    let named = |name: &str| Match { tool: Some(name.into()), ..Match::default() };
    let reads = Match { read_only: Some(true), ..Match::default() };
    let evil = Condition::parse("args.path == 'EVIL'").unwrap();
    let policies = [
        Policy::allow_always(),
        Policy::ask_always(),
        Policy { rules: vec![rule(Verdict::Allow, named("mcp_files_a_b"))], ..Policy::ask_always() },
        Policy { rules: vec![rule(Verdict::Deny, named("mcp_files_read"))], ..Policy::ask_always() },
        Policy { rules: vec![rule(Verdict::Allow, reads)], ..Policy::ask_always() },
        Policy { rules: vec![rule(Verdict::Deny, named("*")).with_condition(evil)], ..Policy::ask_always() },
    ];
    policies.into_iter().map(Arc::new).collect()
}

fn turn(kinds: &[usize]) -> Value {
    let name = |kind: &usize| ["mcp_files_read", "mcp_files_a_b", "ext_order"][*kind];
    let call = |kind: &usize| json!({"name": name(kind), "arguments": {"path": "a"}});
    json!({"calls": kinds.iter().map(call).collect::<Vec<Value>>()})
}

async fn world_of(turns: &[Vec<usize>], changes: &[usize]) -> World {
    let script: Vec<Value> = turns.iter().map(|kinds| turn(kinds)).chain([say("Done.")]).collect();
    let world = given_an_agent()
        .with_tools("files", &["read", "a_b"])
        .with_tools("files_a", &["c"])
        .with_an_external_tool("order")
        .that(|agent| agent.policy = policies()[1].clone())
        .whose_model_says(script.into())
        .ready()
        .await;
    world.servers.change_when_looked_at(changes.iter().map(|change| CHANGES[*change]));
    world
}

/// Answers to all pending items, which depend on the round alone.
fn answered(pending: &[PendingItem], answer: usize, version: u64) -> Resume {
    let mut resume = Resume { expected_version: Some(version), ..Resume::default() };
    for item in pending {
        let call = item.call_id().unwrap().clone();
        match (item.form(), answer) {
            (AnswerForm::Result { .. }, _) => resume.answers.push((call, Answer::output(json!(1)))),
            (AnswerForm::Decision(_), 0) => resume.answers.push((call, no("not today").into())),
            (AnswerForm::Decision(_), 1) => resume.answers.push((call, yes_but_with(json!({"path": "EVIL"})).into())),
            (AnswerForm::Decision(_), _) => resume.answers.push((call, yes().into())),
            (
                AnswerForm::Choice(_)
                | AnswerForm::Elicitation { .. }
                | AnswerForm::Background(_)
                | AnswerForm::Continue { .. },
                _,
            ) => {
                panic!("unexpected item: {item:?}")
            }
        }
    }
    resume
}

/// The binding of the last decision about a call.
fn bound(journal: &[JournalEntry], call: &CallId) -> Option<Binding> {
    let decided = journal.iter().rev().find_map(|recorded| match &recorded.event {
        Event::ApprovalDecided { call: id, decision } if id == call => Some(decision),
        _ => None,
    });
    let yes = decided.filter(|decision| decision.answer == DecisionKind::Approve)?;
    yes.binding.as_deref().cloned()
}

/// Whether a call may be sent, judged from outside: by the available tools and the current policy.
fn is_right(run: &Run, journal: &[JournalEntry], policy: &Arc<Policy>, offers: &[ServerTools], call: &CallId) -> bool {
    let spec = &run.started().spec;
    let pins = run.pins().clone();
    let rules = ToolsetRules { agent: Some(spec.agent.clone()), policy: policy.clone(), pins, ..Default::default() };
    let toolset = Toolset::assemble(&spec.external_tools, offers, &rules);
    let (origin, arguments) = asked(journal, call);
    let Some(tool) = toolset.iter().find(|tool| tool.origin == origin) else { return false };
    let arguments = edited(journal, call).unwrap_or(arguments);
    let subject = Subject { tool, agent: Some(&spec.agent), principal: None, arguments: arguments.as_object() };
    let is_bound = |bound: Binding| bound.definition == tool.hash && bound.arguments == arguments.hash();
    match policy.judge(&subject).verdict {
        Verdict::Allow => true,
        Verdict::Ask => bound(journal, call).is_some_and(is_bound),
        Verdict::Deny => false,
    }
}

/// The tool that the model called, as it was shown, and its arguments.
fn asked(journal: &[JournalEntry], id: &CallId) -> (Origin, Arguments) {
    let mut shown = None;
    for recorded in journal {
        match &recorded.event {
            Event::ToolsListed { toolset } => shown = Some(toolset.clone()),
            Event::ModelReplied { reply } => {
                if let Some(call) = reply.calls().find(|call| call.id == *id) {
                    let tool = shown.unwrap().get(&call.name).unwrap().origin.clone();
                    return (tool, call.arguments);
                }
            }
            _ => {}
        }
    }
    panic!("{id} was never called")
}

/// The arguments of the latest approval that edited them. An edit stays when the call is asked about again.
fn edited(journal: &[JournalEntry], id: &CallId) -> Option<Arguments> {
    journal.iter().rev().find_map(|recorded| match &recorded.event {
        Event::ApprovalDecided { call, decision } if call == id => decision.edited_arguments.clone(),
        _ => None,
    })
}

/// Checks the calls that were sent to servers or handed to the application since the last check.
async fn check(world: &World, run: &RunId, policy: &Arc<Policy>, sent: usize, report: &Report) -> usize {
    let journal = world.runner.journal(run).await.unwrap();
    assert_eq!(journal.len() as u64, report.version, "every fact is written");
    let state = world.runner.load(run).await.unwrap();
    let (calls, offered) = (world.servers.calls(), world.servers.offered());
    for (call, offers) in calls.iter().zip(&offered).skip(sent) {
        let call = CallId::from(call.as_str());
        assert!(is_right(&state, &journal, policy, offers, &call), "{call} was sent without a right to it");
        let is_kept =
            |recorded: &JournalEntry| matches!(&recorded.event, Event::CallCompleted { call: id, .. } if *id == call);
        assert!(journal.iter().any(is_kept), "what became of {call} is not kept");
    }
    calls.len()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn whatever_changes_no_call_leaves_without_authorization(
        turns in prop::collection::vec(prop::collection::vec(0..3usize, 1..4), 1..4),
        changes in prop::collection::vec(0..CHANGES.len(), 0..60),
        lives in prop::collection::vec((0..6usize, 0..6usize), 12),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let world = world_of(&turns, &changes).await;
            let mut report = world.run().await;
            let mut sent = check(&world, &report.run_id, &policies()[1], 0, &report).await;
            let mut rounds = 0;
            while report.status == Status::Pending {
                let (policy, answer) = lives[rounds % lives.len()];
                let policy = policies()[policy].clone();
                // After enough rounds everything is denied, so that the run cannot ask forever.
                let answer = if rounds > lives.len() * 2 { 0 } else { answer };
                let handed: Vec<CallId> = external(&report.pending);
                let process = world.another_process_where(|agent| agent.policy = policy.clone()).await;
                let given = answered(&report.pending, answer, report.version);
                report = process.resume(&report.run_id, given).await.unwrap();
                sent = check(&world, &report.run_id, &policy, sent, &report).await;
                for call in external(&report.pending).iter().filter(|call| !handed.contains(call)) {
                    let journal = world.runner.journal(&report.run_id).await.unwrap();
                    let state = world.runner.load(&report.run_id).await.unwrap();
                    assert!(is_right(&state, &journal, &policy, &[], call), "{call} was handed over without a right to it");
                }
                rounds += 1;
                assert!(rounds < ENOUGH, "the run asks forever: {:?}", report.pending);
            }
        });
    }
}

fn external(pending: &[PendingItem]) -> Vec<CallId> {
    let is_external = |item: &&PendingItem| matches!(item, PendingItem::ExternalResult(_));
    pending.iter().filter(is_external).map(|item| item.call_id().unwrap().clone()).collect()
}
