//! Calls that require approval.

use serde_json::{Value, json};
use toolgate::core::error::ErrorCode;
use toolgate::core::policy::{Policy, Verdict};
use toolgate::core::run::{Limits, OnDeny, PendingApproval, PendingItem, ResumeError, Status};
use toolgate::core::tool::McpTool;
use toolgate::runner::{Request, RunnerError};

use super::world::{
    Given, Kept, World, answer_to, decisions, given_an_agent, no, on_every_store, said, say, yes, yes_but_with,
    yes_for_the_session,
};
use crate::fakes::tool;

fn deletion() -> Value {
    json!({"calls": [{"name": "mcp_files_delete", "arguments": {"path": "a"}}]})
}

fn guarded(turns: Value) -> Given {
    let path = json!({"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}}});
    given_an_agent()
        .with_tools("files", &["delete"])
        .where_servers(|servers| servers.tool_access("files", McpTool { input_schema: path, ..tool("delete") }))
        .that_checks_arguments()
        .whose_policy_says(Verdict::Ask, "*_delete")
        .whose_model_says(turns)
}

on_every_store! {
    async fn a_guarded_call_waits_for_approval_and_then_runs(kept: Kept) {
        let world = guarded(json!([deletion(), say("Done.")])).kept(kept).await;

        let waiting = world.run().await;
        let before = world.servers.calls();
        let report = world.resume(&waiting.run_id, decisions([("call_1_1", yes())])).await.unwrap();

        let [PendingItem::Approval(PendingApproval { rule, reason, .. })] = &waiting.pending[..] else { panic!("{:?}", waiting.pending) };
        assert_eq!((rule.as_deref(), reason.as_str()), (Some("*_delete"), "because it matters"));
        assert_eq!((before, world.servers.calls()), (vec![], vec!["call_1_1".to_owned()]));
        assert_eq!((report.status, answer_to(&report, "call_1_1")), (Status::Completed, "delete done".into()));
    }

    async fn a_denial_reaches_the_model_and_the_run_continues(kept: Kept) {
        let world = guarded(json!([deletion(), say("Done.")])).kept(kept).await;
        let waiting = world.run().await;

        let report = world.resume(&waiting.run_id, decisions([("call_1_1", no("too dear"))])).await.unwrap();

        assert_eq!(answer_to(&report, "call_1_1"), "Denied by ann: too dear");
        assert_eq!((report.status, world.servers.calls()), (Status::Completed, vec![]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_denial_ends_the_run_if_the_agent_is_configured_so() {
    let world =
        guarded(json!([deletion(), say("Done.")])).that(|agent| agent.rules.on_deny = OnDeny::Fail).ready().await;
    let waiting = world.run().await;

    let report = world.resume(&waiting.run_id, decisions([("call_1_1", no("too dear"))])).await.unwrap();

    let error = report.error.unwrap();
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::ToolDenied, "Denied by ann: too dear"));
}

#[tokio::test(start_paused = true)]
async fn edited_arguments_are_validated_used_and_reported() {
    let world = guarded(json!([deletion(), say("Done.")])).ready().await;
    let run = world.run().await.run_id;

    let wrong = world.resume(&run, decisions([("call_1_1", yes_but_with(json!({"path": 7})))])).await.unwrap_err();
    let report = world.resume(&run, decisions([("call_1_1", yes_but_with(json!({"path": "b"})))])).await.unwrap();

    let RunnerError::Refused(refusals) = wrong else { panic!("{wrong}") };
    assert!(matches!(&refusals[..], [ResumeError::Invalid { .. }]), "{refusals:?}");
    assert_eq!(world.servers.arguments_of("call_1_1"), json!({"path": "b"}));
    let told = "Note: a person changed the arguments of this call to {\"path\":\"b\"} | delete done";
    assert_eq!(answer_to(&report, "call_1_1"), told);
}

/// A turn with a call that takes a second, and two that require approval.
fn slow_and_guarded() -> Given {
    let calls = ["mcp_files_read", "mcp_files_delete", "mcp_files_move_delete"].map(|name| json!({"name": name}));
    given_an_agent()
        .with_tools("files", &["read", "delete", "move_delete"])
        .where_servers(|servers| servers.take_ms("read", 1000))
        .whose_policy_says(Verdict::Ask, "*_delete")
        .whose_model_says(json!([{ "calls": calls }, say("Done.")]))
}

async fn after_ms(milliseconds: u64) {
    tokio::time::sleep(std::time::Duration::from_millis(milliseconds)).await;
}

#[tokio::test(start_paused = true)]
async fn an_approved_call_starts_while_another_is_in_progress() {
    let world = slow_and_guarded().ready().await;
    let execution = world.start().await;
    after_ms(100).await;

    let approving = world.resume(&execution.run, decisions([("call_1_2", yes())]).partial());
    let denying = async {
        after_ms(100).await;
        let early = (world.servers.calls(), world.servers.most_in_flight());
        let report = world.resume(&execution.run, decisions([("call_1_3", no("not needed"))])).await.unwrap();
        (early, report)
    };
    let (_, (early, report)) = tokio::join!(approving, denying);

    assert_eq!(early, (vec!["call_1_1".to_owned(), "call_1_2".to_owned()], 2));
    assert_eq!(
        (report.status, answer_to(&report, "call_1_3")),
        (Status::Completed, "Denied by ann: not needed".into())
    );
    assert_eq!(
        (answer_to(&report, "call_1_1"), answer_to(&report, "call_1_2")),
        ("read done".into(), "delete done".into())
    );
    assert_eq!(world.servers.calls().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_approved_call_that_changes_a_file_waits_for_the_calls_in_progress() {
    let delete = json!({"name": "mcp_files_delete", "arguments": {"path": "a", "content": ""}});
    let read = || json!({"name": "mcp_files_read"});
    let world = guarded(json!([{"calls": [read(), delete, read()]}, say("Done.")]))
        .with_tools("files", &["read"])
        .where_servers(|servers| servers.take_ms("read", 1000))
        .ready()
        .await;
    let execution = world.start().await;
    after_ms(100).await;
    assert_eq!(world.servers.calls(), ["call_1_1", "call_1_3"], "a call that no person has approved delays no other");

    let report = world.resume(&execution.run, decisions([("call_1_2", yes())])).await.unwrap();

    assert_eq!((report.status, world.servers.most_in_flight()), (Status::Completed, 2));
    assert_eq!(answer_to(&report, "call_1_2"), "delete done");
}

#[tokio::test(start_paused = true)]
async fn a_decision_during_the_confirmation_of_a_tool_list_delays_no_approved_call() {
    let world = slow_and_guarded().where_servers(|servers| servers.confirm_in_ms(50)).ready().await;
    let execution = world.start().await;
    after_ms(200).await;

    let first = world.resume(&execution.run, decisions([("call_1_2", yes())]).partial());
    let second = async {
        after_ms(20).await;
        world.resume(&execution.run, decisions([("call_1_3", yes())])).await.unwrap()
    };
    let in_flight = async {
        after_ms(300).await;
        world.servers.calls().len()
    };
    let (_, report, calls) = tokio::join!(first, second, in_flight);

    assert_eq!((calls, report.status), (3, Status::Completed), "the slow call takes a second");
}

#[tokio::test(start_paused = true)]
async fn a_call_approved_beside_another_is_compared_and_counted_like_any_other() {
    let limits = Limits { max_mcp_calls: Some(1), ..Limits::default() };
    for (limits, changes, expected) in [(Limits::default(), true, Status::Pending), (limits, false, Status::Completed)]
    {
        let world = slow_and_guarded().within(limits).ready().await;
        let execution = world.start().await;
        after_ms(100).await;
        if changes {
            world.servers.tool_access("files", McpTool { description: "does something else".into(), ..tool("delete") });
        }

        let both = decisions([("call_1_2", yes()), ("call_1_3", no("not needed"))]);
        let report = world.resume(&execution.run, both).await.unwrap();

        assert_eq!((report.status, world.servers.calls()), (expected, vec!["call_1_1".to_owned()]));
        if changes {
            let [PendingItem::Approval(again)] = &report.pending[..] else { panic!("{:?}", report.pending) };
            assert_eq!((again.call_id.as_str(), again.differences.len()), ("call_1_2", 1));
        } else {
            let told = answer_to(&report, "call_1_2");
            assert!(told.contains("max_mcp_calls"), "{told}");
        }
    }
}

async fn approved_for_the_session() -> World {
    let turns = json!([deletion(), say("Done."), deletion(), say("Done.")]);
    let world = guarded(turns).ready().await;
    let request = Request { session: Some("talk".into()), ..world.request() };
    let waiting = world.runner.execute(request).await.unwrap();
    world.resume(&waiting.run_id, decisions([("call_1_1", yes_for_the_session())])).await.unwrap();
    world
}

async fn run_in(world: &World, session: &str) -> Status {
    let request = Request { session: Some(session.into()), ..world.request() };
    world.runner.execute(request).await.unwrap().status
}

#[tokio::test(start_paused = true)]
async fn an_approval_for_the_session_covers_only_that_session() {
    let world = approved_for_the_session().await;
    assert_eq!(run_in(&world, "talk").await, Status::Completed);
    assert_eq!(run_in(&world, "another talk").await, Status::Pending);
}

#[tokio::test(start_paused = true)]
async fn a_changed_tool_requires_approval_again() {
    let world = approved_for_the_session().await;
    let changed = McpTool { description: "does something else".into(), ..tool("delete") };
    world.servers.tool_access("files", changed);
    assert_eq!(run_in(&world, "talk").await, Status::Pending);
}

#[tokio::test(start_paused = true)]
async fn one_lookup_per_turn_covers_every_guarded_tool() {
    let world = guarded(json!([{"calls": [{"name": "mcp_files_read"}]}, say("Done.")]))
        .with_tools("files", &["read"])
        .whose_policy_says(Verdict::Ask, "*_shred")
        .with_tools("files", &["shred"])
        .ready()
        .await;

    world.run().await;

    let batch = vec!["mcp_files_delete".to_owned(), "mcp_files_shred".to_owned()];
    assert_eq!(world.approvals.batches(), [batch.clone(), batch]);
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_cache_grants_nothing() {
    let world = approved_for_the_session().await;
    world.approvals.break_down();
    assert_eq!(run_in(&world, "talk").await, Status::Pending);
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_fails_to_store_does_not_fail_the_run() {
    let world = guarded(json!([deletion(), say("Done.")])).ready().await;
    let run = world.run().await.run_id;
    world.approvals.break_down();

    let report = world.resume(&run, decisions([("call_1_1", yes_for_the_session())])).await.unwrap();

    assert_eq!((report.status, world.servers.calls()), (Status::Completed, vec!["call_1_1".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_call_denied_twice_is_not_asked_about_a_third_time() {
    let world = guarded(json!([deletion(), deletion(), deletion(), say("Done.")])).ready().await;
    let run = world.run().await.run_id;
    let again = world.resume(&run, decisions([("call_1_1", no("no"))])).await.unwrap();
    assert_eq!(again.pending[0].call_id().unwrap().as_str(), "call_2_1");

    let report = world.resume(&run, decisions([("call_2_1", no("no"))])).await.unwrap();

    assert_eq!((report.status, world.servers.calls()), (Status::Completed, vec![]));
    assert!(answer_to(&report, "call_3_1").starts_with("Denied: this very call was denied before"));
}

#[tokio::test(start_paused = true)]
async fn a_call_denied_by_the_policy_is_not_asked_about() {
    let world = given_an_agent()
        .with_tools("files", &["delete"])
        .whose_policy_says(Verdict::Ask, "*_delete")
        .whose_policy_says(Verdict::Deny, "mcp_*")
        .whose_model_says(json!([deletion(), say("Done.")]))
        .ready()
        .await;

    let report = world.run().await;

    assert_eq!((report.status, world.servers.calls()), (Status::Completed, vec![]));
    assert_eq!(answer_to(&report, "call_1_1"), "Denied by policy `allow`: because it matters");
}

#[tokio::test(start_paused = true)]
async fn a_tool_removed_during_approval_is_not_called() {
    let world = guarded(json!([deletion(), say("Done.")])).ready().await;
    let run = world.run().await.run_id;
    world.servers.withdraw("files", "delete");

    let report = world.resume(&run, decisions([("call_1_1", yes())])).await.unwrap();

    assert_eq!(world.servers.calls(), [""; 0]);
    assert!(answer_to(&report, "call_1_1").contains("not available"), "{:#?}", said(&report));
}

#[tokio::test(start_paused = true)]
async fn a_tool_denied_by_policy_during_approval_is_not_called() {
    let world = guarded(json!([deletion(), say("Done.")])).ready().await;
    let run = world.run().await.run_id;
    let denies_all = Policy { fallback: Verdict::Deny, ..Policy::ask_always() };
    let stricter = world.another_process_where(|agent| agent.policy = denies_all.into()).await;

    let report = stricter.resume(&run, decisions([("call_1_1", yes())])).await.unwrap();

    assert_eq!(world.servers.calls(), [""; 0]);
    assert!(answer_to(&report, "call_1_1").contains("policy"), "{:#?}", said(&report));
}

#[tokio::test(start_paused = true)]
async fn a_decision_can_be_repeated_but_not_changed() {
    let world = guarded(json!([deletion(), say("Done.")])).ready().await;
    let run = world.run().await.run_id;
    let yes = decisions([("call_1_1", yes())]);
    let decided = world.resume(&run, yes.clone()).await.unwrap();

    let repeated = world.resume(&run, yes).await.unwrap();
    let changed = decisions([("call_1_1", yes_but_with(json!({"path": "b"})))]);
    let refused = world.resume(&run, changed).await.unwrap_err();

    assert_eq!(repeated.version, decided.version);
    let expected = ResumeError::AlreadySettled { call_id: "call_1_1".into() };
    assert!(matches!(&refused, RunnerError::Refused(refusals) if *refusals == [expected]), "{refused}");
}
