//! Catch-up of spans: a server sends what a killed server or an unavailable collector left in the journals.

use std::net::TcpListener;

use rustix::process::Signal;
use serde_json::json;

use super::server::{Server, desk, until};
use super::with_agents;
use crate::cli::span_marks::{environment, of_journals, received};
use crate::telemetry::receiver::Receiver;

const ANSWER: &str = "turns: [{ say: Done. }]";

#[tokio::test(flavor = "multi_thread")]
async fn the_next_server_sends_the_spans_of_runs_that_ended_before_a_kill() {
    let (receiver, desk) = (Receiver::start(), desk(&with_agents("desk: {}"), ANSWER));
    let first = Server::with(&desk, &environment(&receiver.url())).await;
    let mut runs = Vec::new();
    for _ in 0..5 {
        let run = first.start(json!({"input": "Hello"})).await;
        first.sees(&run, "completed").await;
        runs.push(run);
    }
    first.send(Signal::KILL);
    first.ended().await;
    let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
    let expected = of_journals(&desk, &runs);
    assert!(received(&receiver).len() < expected.len(), "the first server sent everything");

    let second = Server::with(&desk, &environment(&receiver.url())).await;

    until(async || (received(&receiver).len() >= expected.len()).then_some(())).await;
    second.send(Signal::TERM);
    assert_eq!(second.ended().await, Some(0));
    assert_eq!(received(&receiver), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_given_up_in_an_outage_are_sent_after_it() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let desk = desk(&with_agents("desk: {}"), ANSWER);
    let impatient = [("OTEL_BSP_SCHEDULE_DELAY", "50"), ("OTEL_EXPORTER_OTLP_TIMEOUT", "200")];
    let impatient = impatient.map(|(name, value)| (name, value.to_owned()));
    let mut server = Server::with(&desk, &[environment(&format!("http://{address}")), impatient].concat()).await;
    let given_up = server.start(json!({"input": "Hello"})).await;
    server.sees(&given_up, "completed").await;
    server.line("spans lost").await;

    let receiver = Receiver::at(address);
    let in_time = server.start(json!({"input": "Hello"})).await;
    server.sees(&in_time, "completed").await;

    let expected = of_journals(&desk, &[&given_up, &in_time]);
    until(async || (received(&receiver).len() >= expected.len()).then_some(())).await;
    server.send(Signal::TERM);
    assert_eq!(server.ended().await, Some(0));
    assert_eq!(received(&receiver), expected);
}
