//! Expiry sweep: overdue runs continue without any request.

use std::time::Duration;

use serde_json::json;
use toolgate::core::id::RunId;
use toolgate::core::policy::{OnTimeout, Policy};
use toolgate::core::run::{Channel, DecisionKind, Event, Limits, PendingCounts, Status};
use toolgate::core::tool::McpTool;
use toolgate::ports::{RunFilter, RunRow};
use toolgate::runner::{ExpiredItems, Report, Resume};

use super::world::{Given, World, answer_to, decisions, given_an_agent, no, say, yes};
use crate::fakes::tool;

fn within(seconds: u64) -> Given {
    given_an_agent()
        .with_tools("files", &["delete"])
        .that(move |agent| agent.policy = Policy { answer_timeout_s: Some(seconds), ..Policy::ask_always() }.into())
        .whose_model_says(json!([{"calls": [{"name": "mcp_files_delete"}]}, say("Done.")]))
}

#[tokio::test(start_paused = true)]
async fn only_overdue_items_expire_and_only_once() {
    let world = within(60).ready().await;
    let early = world.run().await.run_id;
    assert!(world.runner.expire_due().await.unwrap().is_empty(), "there is time left");
    tokio::time::advance(Duration::from_secs(61)).await;

    let mut swept = world.runner.expire_due().await.unwrap();

    let [overdue] = &mut swept[..] else { panic!("one run was overdue: {swept:?}") };
    assert_eq!((&overdue.run, &overdue.late), (&early, &ExpiredItems::Calls(vec!["call_1_1".into()])));
    let report = swept.remove(0).taken.unwrap().until_idle().await.unwrap();
    assert_eq!((report.status, world.servers.calls()), (Status::Completed, vec![]));
    assert!(answer_to(&report, "call_1_1").contains("this call was neither approved nor denied in time"));
    assert!(world.runner.expire_due().await.unwrap().is_empty(), "it was swept already");
}

#[tokio::test(start_paused = true)]
async fn a_run_past_its_own_deadline_expires_in_a_sweep() {
    let limits = Limits { deadline_s: Some(100), ..Limits::default() };
    let world = within(1000).within(limits).ready().await;
    let run = world.run().await.run_id;
    tokio::time::advance(Duration::from_secs(101)).await;

    let swept = world.runner.expire_due().await.unwrap();

    assert_eq!(swept.iter().map(|overdue| &overdue.late).collect::<Vec<_>>(), [&ExpiredItems::Run]);
    assert_eq!(world.runner.report(&run).await.unwrap().status, Status::Expired);
}

#[tokio::test(start_paused = true)]
async fn the_index_has_the_pending_counts_and_the_deadline() {
    let world = within(60).within(Limits { deadline_s: Some(100), ..Limits::default() }).ready().await;
    let report = world.run().await;
    let row = row_of(&world).await;

    let since = report.pending[0].requested_at().unwrap();
    let due = since.checked_add(Duration::from_secs(60)).unwrap();
    assert_eq!(
        row.pending_counts,
        PendingCounts { approvals: 1, asked_at: Some(since), due_at: Some(due), ..PendingCounts::default() }
    );

    let extended = due.checked_add(Duration::from_secs(3600)).unwrap();
    world.runner.extend(&report.run_id, "call_1_1".into(), extended, "Ada", Channel::Terminal).await.unwrap();
    let own = row.created_at.checked_add(Duration::from_secs(100)).unwrap();
    assert_eq!(row_of(&world).await.pending_counts.due_at, Some(own), "the run's own time is the first to run out");

    world.resume(&report.run_id, decisions([("call_1_1", yes())])).await.unwrap();
    assert_eq!(row_of(&world).await.pending_counts, PendingCounts::default());
}

fn then(on_timeout: OnTimeout) -> Given {
    within(60).that(move |agent| std::sync::Arc::make_mut(&mut agent.policy).on_timeout = on_timeout)
}

/// The run after the time for its approval has passed, with the decisions in its journal.
async fn after_the_time(world: &World, run: &RunId) -> (Report, Vec<(DecisionKind, String, Channel)>) {
    tokio::time::advance(Duration::from_secs(61)).await;
    let swept = world.runner.expire_due().await.unwrap().remove(0);
    assert_eq!(swept.late, ExpiredItems::Calls(vec!["call_1_1".into()]));
    let report = swept.taken.unwrap().until_idle().await.unwrap();
    let decided = world.runner.journal(run).await.unwrap().into_iter().filter_map(|entry| match entry.event {
        Event::ApprovalDecided { decision, .. } => Some((decision.answer, decision.by, decision.via)),
        _ => None,
    });
    (report, decided.collect())
}

#[tokio::test(start_paused = true)]
async fn row_3_43_a_policy_approves_or_denies_after_its_time() {
    let world = then(OnTimeout::Approve).ready().await;
    let run = world.run().await.run_id;
    let (report, decided) = after_the_time(&world, &run).await;
    assert_eq!(decided, [(DecisionKind::Approve, "timeout".into(), Channel::Timeout)]);
    assert_eq!((report.status, world.servers.calls().len()), (Status::Completed, 1), "{report:?}");

    let world = then(OnTimeout::Deny).ready().await;
    let run = world.run().await.run_id;
    let (report, decided) = after_the_time(&world, &run).await;
    assert_eq!(decided, [(DecisionKind::Deny, "timeout".into(), Channel::Timeout)]);
    assert_eq!((report.status, world.servers.calls().len()), (Status::Completed, 0));
    assert_eq!(answer_to(&report, "call_1_1"), "Denied by timeout: there was no answer in time");
}

#[tokio::test(start_paused = true)]
async fn row_3_43_an_answer_after_the_time_changes_nothing() {
    let world = then(OnTimeout::Approve).ready().await;
    let run = world.run().await.run_id;
    tokio::time::advance(Duration::from_secs(61)).await;
    let late = world.resume(&run, decisions([("call_1_1", no("never"))])).await.unwrap_err();
    assert!(late.to_string().contains("settled"), "{late}");
    let report = world.resume(&run, Resume::default()).await.unwrap();
    assert_eq!((report.status, world.servers.calls().len()), (Status::Completed, 1));
}

#[tokio::test(start_paused = true)]
async fn row_3_43_time_does_not_approve_a_call_that_changed() {
    let world = then(OnTimeout::Approve).ready().await;
    let run = world.run().await.run_id;
    world.servers.tool_access("files", McpTool { description: "deletes more".into(), ..tool("delete") });
    let asked = world.resume(&run, decisions([("call_1_1", yes())])).await.unwrap();
    assert_eq!((asked.status, world.servers.calls().len()), (Status::Pending, 0), "it changed");

    let (report, decided) = after_the_time(&world, &run).await;

    assert_eq!(decided, [(DecisionKind::Approve, "ann".into(), Channel::Library)]);
    assert_eq!((report.status, world.servers.calls().len()), (Status::Completed, 0));
    assert!(answer_to(&report, "call_1_1").contains("neither approved nor denied in time"));
}

async fn row_of(world: &World) -> RunRow {
    world.runner.list(&RunFilter::default()).await.unwrap().remove(0)
}
