//! Cancellation of a run in any state and from any process.

use std::time::Duration;

use serde_json::json;
use toolgate::core::chat::Message;
use toolgate::core::run::Status;

use super::world::{Given, Kept, answer_to, given_an_agent, names, on_every_store, said, say};

/// How often a driver checks whether another process ended its run.
const POLL: Duration = Duration::from_millis(50);

fn busy() -> Given {
    given_an_agent()
        .with_tools("files", &["read", "hang"])
        .where_servers(|servers| servers.hang_in("hang"))
        .that_polls_every(POLL)
        .whose_model_says(json!([{"calls": [{"name": "mcp_files_read"}, {"name": "mcp_files_hang"}]}, say("Done.")]))
}

on_every_store! {
    async fn a_cancel_reaches_a_call_under_way_and_gives_it_up(kept: Kept) {
        let world = busy().kept(kept).await;
        let execution = world.start().await;
        tokio::time::sleep(POLL).await;

        let cancelled = world.runner.cancel(&execution.run, Some("enough".into()), None).await.unwrap();
        let rested = execution.until_idle().await.unwrap();

        assert_eq!((cancelled.status, rested.status), (Status::Cancelled, Status::Cancelled));
        assert_eq!(world.servers.given_up(), ["call_1_2"]);
        assert_eq!(answer_to(&rested, "call_1_1"), "read done");
        let given_up = answer_to(&rested, "call_1_2");
        assert!(given_up.starts_with("Outcome unknown: the call was sent"), "{given_up}");
        assert_eq!(world.journal(&rested.run_id).await.last(), Some(&"execution.ended"));
    }

    async fn a_cancel_from_another_process_reaches_a_call_within_the_poll_interval(kept: Kept) {
        let world = busy().kept(kept).await;
        let execution = world.start().await;
        tokio::time::sleep(POLL).await;
        let other = world.another_process().await;

        other.cancel(&execution.run, None, None).await.unwrap();
        let rested = tokio::time::timeout(POLL * 10, execution.until_idle()).await.expect("it is polled for").unwrap();

        assert_eq!((rested.status, world.servers.given_up()), (Status::Cancelled, vec!["call_1_2".to_owned()]));
    }
}

#[tokio::test(start_paused = true)]
async fn another_processs_cancel_is_heard_after_one_interval_in_paused_time() {
    let world = busy().ready().await;
    let execution = world.start().await;
    tokio::time::sleep(POLL / 2).await;
    let began = tokio::time::Instant::now();

    world.another_process().await.cancel(&execution.run, None, None).await.unwrap();
    execution.until_idle().await.unwrap();

    assert!(began.elapsed() <= POLL, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_cancel_reaches_a_model_that_does_not_answer() {
    let world = given_an_agent().whose_model_says(json!([{"hang": true}])).ready().await;
    let execution = world.start().await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    let began = tokio::time::Instant::now();

    world.runner.cancel(&execution.run, None, None).await.unwrap();

    assert_eq!(execution.until_idle().await.unwrap().status, Status::Cancelled);
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_is_cancelled_and_its_watchers_see_the_end() {
    let world = given_an_agent()
        .with_an_external_tool("order")
        .whose_model_says(json!([{"calls": [{"name": "ext_order"}]}]))
        .ready()
        .await;
    let run = world.run().await.run_id;
    let mut watch = world.runner.watch(&run);

    let report = world.runner.cancel(&run, Some("enough".into()), None).await.unwrap();
    let again = world.runner.cancel(&run, Some("really".into()), None).await.unwrap();

    assert_eq!((report.status, again.version), (Status::Cancelled, report.version));
    assert_eq!(report.error.unwrap().message, "the run was cancelled: enough");
    let seen = super::watching::everything(&mut watch).await;
    assert_eq!(seen, ["execution.ended"]);
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_comes_after_the_cancel_is_dropped() {
    let world = given_an_agent()
        .with_tools("files", &["read"])
        .where_servers(|servers| servers.take_ms("read", 100))
        .whose_model_says(json!([{"calls": [{"name": "mcp_files_read"}]}, say("Done.")]))
        .ready()
        .await;
    let execution = world.start().await;
    // Written at a time when the driver does not notice it before the reply arrives.
    tokio::time::sleep(Duration::from_millis(99)).await;
    world.another_process().await.cancel(&execution.run, None, None).await.unwrap();

    let rested = execution.until_idle().await.unwrap();

    assert_eq!(rested.status, Status::Cancelled);
    let journal = world.runner.journal(&rested.run_id).await.unwrap();
    assert!(!names(&journal).contains(&"tool.completed"), "{:?}", names(&journal));
}

#[tokio::test(start_paused = true)]
async fn a_message_is_heard_at_the_next_turn() {
    let world = given_an_agent()
        .with_tools("files", &["read"])
        .where_servers(|servers| servers.take_ms("read", 100))
        .whose_model_says(json!([
            {"calls": [{"name": "mcp_files_read"}]}, {"expect": {"contains": "Quickly"}, "say": "Done."},
        ]))
        .ready()
        .await;
    let execution = world.start().await;
    tokio::time::sleep(Duration::from_millis(50)).await;

    world.runner.message(&execution.run, Message::user("Quickly, please.")).await.unwrap();
    let report = execution.until_idle().await.unwrap();

    assert_eq!(said(&report)[2..4], ["user: call_1_1 -> read done", "user: Quickly, please."]);
    assert_eq!(report.status, Status::Completed);
}
