//! Metrics of a server, as Prometheus reads them.

use std::net::TcpListener;

use rustix::process::Signal;
use serde_json::json;

use super::server::{Server, desk, until};
use super::with_agents;

/// An address without a listener.
fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// Waits until an address of metrics shows these lines, and returns the text.
async fn shows(metrics: &str, lines: &[&str]) -> String {
    until(async || {
        let text = reqwest::get(format!("http://{metrics}/metrics")).await.unwrap().text().await.unwrap();
        lines.iter().all(|wanted| text.lines().any(|line| line == *wanted)).then_some(text)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_streams_and_runs_are_counted_and_read_at_an_address_of_their_own() {
    let metrics = free_address();
    let settings = format!("gateway: {{ metrics_listen: '{metrics}', runs: {{ max_active: 1 }},");
    let desk = desk(&with_agents("desk: {}").replace("gateway: {", &settings), "turns: [{ hang: true }]");
    let server = Server::at(&desk).await;
    let shows = async |lines: &[&str]| shows(&metrics, lines).await;

    let (driven, queued) =
        (server.start(json!({"input": "Hello"})).await, server.start(json!({"input": "Hello"})).await);
    let stream = server.watch(&driven, None).await;
    server.client.get(format!("{}/nowhere/at/all", server.url)).send().await.unwrap();

    let answered = |method: &str, status: u16, route: &str, count: u8| {
        let labels =
            format!(r#"http_request_method="{method}",http_response_status_code="{status}",http_route="{route}""#);
        format!("http_server_request_duration_seconds_count{{{labels}}} {count}")
    };
    let text = shows(&[
        "toolgate_http_streams 1",
        "toolgate_runs_active 1",
        "toolgate_runs_queued 1",
        &answered("POST", 202, "/v1/runs", 2),
        &answered("GET", 200, "/v1/runs/{run}/events", 1),
        &answered("GET", 404, "_other", 1),
    ])
    .await;
    assert!(!text.contains(&driven) && !text.contains("nowhere"), "{text}");
    assert_eq!(server.client.get(format!("{}/metrics", server.url)).send().await.unwrap().status(), 404);

    drop(stream);
    shows(&["toolgate_http_streams 0"]).await;
    server.post(&format!("/v1/runs/{queued}/cancel"), "", json!({})).await;
    shows(&["toolgate_runs_active 1", "toolgate_runs_queued 0"]).await;
    server.post(&format!("/v1/runs/{driven}/cancel"), "", json!({})).await;
    shows(&["toolgate_runs_active 0", "toolgate_runs_queued 0"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn blocked_runs_are_counted_until_they_end_or_resume() {
    let metrics = free_address();
    let settings = format!("gateway: {{ metrics_listen: '{metrics}',");
    let with = |agent: &str| with_agents(agent).replace("gateway: {", &settings).replace("lease_s: 600", "lease_s: 5");
    let desk = desk(&with("desk: {}"), "turns: [{ hang: true }]");
    let server = Server::at(&desk).await;
    let (cancelled, resumed) =
        (server.start(json!({"input": "Hello"})).await, server.start(json!({"input": "Hello"})).await);
    server.send(Signal::TERM);
    assert_eq!(server.ended().await, Some(0));
    desk.write("toolgate.yaml", &with("other: {}"));
    let mut server = Server::at(&desk).await;
    let counts = async |server: &Server, count: u8| {
        shows(&metrics, &[&format!("toolgate_runs_blocked {count}")]).await;
        let (status, readiness) = server.get("/readyz").await;
        assert_eq!((status, &readiness["blocked_runs"]), (200, &json!(count)), "{readiness}");
    };

    counts(&server, 2).await;
    server.post(&format!("/v1/runs/{cancelled}/cancel"), "", json!({})).await;
    counts(&server, 1).await;
    desk.write("toolgate.yaml", &with("desk: {}"));
    server.send(Signal::HUP);
    server.line("configuration reloaded").await;
    counts(&server, 0).await;

    shows(&metrics, &["toolgate_runs_active 1"]).await;
    server.sees(&resumed, "running").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_be_measured_where_it_should_does_not_start() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let settings = format!("gateway: {{ metrics_listen: '{}',", taken.local_addr().unwrap());
    let desk = desk(&with_agents("desk: {}").replace("gateway: {", &settings), "turns: []");
    let refused = desk.toolgate(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(refused.code != 0 && refused.err.contains(&taken.local_addr().unwrap().to_string()), "{}", refused.err);
}
