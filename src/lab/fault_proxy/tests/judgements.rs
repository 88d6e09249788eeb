//! Judgements of the report, and the facts on which they stand.

use std::time::Duration;

use serde_json::json;

use super::client::{HttpClient, SILENCE, StdioClient, call, initialize, plan, request};
use crate::check::Severity;
use crate::fault_proxy::{ClientFact, FaultTransport, Injection, ServerFact};

fn findings(injection: &Injection) -> Vec<(Severity, &str)> {
    injection.findings.iter().map(|finding| (finding.severity, finding.text.as_str())).collect()
}

#[tokio::test]
async fn a_lost_call_with_effects_that_is_sent_again_is_a_warning() {
    for (flaws, is_warned) in [(&["no-annotations"][..], true), (&[], false)] {
        let mut client = StdioClient::start(plan(&["hang"], FaultTransport::Stdio), flaws);
        client.answer(&initialize(1)).await;
        client.answer(&request(2, "tools/list", json!({}))).await;
        client.send(&call(3)).await;
        assert!(client.read(SILENCE).await.messages.is_empty());
        client.answer(&call(4)).await;
        let report = client.close().await;
        let injection = &report.injections[0];
        assert!(matches!(injection.client[0], ClientFact::Repeated { reached_server: true, .. }), "{report}");
        assert!(matches!(injection.server[0], ServerFact::Answered { .. }), "{report}");
        assert_eq!(!findings(injection).is_empty(), is_warned, "{report}");
    }
}

#[tokio::test]
async fn a_session_that_was_lost_has_to_be_initialized_again() {
    let mut client = HttpClient::start(plan(&["lost-session"], FaultTransport::Http), &[]).await;
    client.initialize(1).await;
    assert_eq!(client.exchange(&call(2)).await.status, 404);
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert_eq!(client.exchange(&request(3, "tools/list", json!({}))).await.status, 404);
    client.initialize(4).await;
    assert_eq!(client.exchange(&call(5)).await.status, 200);
    let report = client.close().await;
    let error = (Severity::Error, "sent tools/list in the session that HTTP 404 had ended");
    assert_eq!(findings(&report.injections[0]), [error], "{report}");
    assert!(report.has_errors());
}

#[tokio::test]
async fn a_retry_before_retry_after_is_a_warning() {
    let mut client = HttpClient::start(plan(&["http-429=5"], FaultTransport::Http), &[]).await;
    client.initialize(1).await;
    assert_eq!(client.exchange(&call(2)).await.status, 429);
    assert_eq!(client.exchange(&call(3)).await.status, 200);
    let report = client.close().await;
    assert!(findings(&report.injections[0])[0].1.ends_with("although Retry-After says 5.0 s"), "{report}");
}

#[tokio::test]
async fn a_client_that_leaves_and_a_server_that_ends_are_facts() {
    let mut client = HttpClient::start(plan(&["hang"], FaultTransport::Http), &[]).await;
    client.initialize(1).await;
    client.exchange_within(SILENCE, &call(2)).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let report = client.close().await;
    assert!(matches!(report.injections[0].client[0], ClientFact::Disconnected { .. }), "{report}");

    let mut client = StdioClient::start(plan(&["slow", "hang@tools/list"], FaultTransport::Stdio), &["crash"]);
    client.answer(&initialize(1)).await;
    client.send(&call(2)).await;
    client.read(SILENCE).await;
    let report = client.close().await;
    assert!(matches!(report.injections[0].client[0], ClientFact::Closed { .. }), "{report}");
    assert_eq!(report.not_injected, ["hang@tools/list"]);
}

#[tokio::test]
async fn a_page_of_another_host_is_refused() {
    let client = HttpClient::start(plan(&[], FaultTransport::Http), &[]).await;
    for (name, value) in [("host", "evil.example"), ("origin", "https://evil.example")] {
        let request = reqwest::Client::new().post(&client.url).header(name, value).body("{}");
        assert_eq!(request.send().await.unwrap().status(), 403, "{name}");
    }
    client.close().await;
}
