//! Expiry sweep: overdue runs continue without any request.

use std::time::Duration;

use serde_json::json;
use toolgate::core::policy::Policy;
use toolgate::core::run::{Channel, Limits, PendingCounts, Status};
use toolgate::ports::{RunFilter, RunRow};
use toolgate::runner::ExpiredItems;

use super::world::{Given, World, answer_to, decisions, given_an_agent, say, yes};

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

    let since = report.pending[0].since().unwrap();
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

async fn row_of(world: &World) -> RunRow {
    world.runner.list(&RunFilter::default()).await.unwrap().remove(0)
}
