//! Spans over the wire: what a receiver gets, and what a run feels of a receiver that is not there.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::routing::post;
use jiff::Timestamp;
use toolgate::core::run::Event;
use toolgate::ports::{EventSink, Update};
use toolgate::telemetry::{ExportSettings, SpanSink};

use super::journals::{self, Journal};

#[derive(Clone, Default)]
struct Received(Arc<Mutex<Vec<Request>>>);

struct Request {
    content_type: String,
    body: Bytes,
}

impl Received {
    async fn listen(&self) -> String {
        let received = self.clone();
        let take = move |headers: HeaderMap, body: Bytes| async move {
            let content_type = headers["content-type"].to_str().unwrap().to_owned();
            received.0.lock().unwrap().push(Request { content_type, body });
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, Router::new().route("/v1/traces", post(take))).await });
        format!("http://{address}")
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().iter().flat_map(|request| request.body.clone()).collect()
    }
}

fn sink(endpoint: &str) -> SpanSink {
    let settings = ExportSettings { endpoint: Some(endpoint.to_owned()), ..ExportSettings::default() };
    let export = settings.resolve(|_| None).unwrap().expect("an endpoint is set");
    SpanSink::start(&export, Arc::new(journals::identity)).unwrap()
}

fn tell(sink: &SpanSink, journal: &Journal) {
    for recorded in &journal.events {
        sink.observe(&journal.run, &Update::Recorded(recorded.clone()));
    }
}

async fn shut_down(sink: SpanSink) -> Result<(), toolgate::telemetry::ExportError> {
    tokio::task::spawn_blocking(move || sink.shutdown()).await.unwrap()
}

fn occurrences(bytes: &[u8], text: &str) -> usize {
    bytes.windows(text.len()).filter(|window| *window == text.as_bytes()).count()
}

#[tokio::test]
async fn a_receiver_gets_the_spans_of_a_run_as_protobuf() {
    let received = Received::default();
    let sink = sink(&received.listen().await);
    tell(&sink, &journals::parallel_calls(Timestamp::UNIX_EPOCH));
    shut_down(sink).await.expect("delivered");

    assert_eq!(received.0.lock().unwrap()[0].content_type, "application/x-protobuf");
    let bytes = received.bytes();
    for (name, count) in [
        ("invoke_agent assistant", 1),
        ("chat gpt-5-mini", 2),
        ("execute_tool mcp_weather_today", 1),
        ("execute_tool mcp_files_read", 1),
        ("tools/list", 2),
        ("service.name", 1),
    ] {
        assert_eq!(occurrences(&bytes, name), count, "{name}");
    }
    assert_eq!(occurrences(&bytes, "openinference.span.kind"), 6);
}

#[tokio::test]
async fn a_run_that_is_laid_down_and_taken_up_elsewhere_is_told_once() {
    let received = Received::default();
    let endpoint = received.listen().await;
    let journal = journals::approved_call(Timestamp::UNIX_EPOCH);
    let resumed = journal.events.iter().position(|event| matches!(event.event, Event::Resumed { .. })).unwrap();
    let decided = resumed - 1;

    let first = sink(&endpoint);
    for recorded in &journal.events[..decided] {
        first.observe(&journal.run, &Update::Recorded(recorded.clone()));
    }
    first.laid_down(&journal.run, journal.events[decided - 1].at);
    shut_down(first).await.expect("delivered");

    let second = sink(&endpoint);
    second.took_up(&journal.run, &journal.events[..resumed]);
    for recorded in &journal.events[resumed..] {
        second.observe(&journal.run, &Update::Recorded(recorded.clone()));
    }
    shut_down(second).await.expect("delivered");

    let bytes = received.bytes();
    assert_eq!(occurrences(&bytes, "invoke_agent assistant"), 2);
    assert_eq!(occurrences(&bytes, "chat gpt-5-mini"), 2);
    assert_eq!(occurrences(&bytes, "execute_tool mcp_files_read"), 1);
    assert_eq!(occurrences(&bytes, "toolgate.guardrail"), 1);
}

#[tokio::test]
async fn a_receiver_that_is_not_there_delays_nothing_and_is_reported_at_the_end() {
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let sink = sink(&endpoint);
    let began = Instant::now();
    for journal in journals::all(Timestamp::UNIX_EPOCH) {
        tell(&sink, &journal);
    }
    assert!(began.elapsed() < Duration::from_secs(1), "telling took {:?}", began.elapsed());
    let error = shut_down(sink).await.expect_err("nobody received them");
    assert!(error.to_string().contains("the last spans may be lost"), "{error}");
}
