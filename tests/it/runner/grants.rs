//! Start of a grant: not with the approval, but when the approved call is sent.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate::core::policy::{Condition, Match, Policy, Rule, Verdict};
use toolgate::core::run::{Decision, PendingItem, Scope, Status};
use toolgate::core::tool::{AskHuman, McpTool};
use toolgate::ports::GrantFilter;
use toolgate::runner::{AgentRunner, Report};

use super::world::{Given, World, decisions, given_an_agent, no, results, say, yes};
use crate::fakes::tool;

fn guarded() -> Given {
    given_an_agent().with_tools("files", &["delete"]).whose_policy_says(Verdict::Ask, "*_delete").whose_model_says(
        json!([
            {"calls": [{"name": "mcp_files_delete", "arguments": {"path": "a"}}]},
            say("Done.")
        ]),
    )
}

fn yes_always() -> Decision {
    Decision { scope: Scope::Always, ..yes() }
}

async fn waiting() -> (World, Report) {
    let world = guarded().ready().await;
    let report = world.run().await;
    (world, report)
}

/// The calls for which a grant was ever stored, including expired ones.
async fn stood(runner: &AgentRunner) -> Vec<String> {
    let all = GrantFilter { ended: true, ..GrantFilter::default() };
    runner
        .grants(&all)
        .await
        .unwrap()
        .into_iter()
        .filter_map(|grant| grant.given_with)
        .map(|with| with.call.to_string())
        .collect()
}

fn denying_everything() -> Policy {
    let matches = Match { tool: Some("*".into()), ..Match::default() };
    let rule = Rule::new("never", Verdict::Deny, "not allowed", matches, vec![], vec![]).unwrap();
    Policy { rules: vec![rule], ..Policy::ask_always() }
}

#[tokio::test(start_paused = true)]
async fn a_grant_starts_once_its_call_was_sent() {
    let (world, waiting) = waiting().await;

    let done = world.resume(&waiting.run_id, decisions([("call_1_1", yes_always())])).await.unwrap();

    assert_eq!((done.status, stood(&world.runner).await), (Status::Completed, vec!["call_1_1".to_owned()]));
    assert_eq!(world.run().await.status, Status::Completed, "no approval is required again");
}

#[tokio::test(start_paused = true)]
async fn a_grant_covers_no_call_about_which_another_rule_asks() {
    let delete = |path: &str| json!({"calls": [{"name": "mcp_files_delete", "arguments": {"path": path}}]});
    let hooks = Condition::parse("args.path.startsWith('.git/')").unwrap();
    let rule = Rule::new("hooks", Verdict::Ask, "git executes it", Match::default(), vec![], vec![]).unwrap();
    let policy = Policy { rules: vec![rule.with_condition(hooks)], ..Policy::ask_always() };
    let turns = json!([
        delete("a"),
        delete("b"),
        delete(".git/hooks/pre-commit"),
        delete(".git/config"),
        delete("c"),
        say("Done.")
    ]);
    let world = given_an_agent()
        .with_tools("files", &["delete"])
        .that(|agent| agent.policy = Arc::new(policy))
        .whose_model_says(turns)
        .ready()
        .await;
    let asked = world.run().await;

    let asked = world.resume(&asked.run_id, decisions([("call_1_1", yes_always())])).await.unwrap();
    assert_eq!(
        asked.pending[0].call_id().unwrap().as_str(),
        "call_3_1",
        "the default asked about the second call as well"
    );
    let PendingItem::Approval(approval) = &asked.pending[0] else { panic!("{:?}", asked.pending) };
    assert_eq!(approval.reason, "git executes it");

    let done = world.resume(&asked.run_id, decisions([("call_3_1", yes_always())])).await.unwrap();
    assert_eq!((done.status, world.servers.calls().len()), (Status::Completed, 5));
}

#[tokio::test(start_paused = true)]
async fn a_grant_for_a_drifted_tool_never_starts() {
    let (world, waiting) = waiting().await;
    world.servers.tool_access("files", McpTool { description: "sends it away".into(), ..tool("delete") });

    let again = world.resume(&waiting.run_id, decisions([("call_1_1", yes_always())])).await.unwrap();
    let after_the_drift = stood(&world.runner).await;
    let denied = world.resume(&waiting.run_id, decisions([("call_1_1", no("not that"))])).await.unwrap();
    world.servers.tool_access("files", tool("delete"));
    let later = world.run().await;

    assert_eq!((again.status, after_the_drift), (Status::Pending, vec![]));
    assert_eq!((denied.status, stood(&world.runner).await), (Status::Completed, vec![]));
    assert_eq!((later.status, world.servers.calls()), (Status::Pending, vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_grant_starts_only_when_its_call_is_resumed() {
    let (world, waiting) = waiting().await;

    // The process stops right after the decision.
    world.runner.record(&waiting.run_id, decisions([("call_1_1", yes_always())])).await.unwrap();
    let decided = stood(&world.runner).await;
    let other = world.another_process().await;
    let done = other.recover().await.unwrap().remove(0).until_idle().await.unwrap();

    assert_eq!((decided, done.status), (vec![], Status::Completed));
    assert_eq!(stood(&world.runner).await, ["call_1_1"]);
}

#[tokio::test(start_paused = true)]
async fn a_grant_for_a_cancelled_denied_or_removed_call_never_starts() {
    let (cancelled, waiting_there) = waiting().await;
    cancelled.runner.record(&waiting_there.run_id, decisions([("call_1_1", yes_always())])).await.unwrap();
    cancelled.runner.cancel(&waiting_there.run_id, None, None).await.unwrap();
    assert!(cancelled.another_process().await.recover().await.unwrap().is_empty());

    let (denied, waiting_there) = waiting().await;
    let stricter = denied.another_process_where(|agent| agent.policy = denying_everything().into()).await;
    stricter.resume(&waiting_there.run_id, decisions([("call_1_1", yes_always())])).await.unwrap();

    let (gone, waiting_there) = waiting().await;
    gone.servers.withdraw("files", "delete");
    gone.resume(&waiting_there.run_id, decisions([("call_1_1", yes_always())])).await.unwrap();

    for world in [cancelled, denied, gone] {
        assert_eq!((stood(&world.runner).await, world.servers.calls()), (vec![], vec![]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_grant_for_an_external_call_starts_at_the_hand_over() {
    let refund = json!({"name": "ext_refund", "arguments": {"path": "a"}});
    let ask = json!({"name": "ask_human", "arguments": {"question": "Which?"}});
    let both: Value = json!([{"calls": [refund, ask]}, say("Done.")]);
    let world = given_an_agent()
        .with_an_external_tool("refund")
        .whose_policy_says(Verdict::Ask, "*")
        .that(|agent| agent.rules.ask_human = Some(AskHuman::default()))
        .whose_model_says(both)
        .ready()
        .await;
    let decided = || decisions([("call_1_1", yes_always()), ("call_1_2", yes_always())]);
    let refused = world.run().await;
    let stricter = world.another_process_where(|agent| agent.policy = denying_everything().into()).await;
    stricter.resume(&refused.run_id, decided()).await.unwrap();
    assert_eq!(stood(&world.runner).await, [""; 0]);

    let handed = world.run().await;
    let other = world.another_process().await;
    other.record(&handed.run_id, decided()).await.unwrap();
    let before = stood(&world.runner).await;
    let rests = other.recover().await.unwrap().remove(0).until_idle().await.unwrap();

    let pending: Vec<&str> = rests.pending.iter().map(|item| item.kind()).collect();
    assert_eq!((before, pending), (vec![], vec!["external_result", "question"]));
    let mut stand = stood(&world.runner).await;
    stand.sort();
    assert_eq!(stand, ["call_1_1", "call_1_2"]);
    let result = results([("call_1_1", json!("paid"))]).partial();
    assert_eq!(other.resume(&handed.run_id, result).await.unwrap().status, Status::Pending);
    assert_eq!(stood(&world.runner).await.len(), 2, "once is enough");
}
