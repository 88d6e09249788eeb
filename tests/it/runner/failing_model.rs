//! A failing model: retried if that may help, reported unchanged otherwise.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use toolgate::core::chat::Reply;
use toolgate::core::error::ErrorCode;
use toolgate::core::run::Status;
use toolgate::ports::{Conversation, DeltaSink, Model, ModelFailure, ModelIdentity, ModelRequest};

use super::world::{Given, given_an_agent, say};

fn failing(failure: Value) -> Given {
    given_an_agent().whose_model_says(json!([{"fail": failure, "say": "Good day."}]))
}

#[tokio::test(start_paused = true)]
async fn a_passing_failure_is_retried_after_the_time_the_provider_asks_for() {
    let overloaded = json!({"code": "provider_rate_limit", "retry_after_ms": 7000, "times": 2});
    let world = failing(overloaded).ready().await;
    let began = tokio::time::Instant::now();

    let report = world.run().await;

    assert_eq!((report.status, began.elapsed().as_secs()), (Status::Completed, 14));
    assert_eq!(world.clock.slept(), [Duration::from_secs(7); 2]);
    assert_eq!(
        world.journal(&report.run_id).await[2..],
        [
            "llm.call.started",
            "llm.call.failed",
            "llm.call.started",
            "llm.call.failed",
            "llm.call.started",
            "llm.call.completed",
            "execution.ended",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn without_a_word_from_the_provider_the_waits_are_the_second_half_of_a_doubling_bound() {
    let world = failing(json!({"code": "provider_unavailable", "times": 2})).ready().await;

    assert_eq!(world.run().await.status, Status::Completed);

    let [first, second] = world.clock.slept()[..] else { panic!("{:?}", world.clock.slept()) };
    let is_in_second_half = |wait: Duration, bound: u64| (bound / 2..=bound).contains(&(wait.as_millis() as u64));
    assert!(is_in_second_half(first, 500) && is_in_second_half(second, 1_000), "{first:?}, {second:?}");
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_lasts_ends_the_run_after_its_attempts() {
    let world = failing(json!({"code": "provider_unavailable"})).ready().await;

    let report = world.run().await;

    assert_eq!(report.error.unwrap().code, ErrorCode::ProviderUnavailable);
    let journal = world.journal(&report.run_id).await;
    assert_eq!(journal.iter().filter(|name| **name == "llm.call.started").count(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_permanent_failure_ends_the_run_at_once() {
    let world = failing(json!({"code": "provider_auth", "message": "the key is wrong"})).ready().await;

    let report = world.run().await;

    let error = report.error.unwrap();
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::ProviderAuth, "the key is wrong"));
    assert!(world.clock.slept().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_cancel_does_not_wait_for_the_next_attempt() {
    let world = failing(json!({"code": "provider_rate_limit", "retry_after_ms": 60_000})).ready().await;
    let execution = world.start().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let began = tokio::time::Instant::now();

    world.runner.cancel(&execution.run, None, None).await.unwrap();

    assert_eq!(execution.until_idle().await.unwrap().status, Status::Cancelled);
    assert!(began.elapsed() < Duration::from_millis(10), "{:?}", began.elapsed());
}

/// A model with a broken adapter.
struct Panicking(ModelIdentity);

impl Model for Panicking {
    fn identity(&self) -> &ModelIdentity {
        &self.0
    }

    fn converse(&self) -> Box<dyn Conversation> {
        Box::new(Mid)
    }
}

struct Mid;

#[async_trait]
impl Conversation for Mid {
    async fn reply(&mut self, _request: &ModelRequest<'_>, _deltas: DeltaSink<'_>) -> Result<Reply, ModelFailure> {
        panic!("the adapter panics on demand")
    }
}

#[tokio::test(start_paused = true)]
async fn an_adapter_that_panics_fails_the_run_and_nothing_else() {
    let identity = ModelIdentity {
        system: "broken".into(),
        provider: "broken".into(),
        model: "broken".into(),
        settings: Value::Null,
    };
    let world = given_an_agent().with_the_model(Panicking(identity)).ready().await;

    let report = world.run().await;

    assert_eq!(report.error.unwrap().code, ErrorCode::Internal);
    world.runner.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_script_that_has_run_out_is_a_failure_and_no_empty_answer() {
    let world = given_an_agent().whose_model_says(json!([])).ready().await;
    assert_eq!(world.run().await.error.unwrap().code, ErrorCode::ProviderRejected);
    let world = given_an_agent().whose_model_says(json!([say("Done.")])).ready().await;
    assert_eq!(world.run().await.status, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_retry_delay_over_two_minutes_ends_the_run_at_once() {
    let world = failing(json!({"code": "provider_rate_limit", "retry_after_ms": 3_600_000, "times": 1})).ready().await;

    let report = world.run().await;

    assert_eq!(report.error.unwrap().code, ErrorCode::ProviderRateLimit);
    assert_eq!(world.clock.slept(), [Duration::ZERO; 0]);
}
