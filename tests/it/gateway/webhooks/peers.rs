//! Recorded requests, verified by the library that Standard Webhooks publishes for Python, and by OpenAI's.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::Hooked;
use super::receiver::Receiver;
use crate::runner::world::{given_an_agent, say};

#[tokio::test]
async fn the_published_verifiers_accept_only_genuine_messages() {
    let Some(peers) = std::env::var_os("TOOLGATE_PEERS") else { return println!("skipped: TOOLGATE_PEERS is not set") };
    let world = given_an_agent().whose_model_says(json!([say("Done. 🦀")])).ready().await;
    let hooked = Hooked::with(world).await;
    let receiver = Receiver::open().await;
    let created = hooked.served.post("/v1/webhook-endpoints", json!({"url": receiver.url()})).await;
    let old = created.text("secret").to_owned();
    receiver.learn(&old);
    hooked.served.run(json!({"input": "Hello"})).await;
    receiver.receives(1).await;
    let rotated = hooked.served.post(&format!("/v1/webhook-endpoints/{}/rotate", created.text("id")), json!({})).await;
    hooked.served.run(json!({"input": "Hello again"})).await;
    let received = receiver.receives(2).await;

    let cases: Vec<_> = received
        .iter()
        .zip([vec![old.as_str()], vec![old.as_str(), rotated.text("secret")]])
        .map(|(received, secrets)| {
            let headers = json!({"webhook-id": received.id, "webhook-timestamp": received.timestamp,
                                 "webhook-signature": received.signature});
            json!({"body": received.text, "headers": headers, "secrets": secrets})
        })
        .collect();
    let now: i64 = received[0].timestamp.parse().unwrap();
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("requests.json");
    std::fs::write(&file, json!({"now": now, "cases": cases}).to_string()).unwrap();
    let python = Path::new(&peers).join("venv/bin/python");
    let judged = Command::new(python).arg("tests/peers/webhooks/verify.py").arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&judged.stdout).into_owned() + &String::from_utf8_lossy(&judged.stderr);
    assert!(judged.status.success(), "{said}");
    assert!(said.contains("9 verdicts are right"), "{said}");
}
