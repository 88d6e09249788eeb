//! HTTP servers that fail by themselves or keep their streams open, and the wire log of an answer that breaks off.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::client::{HttpClient, SILENCE, Seen, call, plan};
use crate::fault_proxy::{ClientFact, FaultTransport, MAX_MESSAGE, Report, ServerFact};

const ANSWER: &str = r#"{"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#;

/// What a server does behind the bytes of its response.
#[derive(Clone, Copy)]
enum AfterResponse {
    Close,
    KeepOpen,
}

/// A response with a body of this length, of which it has the beginning.
fn response(kind: &str, length: usize, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}").into()
}

/// The URL of a server that answers each request with these bytes.
async fn upstream(response: Vec<u8>, after: AfterResponse) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let response = response.clone();
            tokio::spawn(async move {
                let mut request = Vec::new();
                while !is_whole(&request) {
                    assert_ne!(stream.read_buf(&mut request).await.unwrap(), 0);
                }
                let _ = stream.write_all(&response).await;
                if matches!(after, AfterResponse::KeepOpen) {
                    std::future::pending::<()>().await;
                }
            });
        }
    });
    url
}

/// Whether a request ends with its body, a message.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    text.split_once("\r\n\r\n").is_some_and(|(_, body)| serde_json::from_str::<serde_json::Value>(body).is_ok())
}

/// A call to a server that sends this response and closes the connection.
async fn called(response: Vec<u8>, faults: &[&str]) -> (Seen, Report) {
    let url = upstream(response, AfterResponse::Close).await;
    let client = HttpClient::before(url, plan(faults, FaultTransport::Http), None);
    let seen = client.exchange(&call(2)).await;
    (seen, client.close().await)
}

#[tokio::test]
async fn an_answer_that_breaks_off_stays_broken() {
    for kind in ["application/json", "text/event-stream"] {
        let (seen, report) = called(response(kind, 1000, "data: {\"jsonrpc\""), &[]).await;
        assert!(seen.is_broken, "{kind}: {seen:?}");
        assert!(report.failures[0].starts_with("the connection broke"), "{kind}: {report}");

        let (_, report) = called(response(kind, 1000, "data: {\"jsonrpc\""), &["slow=0"]).await;
        assert!(matches!(report.injections[0].server[0], ServerFact::Failed { .. }), "{kind}: {report}");
        assert!(report.failures.is_empty(), "{report}");
    }
}

#[tokio::test]
async fn the_last_event_needs_no_empty_line() {
    for end in ["", "\n"] {
        let event = format!("data: {ANSWER}{end}");
        let (seen, report) = called(response("text/event-stream", event.len(), &event), &[]).await;
        assert_eq!(seen.messages, [ANSWER.as_bytes()], "{seen:?}");
        assert!(!seen.is_broken && report.failures.is_empty(), "{report}");
    }
}

#[tokio::test]
async fn an_event_that_is_too_large_breaks_the_stream() {
    let event = format!("data: {}", "x".repeat(MAX_MESSAGE));
    let (seen, report) = called(response("text/event-stream", event.len(), &event), &[]).await;
    assert!(seen.is_broken, "{:?}", seen.headers);
    assert_eq!(report.failures, ["an event is larger than 64 MiB"]);
}

#[tokio::test]
async fn a_client_that_has_its_answer_did_not_leave_early() {
    let event = response("text/event-stream", 1000, &format!("data: {ANSWER}\n\n"));
    let url = upstream(event, AfterResponse::KeepOpen).await;
    let client = HttpClient::before(url, plan(&["slow=0"], FaultTransport::Http), None);
    let seen = client.exchange_within(SILENCE, &call(2)).await;
    assert_eq!(seen.messages, [ANSWER.as_bytes()]);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let report = client.close().await;
    let is_early = |fact: &ClientFact| matches!(fact, ClientFact::Disconnected { .. });
    assert!(!report.injections[0].client.iter().any(is_early), "{report}");
}

#[tokio::test]
async fn half_of_an_answer_is_in_the_wire_log() {
    let event = format!("data: {ANSWER}\n\n");
    for (kind, body) in [("application/json", ANSWER), ("text/event-stream", event.as_str())] {
        let file = tempfile::NamedTempFile::new().unwrap();
        let url = upstream(response(kind, body.len(), body), AfterResponse::Close).await;
        let plan = plan(&["die-in-answer"], FaultTransport::Http);
        let client = HttpClient::before(url, plan, Some(file.reopen().unwrap()));
        assert!(client.exchange(&call(2)).await.is_broken);
        client.close().await;
        let log = std::fs::read_to_string(file.path()).unwrap();
        let rows = log.lines().map(|row| serde_json::from_str::<serde_json::Value>(row).unwrap());
        let mut sent = rows.filter(|row| row["connection"] == "client" && row["direction"] == "sent");
        let half = &ANSWER[..ANSWER.len() / 2];
        assert_eq!(sent.next().map(|row| row["line"].clone()), Some(json!(half)), "{kind}: {log}");
    }
}
