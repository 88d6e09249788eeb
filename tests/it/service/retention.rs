//! Retention: ended runs are deleted once their conversation has had no activity for long enough.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::json;
use toolgate::core::id::{RunId, SessionId};
use toolgate::core::run::{Channel, Status};
use toolgate::core::tool::ExternalTool;
use toolgate::ports::Clock as _;
use toolgate::runner::Request;
use toolgate::service::{Operator, RetentionRule};

use crate::runner::world::{World, given_an_agent, say};

fn keep(days: i64) -> RetentionRule {
    RetentionRule { tenants: Vec::new(), statuses: Vec::new(), keep: SignedDuration::from_hours(24 * days) }
}

async fn pass_days(days: u64) {
    tokio::time::advance(Duration::from_secs(24 * 3600 * days)).await;
}

async fn say_to(world: &World, session: &str) -> RunId {
    let request = Request { session: Some(SessionId::from(session)), ..Request::new("clerk", "Hello") };
    world.runner.execute(request).await.unwrap().run_id
}

async fn delete_expired(world: &World, rules: &[RetentionRule]) -> usize {
    let operator = Operator::new(world.runner.clone(), Channel::CommandLine);
    operator.delete_expired(rules, world.clock.now()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_runs_of_a_session_are_deleted_together_after_its_last_activity() {
    let world = given_an_agent().whose_model_says((0..4).map(|_| say("Fine.")).collect()).ready().await;
    let first = say_to(&world, "chat").await;
    let alone = world.run().await.run_id;
    pass_days(8).await;
    let second = say_to(&world, "chat").await;
    let is_deleted = async |run: &RunId| world.runner.row(run).await.unwrap().unwrap().purged_at.is_some();

    assert_eq!(delete_expired(&world, &[keep(7)]).await, 1);
    assert!(is_deleted(&alone).await && !is_deleted(&first).await, "the conversation goes on");
    assert_eq!(delete_expired(&world, &[keep(7)]).await, 0);

    pass_days(8).await;
    assert_eq!(delete_expired(&world, &[]).await, 0);
    assert_eq!(delete_expired(&world, &[keep(7)]).await, 2);
    assert!(is_deleted(&first).await && is_deleted(&second).await);
}

#[tokio::test(start_paused = true)]
async fn the_first_rule_that_concerns_a_run_counts() {
    let world = given_an_agent().whose_model_says((0..2).map(|_| say("Fine.")).collect()).ready().await;
    world.run().await;
    pass_days(10).await;
    let failed = RetentionRule { statuses: vec![Status::Failed], ..keep(1) };
    let acme = RetentionRule { tenants: vec!["acme".into()], ..keep(1) };
    for kept in [vec![failed, acme.clone()], vec![keep(11), keep(1)]] {
        assert_eq!(delete_expired(&world, &kept).await, 0, "{kept:?}");
    }
    assert_eq!(delete_expired(&world, &[acme, keep(10)]).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_pending_keeps_its_session() {
    let turns = json!([say("Fine."), {"calls": [{"name": "ext_order"}]}]);
    let world = given_an_agent().whose_model_says(turns).ready().await;
    say_to(&world, "chat").await;
    let order: ExternalTool = serde_json::from_value(json!({"name": "order", "input_schema": {}})).unwrap();
    let request = Request { session: Some("chat".into()), ..Request::new("clerk", "Order") }.external_tool(order);
    assert_eq!(world.runner.execute(request).await.unwrap().status, Status::Pending);
    pass_days(400).await;
    assert_eq!(delete_expired(&world, &[keep(1)]).await, 0);
}
