//! Endpoints that are slow, redirect, fail, are gone, or resolve to forbidden addresses.

use serde_json::{Value, json};
use toolgate::service::WebhookEgress;

use super::receiver::{Manner, Receiver};
use super::{HERE, Hooked, until};
use crate::runner::world::{World, given_an_agent, say};

async fn a_world() -> World {
    given_an_agent().whose_model_says(json!([say("Done.")])).ready().await
}

fn attempts(delivery: &Value) -> usize {
    delivery["attempts"].as_array().unwrap().len()
}

fn last_error(delivery: &Value) -> &str {
    delivery["attempts"].as_array().unwrap().last().unwrap()["error"].as_str().unwrap()
}

impl Hooked {
    /// Advances the clock until the newest message was attempted so often.
    async fn tried(&self, endpoint: &str, times: usize) -> Value {
        until(async || {
            let delivery = self.deliveries(endpoint).await.into_iter().next()?;
            match attempts(&delivery) >= times {
                true => Some(delivery),
                false => {
                    self.clock.by(60 * 60);
                    None
                }
            }
        })
        .await
    }
}

#[tokio::test]
async fn a_retry_has_the_same_id_and_a_new_signature() {
    let hooked = Hooked::with(a_world().await).await;
    let receiver = Receiver::that_answers([Manner::Status(500), Manner::Status(429), Manner::Status(200)]).await;
    let id = hooked.add(&receiver, &[]).await;
    hooked.served.run(json!({"input": "Hello"})).await;
    let waiting = hooked.delivery(&id, |delivery| attempts(delivery) == 1).await;
    assert_eq!((&waiting["status"], &waiting["attempts"][0]["status"]), (&json!("waiting"), &json!(500)));
    assert!(hooked.endpoint(&id).await.body["failing_since"].is_string());

    let arrived = hooked.tried(&id, 3).await;

    assert_eq!(arrived["status"], "delivered", "{arrived:#}");
    assert_eq!(hooked.endpoint(&id).await.body["failing_since"], Value::Null);
    let received = receiver.received();
    assert!(received.iter().all(|each| each.id == received[0].id && each.text == received[0].text));
    assert!(received[2].timestamp > received[0].timestamp, "{received:?}");
}

#[tokio::test]
async fn a_delivery_fails_after_eight_attempts_and_can_be_redelivered() {
    let hooked = Hooked::with(a_world().await).await;
    let receiver = Receiver::that_answers([Manner::Status(503)]).await;
    let id = hooked.add(&receiver, &[]).await;
    hooked.served.run(json!({"input": "Hello"})).await;
    let given_up = hooked.tried(&id, 8).await;
    assert_eq!((&given_up["status"], &given_up["next_attempt_at"]), (&json!("failed"), &Value::Null));
    assert!(hooked.has_nothing_to_send().await);

    let message = given_up["id"].as_str().unwrap();
    hooked.served.post(&format!("/v1/webhook-endpoints/{id}/deliveries/{message}/redeliver"), json!({})).await;

    let again = hooked.delivery(&id, |delivery| attempts(delivery) == 9).await;
    assert_eq!(again["status"], "waiting", "it has as many attempts as a new one");
}

#[tokio::test]
async fn a_redirect_is_a_failure_and_leads_nowhere() {
    let hooked = Hooked::with(a_world().await).await;
    let elsewhere = Receiver::open().await;
    let receiver = Receiver::that_answers([Manner::RedirectTo(elsewhere.url())]).await;
    let id = hooked.add(&receiver, &[]).await;
    hooked.served.run(json!({"input": "Hello"})).await;
    let tried = hooked.delivery(&id, |delivery| attempts(delivery) == 1).await;
    assert_eq!(last_error(&tried), "it answered 307, and redirects are not followed: use the final address");
    assert_eq!(elsewhere.received().len(), 0);
}

#[tokio::test]
async fn an_endpoint_that_answers_410_receives_nothing_more() {
    let hooked = Hooked::with(a_world().await).await;
    let receiver = Receiver::that_answers([Manner::Status(410)]).await;
    let id = hooked.add(&receiver, &[]).await;
    hooked.served.run(json!({"input": "Hello"})).await;
    let tried = hooked.delivery(&id, |delivery| attempts(delivery) == 1).await;
    assert_eq!(tried["status"], "failed");
    let gone = hooked.endpoint(&id).await;
    assert_eq!(
        (&gone.body["enabled"], gone.body["disabled"]["reason"].as_str().unwrap()),
        (&json!(false), "it answered 410, which means gone for good")
    );
    hooked.served.run(json!({"input": "Hello again"})).await;
    until(async || hooked.has_nothing_to_send().await.then_some(())).await;
    assert_eq!(receiver.received().len(), 1);
}

#[tokio::test]
async fn an_endpoint_that_fails_for_days_is_disabled_with_a_reason() {
    let hooked = Hooked::with(a_world().await).await;
    let receiver = Receiver::that_answers([Manner::Status(500)]).await;
    let id = hooked.add(&receiver, &[]).await;
    hooked.served.run(json!({"input": "Hello"})).await;
    hooked.delivery(&id, |delivery| attempts(delivery) == 1).await;
    hooked.clock.by(6 * 24 * 60 * 60);
    let off =
        until(async || Some(hooked.endpoint(&id).await).filter(|endpoint| endpoint.body["enabled"] == false)).await;
    assert!(off.body["disabled"]["reason"].as_str().unwrap().starts_with("no message was delivered since 2026-01-01T"));
}

#[tokio::test]
async fn an_endpoint_can_request_a_longer_pause() {
    let hooked = Hooked::with(a_world().await).await;
    let receiver = Receiver::that_answers([Manner::RetryAfter(503, "7200")]).await;
    let id = hooked.add(&receiver, &[]).await;
    hooked.served.run(json!({"input": "Hello"})).await;
    let tried = hooked.delivery(&id, |delivery| attempts(delivery) == 1).await;
    let moment = |value: &Value| value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let pause = moment(&tried["next_attempt_at"]).duration_since(moment(&tried["attempts"][0]["at"]));
    assert!((7200..7210).contains(&pause.as_secs()), "{tried:#}");
}

#[tokio::test]
async fn an_endpoint_that_never_answers_delays_no_other() {
    let hooked = Hooked::with(a_world().await).await;
    let (slow, quick) = (Receiver::that_answers([Manner::Never]).await, Receiver::open().await);
    let id = hooked.add(&slow, &[]).await;
    hooked.add(&quick, &[]).await;
    for _ in 0..20 {
        hooked.served.run(json!({"input": "Hello"})).await;
    }
    quick.receives(20).await;
    let tried = hooked.delivery(&id, |delivery| attempts(delivery) == 1).await;
    assert_eq!(last_error(&tried), "there was no response within 0.4 s");
}

#[tokio::test]
async fn a_stalled_attempt_delays_no_later_message() {
    let hooked = Hooked::patient(a_world().await).await;
    let receiver = Receiver::that_answers([Manner::Never, Manner::Status(204)]).await;
    hooked.add(&receiver, &[]).await;
    let first = hooked.served.run(json!({"input": "Hello"})).await;
    receiver.receives(1).await;
    let second = hooked.served.run(json!({"input": "Hello again"})).await;
    let told = receiver.receives(2).await;
    assert_eq!((&told[0].body["data"]["run_id"], &told[1].body["data"]["run_id"]), (&json!(first), &json!(second)));
}

#[tokio::test]
async fn an_endless_response_body_counts_as_a_response() {
    let hooked = Hooked::with(a_world().await).await;
    let receiver = Receiver::that_answers([Manner::Endless]).await;
    let id = hooked.add(&receiver, &[]).await;
    hooked.served.run(json!({"input": "Hello"})).await;
    let arrived = hooked.delivery(&id, |delivery| attempts(delivery) == 1).await;
    assert_eq!(arrived["status"], "delivered", "{arrived:#}");
}

#[tokio::test]
async fn a_name_that_leads_to_this_machine_is_not_dialled() {
    let hooked = Hooked::within(a_world().await, WebhookEgress { http: true, ..WebhookEgress::default() }).await;
    let receiver = Receiver::open().await;
    let url = format!("http://localhost:{}/hooks", receiver.port());
    let created = hooked.served.post("/v1/webhook-endpoints", json!({"url": url})).await;
    assert_eq!(created.status, 201, "a name is resolved only for a connection");
    hooked.served.run(json!({"input": "Hello"})).await;
    let tried = hooked.delivery(created.text("id"), |delivery| attempts(delivery) == 1).await;
    assert_eq!(last_error(&tried), "`localhost` is not on the public internet; webhooks are not sent there");
    assert_eq!(receiver.received().len(), 0);
}

#[tokio::test]
async fn an_address_is_checked_again_under_new_rules() {
    let world = a_world().await;
    let hooked = Hooked::quiet(world, HERE).await;
    let receiver = Receiver::open().await;
    let id = hooked.add(&receiver, &[]).await;
    // The operator restarts with a stricter rule.
    let mut hooked = Hooked::quiet(hooked.served.world, WebhookEgress { http: true, ..WebhookEgress::default() }).await;
    hooked.dispatch();
    hooked.served.run(json!({"input": "Hello"})).await;
    let tried = hooked.delivery(&id, |delivery| attempts(delivery) == 1).await;
    assert_eq!(last_error(&tried), "`127.0.0.1` is not on the public internet; webhooks are not sent there");
    assert_eq!(receiver.received().len(), 0);
}
