//! Drift: changes between an authorization and the moment when a call is sent.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use toolgate::core::id::ServerId;
use toolgate::core::policy::{Condition, Links, Match, Policy, Rule, Verdict};
use toolgate::core::run::{
    Authorization, CallVerdict, Decision, Event, OnUnknownOutcome, PendingApproval, PendingItem, Status,
};
use toolgate::core::tool::{Annotations, AskHuman, McpTool, TierMode};
use toolgate::ports::PathResolver;
use toolgate::runner::{Agent, Report, Request};

use super::world::{
    Given, Kept, LEASE, World, answer_to, decisions, given_an_agent, names, results, say, yes, yes_but_with,
    yes_for_the_session,
};
use crate::fakes::{Change, tool, tools};

fn rule(verdict: Verdict, tool: &str) -> Rule {
    let matches = Match { tool: Some(tool.into()), ..Match::default() };
    Rule::new(tool, verdict, "because it matters", matches, vec![], vec![]).unwrap()
}

/// Denies everything about `EVIL`, and otherwise gives this verdict.
fn wary_of_evil(otherwise: Policy) -> Arc<Policy> {
    let condition = Condition::parse("args.path == 'EVIL'").unwrap();
    let rule = Rule::new("evil", Verdict::Deny, "not allowed", Match::default(), vec![], vec![]).unwrap();
    Arc::new(Policy { rules: vec![rule.with_condition(condition)], ..otherwise })
}

fn two_searchers() -> Given {
    let only_hub = Policy { rules: vec![rule(Verdict::Allow, "mcp_git_hub_search")], ..Policy::ask_always() };
    given_an_agent()
        .with_tools("git", &["log"])
        .with_tools("git_hub", &["search"])
        .that(|agent| agent.policy = only_hub.into())
        .whose_model_says(json!([{"calls": [{"name": "mcp_git_hub_search"}]}, say("Done.")]))
}

/// A decision that differs from the previous one.
fn yes_who_saw_it() -> Decision {
    Decision { reason: Some("I saw what changed".into()), ..yes() }
}

fn reasons(report: &Report) -> Vec<String> {
    let reason = |item: &PendingItem| match item {
        PendingItem::Approval(PendingApproval { reason, .. }) => Some(reason.clone()),
        _ => None,
    };
    report.pending.iter().filter_map(reason).collect()
}

fn drifts(journal: &[&str]) -> usize {
    journal.iter().filter(|name| **name == "tool.drifted").count()
}

#[tokio::test(start_paused = true)]
async fn a_tool_renamed_by_another_server_requires_approval() {
    let world = two_searchers().ready().await;
    // Read before the model call, and checked again before its call is sent.
    let nothing: Change = |_| {};
    let takes_the_name: Change = |servers| tools(servers, "git").push(tool("hub_search"));
    world.servers.change_when_looked_at([nothing, nothing, nothing, takes_the_name]);

    let asked = world.run().await;

    assert_eq!((asked.status, world.servers.calls().len()), (Status::Pending, 0));
    let journal = world.journal(&asked.run_id).await;
    assert_eq!((drifts(&journal), journal.contains(&"llm.call.completed")), (1, true));
    let done = world.resume(&asked.run_id, decisions([("call_1_1", yes())])).await.unwrap();
    assert_eq!((done.status, answer_to(&done, "call_1_1")), (Status::Completed, "search done".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_approval_of_a_renamed_tool_is_requested_once_more() {
    let world = two_searchers().that(|agent| {
        agent.policy = Policy { rules: vec![rule(Verdict::Ask, "mcp_git_hub_search")], ..Policy::ask_always() }.into();
    });
    let world = world.ready().await;
    let first = world.run().await;
    world.servers.tool_access("git", tool("hub_search"));

    let again = world.resume(&first.run_id, decisions([("call_1_1", yes())])).await.unwrap();
    assert_eq!((again.status, world.servers.calls().len()), (Status::Pending, 0));
    let done = world.resume(&first.run_id, decisions([("call_1_1", yes_who_saw_it())])).await.unwrap();

    assert_eq!((done.status, world.servers.calls().len()), (Status::Completed, 1));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_lost_trust_requires_approval() {
    let reads = Match { read_only: Some(true), ..Match::default() };
    let reads = Rule::new("reads", Verdict::Allow, "it only reads", reads, vec![], vec![]).unwrap();
    let policy = Policy { rules: vec![reads], ..Policy::ask_always() };
    let harmless = |name: &str| {
        let annotations = Annotations { read_only_hint: Some(true), ..Annotations::default() };
        McpTool { annotations, ..tool(name) }
    };
    let world = given_an_agent()
        .with_tools("files", &["low"])
        .with_tools("mail", &["send"])
        .where_servers(|servers| {
            servers.tool_access("files", harmless("low"));
            servers.trust("files", true);
        })
        .that(|agent| {
            agent.policy = policy.into();
            agent.rules.tiers = TierMode::Sequential;
            agent.priorities = vec![("mcp_mail_*".into(), 5)];
        })
        .whose_model_says(json!([{"calls": [{"name": "mcp_mail_send"}, {"name": "mcp_files_low"}]}, say("Done.")]))
        .ready()
        .await;
    let waiting = world.run().await;
    assert_eq!(waiting.pending.len(), 1);
    world.servers.trust("files", false);

    let asked = world.resume(&waiting.run_id, decisions([("call_1_1", yes())])).await.unwrap();

    assert_eq!((asked.status, asked.pending[0].call_id().unwrap().as_str()), (Status::Pending, "call_1_2"));
    assert_eq!(answer_to(&asked, "call_1_1"), "send done");
    let done = world.resume(&waiting.run_id, decisions([("call_1_2", yes())])).await.unwrap();
    assert_eq!((done.status, world.servers.calls()), (Status::Completed, vec!["call_1_1".into(), "call_1_2".into()]));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_changes_at_every_look_blocks_no_run() {
    let world = given_an_agent()
        .with_tools("files", &["read"])
        .where_servers(|servers| servers.trust("files", true))
        .whose_model_says(json!([{"calls": [{"name": "mcp_files_read"}]}, say("Done.")]))
        .ready()
        .await;
    let grows: Change = |servers| tools(servers, "files")[0].description.push('!');
    world.servers.change_when_looked_at([grows; 1000]);

    let report = world.run().await;

    assert_eq!((report.status, world.servers.calls().len()), (Status::Completed, 0));
    assert!(answer_to(&report, "call_1_1").starts_with("Not run: the definition of this tool changed"));
}

fn refund(path: &str) -> Value {
    json!({"calls": [{"name": "ext_refund", "arguments": {"path": path}}]})
}

async fn an_approved_refund(policy: Arc<Policy>) -> (World, Report) {
    let given = given_an_agent().that(|agent| agent.policy = policy).with_an_external_tool("refund");
    let world = given.whose_model_says(json!([refund("a"), say("Done."), refund("a"), say("Done."), refund("a")]));
    let world = world.ready().await;
    let waiting = world.run().await;
    assert_eq!(waiting.pending[0].kind(), "approval");
    (world, waiting)
}

#[tokio::test(start_paused = true)]
async fn an_external_call_is_handed_over_as_it_was_approved() {
    let (world, waiting) = an_approved_refund(wary_of_evil(Policy::ask_always())).await;

    let handed = world.resume(&waiting.run_id, decisions([("call_1_1", yes())])).await.unwrap();

    assert_eq!((handed.status, handed.pending[0].kind()), (Status::Pending, "external_result"));
    let journal = world.runner.journal(&waiting.run_id).await.unwrap();
    let last = journal.last().unwrap();
    assert!(matches!(
        &last.event,
        Event::CallChecked { verdict: CallVerdict::Run { by: Authorization::HumanApproval }, .. }
    ));
    let done = world.resume(&waiting.run_id, results([("call_1_1", json!("paid"))])).await.unwrap();
    assert_eq!(done.status, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn an_external_call_edited_into_a_denied_one_is_not_handed_over() {
    let (world, waiting) = an_approved_refund(wary_of_evil(Policy::ask_always())).await;

    let edited = decisions([("call_1_1", yes_but_with(json!({"path": "EVIL"})))]);
    let done = world.resume(&waiting.run_id, edited).await.unwrap();

    assert_eq!(done.status, Status::Completed);
    assert!(answer_to(&done, "call_1_1").contains("not allowed"), "{}", answer_to(&done, "call_1_1"));
}

#[tokio::test(start_paused = true)]
async fn calls_and_questions_denied_meanwhile_are_not_handed_over() {
    let ask = json!({"name": "ask_human", "arguments": {"question": "Which?"}});
    let both = json!({"calls": [{"name": "ext_refund", "arguments": {"path": "a"}}, ask]});
    let asks = Policy { rules: vec![rule(Verdict::Ask, "*")], ..Policy::ask_always() };
    let world = given_an_agent()
        .with_an_external_tool("refund")
        .that(|agent| {
            agent.policy = asks.into();
            agent.rules.ask_human = Some(AskHuman::default());
        })
        .whose_model_says(json!([both, say("Done.")]))
        .ready()
        .await;
    let waiting = world.run().await;
    let denies = Policy { rules: vec![rule(Verdict::Deny, "*")], ..Policy::ask_always() };
    let edited = world.another_process_where(|agent| agent.policy = denies.into()).await;

    let decided = decisions([("call_1_1", yes()), ("call_1_2", yes())]);
    let done = edited.resume(&waiting.run_id, decided).await.unwrap();

    assert_eq!(done.status, Status::Completed);
    for call in ["call_1_1", "call_1_2"] {
        assert!(answer_to(&done, call).contains("because it matters"), "{}", answer_to(&done, call));
    }
}

#[tokio::test(start_paused = true)]
async fn an_external_tool_deny_listed_meanwhile_is_not_handed_over() {
    let (world, waiting) = an_approved_refund(Policy::ask_always().into()).await;
    let edited = world.another_process_where(|agent| agent.tools.deny = vec!["ext_*".into()]).await;

    let done = edited.resume(&waiting.run_id, decisions([("call_1_1", yes())])).await.unwrap();

    assert_eq!((done.status, answer_to(&done, "call_1_1").contains("no longer offered")), (Status::Completed, true));
}

#[tokio::test(start_paused = true)]
async fn an_external_call_does_not_use_a_revoked_grant() {
    let (world, first) = an_approved_refund(Policy::ask_always().into()).await;
    let request = || Request { session: Some(first.session_id.clone()), ..world.request() };
    world.resume(&first.run_id, decisions([("call_1_1", yes_for_the_session())])).await.unwrap();
    world.resume(&first.run_id, results([("call_1_1", json!("refunded"))])).await.unwrap();
    let handed = world.runner.execute(request()).await.unwrap();
    assert_eq!(handed.pending[0].kind(), "external_result", "as long as it stands");
    world.resume(&handed.run_id, results([("call_3_1", json!("refunded"))])).await.unwrap();
    world.approvals.revoke_when_looked_up();

    let asked = world.runner.execute(request()).await.unwrap();

    assert_eq!(asked.pending[0].kind(), "approval");
}

/// A run whose process stopped during a call, as another process finds it.
async fn outcome_unknown(given: Given, policy: Option<Arc<Policy>>) -> (World, Report) {
    let call = json!({"calls": [{"name": "mcp_files_read", "arguments": {"path": "a"}}]});
    let given = given.where_servers(|servers| servers.hang_in("read"));
    let world = given.whose_model_says(json!([call, say("Done.")])).kept(Kept::InMemory).await;
    world.store.stop_renewing();
    world.start().await;
    while world.servers.calls().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(LEASE * 2).await;
    world.servers.recover("read");
    world.servers.forgive_repeats_of("read");
    let change = |agent: &mut Agent| agent.policy = policy.unwrap_or(agent.policy.clone());
    let other = world.another_process_where(change).await;
    let report = other.recover().await.unwrap().remove(0).until_idle().await.unwrap();
    (world, report)
}

fn asking_in_doubt() -> Given {
    let given = given_an_agent().with_tools("files", &["read"]);
    given.that(|agent| agent.rules.on_unknown_outcome = OnUnknownOutcome::Ask)
}

#[tokio::test(start_paused = true)]
async fn a_call_in_doubt_is_not_sent_again_with_arguments_that_are_denied() {
    let policy = wary_of_evil(Policy::allow_always());
    let (world, waiting) = outcome_unknown(asking_in_doubt().that(|agent| agent.policy = policy), None).await;

    let edited = decisions([("call_1_1", yes_but_with(json!({"path": "EVIL"})))]);
    let other = world.another_process().await;
    let done = other.resume(&waiting.run_id, edited).await.unwrap();

    assert_eq!((done.status, world.servers.calls().len()), (Status::Completed, 1));
    let told = answer_to(&done, "call_1_1");
    assert!(told.contains("not allowed") && told.contains("may or may not have taken effect"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_call_in_doubt_of_a_changed_tool_shows_the_difference() {
    let (world, waiting) = outcome_unknown(asking_in_doubt(), None).await;
    assert!(reasons(&waiting)[0].contains("was sent before"));
    world.servers.tool_access("files", McpTool { description: "sends it away".into(), ..tool("read") });

    let other = world.another_process().await;
    let again = other.resume(&waiting.run_id, decisions([("call_1_1", yes())])).await.unwrap();

    let [PendingItem::Approval(PendingApproval { differences, outcome_unknown: true, .. })] = &again.pending[..] else {
        panic!("{:?}", again.pending)
    };
    assert_eq!((differences[0].field.as_str(), world.servers.calls().len()), ("description", 1));
    let done = other.resume(&waiting.run_id, decisions([("call_1_1", yes_who_saw_it())])).await.unwrap();
    assert_eq!((done.status, world.servers.calls().len()), (Status::Completed, 2));
}

#[tokio::test(start_paused = true)]
async fn a_call_in_doubt_of_a_removed_tool_is_not_reported_unsent() {
    let (world, waiting) = outcome_unknown(asking_in_doubt(), None).await;
    world.servers.withdraw("files", "read");

    let other = world.another_process().await;
    let done = other.resume(&waiting.run_id, decisions([("call_1_1", yes())])).await.unwrap();

    let told = answer_to(&done, "call_1_1");
    assert!(told.starts_with("Not sent again") && told.contains("may or may not have taken effect"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn an_idempotent_call_denied_meanwhile_is_not_sent_again() {
    for doubt in [OnUnknownOutcome::Report, OnUnknownOutcome::Ask] {
        let given =
            given_an_agent().with_a_harmless_tool("files", "read").that(|agent| agent.rules.on_unknown_outcome = doubt);
        let denies = Policy { rules: vec![rule(Verdict::Deny, "*")], ..Policy::ask_always() };

        let (world, report) = outcome_unknown(given, Some(denies.into())).await;

        assert_eq!((report.status, world.servers.calls().len()), (Status::Completed, 1));
        assert!(!answer_to(&report, "call_1_1").contains("Not run"), "{}", answer_to(&report, "call_1_1"));
        let journal = world.runner.journal(&report.run_id).await.unwrap();
        assert_eq!(drifts(&names(&journal)), 1);
    }
}

/// A file system in which the link `/srv/link` leads to the next of these folders at each look, and finally always to the
/// last one.
struct Swapped(std::sync::Mutex<Vec<&'static str>>);

impl Swapped {
    fn between(folders: &[&'static str]) -> Arc<Self> {
        Arc::new(Self(folders.iter().rev().copied().collect::<Vec<_>>().into()))
    }
}

#[async_trait]
impl PathResolver for Swapped {
    async fn resolve(&self, _: &ServerId, paths: &[String]) -> Links {
        let mut folders = self.0.lock().unwrap();
        let folder = if folders.len() > 1 { folders.pop().unwrap() } else { folders[0] };
        let resolved = |path: &String| (path.clone(), Ok(path.replacen("/srv/link", folder, 1)));
        Links::Resolved(paths.iter().map(resolved).collect())
    }
}

/// An agent that may read below `/srv` and reads through a link there.
fn reading_through(links: Arc<Swapped>) -> Given {
    let condition = Condition::parse("args.path.within('/srv')").unwrap();
    let allowed = rule(Verdict::Allow, "mcp_files_read").with_condition(condition);
    given_an_agent()
        .with_tools("files", &["read"])
        .with_the_paths_resolved_by(links)
        .that(|agent| agent.policy = Policy { rules: vec![allowed], ..Policy::ask_always() }.into())
        .whose_model_says(json!([
            {"calls": [{"name": "mcp_files_read", "arguments": {"path": "/srv/link/x"}}]},
            say("Done.")
        ]))
}

#[tokio::test(start_paused = true)]
async fn a_link_swapped_after_the_check_requires_approval() {
    let world = reading_through(Swapped::between(&["/srv/inner", "/etc"])).ready().await;

    let asked = world.run().await;

    assert_eq!((asked.status, world.servers.calls().len()), (Status::Pending, 0));
    let [reason] = &reasons(&asked)[..] else { panic!("{asked:?}") };
    assert!(reason.contains("`/srv/link/x` leads to `/etc/x`"), "{reason}");
    let done = world.resume(&asked.run_id, decisions([("call_1_1", yes())])).await.unwrap();
    assert_eq!((done.status, world.servers.calls().len()), (Status::Completed, 1));
}

#[tokio::test(start_paused = true)]
async fn a_link_swapped_after_the_approval_requires_a_new_one() {
    // Resolved when the call is checked, and again right before it is sent.
    let world = reading_through(Swapped::between(&["/opt", "/etc"])).ready().await;
    let asked = world.run().await;
    assert!(reasons(&asked)[0].contains("leads to `/opt/x`"), "{asked:?}");

    let again = world.resume(&asked.run_id, decisions([("call_1_1", yes())])).await.unwrap();

    assert_eq!((again.status, world.servers.calls().len()), (Status::Pending, 0));
    assert!(reasons(&again)[0].contains("leads to `/etc/x`"), "{again:?}");
    let done = world.resume(&asked.run_id, decisions([("call_1_1", yes_who_saw_it())])).await.unwrap();
    assert_eq!((done.status, world.servers.calls().len()), (Status::Completed, 1));
}
