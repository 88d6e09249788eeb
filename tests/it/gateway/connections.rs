//! Connections of clients that are slow, gone, or many, and handlers that panic.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use toolgate::core::id::{FeedbackId, NodeId, RunId, SessionId, Tenant};
use toolgate::core::run::{JournalEntry, Segment};
use toolgate::gateway::ServeSettings;
use toolgate::ports::{
    Append, AppendError, Claim, EventLog, Feedback, FeedbackStore, LogPage, RunFilter, RunRow, RunStore, SessionFilter,
    SessionRow, SessionSaved, SessionStore, StoreError,
};
use toolgate::runner::AgentRunner;
use toolgate::stores::MemoryStore;

use super::queueing::agent;
use super::test_site::{Site, until};

fn runner() -> AgentRunner {
    let agent = agent(&json!([{"say": "Hello yourself."}]));
    AgentRunner::builder().store(Arc::new(MemoryStore::new())).agent(agent).build().unwrap()
}

const SHORT: Duration = Duration::from_millis(150);

fn impatient() -> ServeSettings {
    ServeSettings {
        first_request: SHORT,
        idle: SHORT,
        stalled_write: SHORT,
        closing: SHORT,
        ..ServeSettings::default()
    }
}

/// Sends a text and reads until the server disconnects.
async fn said(site: &Site, text: &[u8]) -> (Vec<u8>, Duration) {
    let mut stream = TcpStream::connect(site.address).await.unwrap();
    stream.write_all(text).await.unwrap();
    let (mut answer, began) = (Vec::new(), Instant::now());
    let hung_up = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut answer)).await;
    // A reset counts as well.
    let _ = hung_up.expect("the server disconnects");
    (answer, began.elapsed())
}

#[tokio::test]
async fn a_connection_without_a_complete_request_is_closed() {
    let site = Site::with(runner(), impatient(), |router| router).await;
    for text in ["", "P", "PRI * HTTP/2.0\r\n\r\n", "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: "] {
        let (answer, took) = said(&site, text.as_bytes()).await;
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 408"), "{text:?}: {answer:?}");
        assert!(took >= SHORT / 2, "{text:?}: {took:?}");
    }
}

#[tokio::test]
async fn a_connection_is_kept_between_requests_and_not_for_ever() {
    let site = Site::with(runner(), impatient(), |router| router).await;
    let request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n".repeat(2);
    let (answers, took) = said(&site, &request).await;
    assert_eq!(String::from_utf8(answers).unwrap().matches("HTTP/1.1 200").count(), 2);
    assert!(took >= SHORT / 2, "it was open for a while: {took:?}");
}

#[tokio::test]
async fn an_http_2_connection_stays_open_during_requests_only() {
    let slow = || async {
        tokio::time::sleep(3 * SHORT).await;
        "at last"
    };
    let route = Router::new().route("/slow", get(slow));
    let site = Site::with(runner(), impatient(), |router| router.merge(route)).await;
    let stream = TokioIo::new(TcpStream::connect(site.address).await.unwrap());
    let (mut asking, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    let mut connections = tokio::task::JoinSet::new();
    connections.spawn(connection);
    let request = Request::get(format!("http://{}/slow", site.address)).body(Body::empty()).unwrap();

    let answer = asking.send_request(request).await.unwrap();

    assert_eq!(answer.status(), 200);
    drop(answer);
    let hung_up = tokio::time::timeout(Duration::from_secs(10), connections.join_next()).await;
    hung_up.expect("the server disconnects");
    assert!(asking.is_closed());
}

#[tokio::test]
async fn an_event_stream_is_the_last_response_of_a_connection() {
    let stream = || async { ([(CONTENT_TYPE, "text/event-stream")], "data: x\n\n") };
    let route = Router::new().route("/stream", get(stream));
    let site = Site::with(runner(), ServeSettings::default(), |router| router.merge(route)).await;
    let requests = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /stream HTTP/1.1\r\nHost: x\r\n\r\n";

    let (answers, _) = said(&site, requests.as_bytes()).await;

    let answers = String::from_utf8(answers).unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200 OK\r\n").count(), 2, "{answers}");
    let end = "connection: close\r\ntransfer-encoding: chunked\r\n\r\n9\r\ndata: x\n\n\r\n0\r\n\r\n";
    assert!(answers.ends_with(end), "{answers}");
    let (older, _) = said(&site, b"GET /stream HTTP/1.0\r\n\r\n").await;
    let older = String::from_utf8(older).unwrap();
    assert!(older.ends_with("\r\n\r\ndata: x\n\n") && !older.contains("chunked"), "{older}");
    let (head, _) = said(&site, b"HEAD /stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert!(head.ends_with(b"\r\n\r\n") && !head.ends_with(b"\r\n0\r\n\r\n"), "{head:?}");
}

#[tokio::test]
async fn connections_over_the_limit_wait_until_one_ends() {
    let settings = ServeSettings { connections: 1, ..ServeSettings::default() };
    let site = Site::with(runner(), settings, |router| router).await;
    let request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    let mut first = TcpStream::connect(site.address).await.unwrap();
    first.write_all(request).await.unwrap();
    let mut answer = [0; 12];
    first.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    let mut second = TcpStream::connect(site.address).await.unwrap();
    second.write_all(request).await.unwrap();
    let waits = tokio::time::timeout(Duration::from_millis(200), second.read_exact(&mut answer)).await;
    assert!(waits.is_err(), "it waits");
    drop(first);
    tokio::time::timeout(Duration::from_secs(5), second.read_exact(&mut answer)).await.unwrap().unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
}

#[tokio::test]
async fn a_closing_server_answers_open_requests_and_no_others() {
    let slow = || async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        "at last"
    };
    let route = Router::new().route("/slow", get(slow));
    let mut site = Site::with(runner(), ServeSettings::default(), |router| router.merge(route)).await;
    let (address, closing) = (site.address, site.closing.clone());
    let closed = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        closing.cancel();
        until(async || TcpStream::connect(address).await.is_err()).await;
    };
    let (answer, ()) = tokio::join!(site.get("/slow"), closed);
    assert_eq!(answer.body, "at last");
    site.serving.join_next().await.unwrap().unwrap();
}

#[tokio::test]
async fn both_http_versions_are_supported() {
    let site = Site::over(runner()).await;
    let client = reqwest::Client::builder().http2_prior_knowledge().build().unwrap();
    let url = format!("http://{}/v1/runs", site.address);
    let answer = client.post(url).json(&json!({"input": "Hello"})).send().await.unwrap();
    assert_eq!((answer.version(), answer.status().as_u16()), (reqwest::Version::HTTP_2, 201));
    assert_eq!(site.post("/v1/runs", json!({"input": "Hello"})).await.status, 201);
}

/// A store whose index panics.
pub(super) struct Panicking;

#[async_trait::async_trait]
impl RunStore for Panicking {
    async fn append(&self, _: Append) -> Result<(), AppendError> {
        panic!("the disk said hunter2")
    }

    async fn load(&self, _: &RunId, _: u64) -> Result<Vec<JournalEntry>, StoreError> {
        panic!("the disk said hunter2")
    }

    async fn list(&self, _: &RunFilter) -> Result<Vec<RunRow>, StoreError> {
        panic!("the disk said hunter2")
    }

    async fn claim(&self, _: &Claim) -> Result<Vec<RunId>, StoreError> {
        Ok(Vec::new())
    }

    async fn orphaned(&self, _: usize) -> Result<Vec<RunId>, StoreError> {
        Ok(Vec::new())
    }

    async fn renew(&self, _: &NodeId, _: &[RunId], _: Duration) -> Result<(), StoreError> {
        Ok(())
    }

    async fn purge(&self, _: &RunId, _: u64, _: jiff::Timestamp) -> Result<toolgate::ports::Purged, StoreError> {
        panic!("the disk said hunter2")
    }
}

#[async_trait::async_trait]
impl FeedbackStore for Panicking {
    async fn put_feedback(&self, _: &RunId, _: &Feedback) -> Result<bool, StoreError> {
        panic!("the disk said hunter2")
    }

    async fn feedback(&self, _: &RunId) -> Result<Vec<Feedback>, StoreError> {
        panic!("the disk said hunter2")
    }

    async fn delete_feedback(&self, _: &RunId, _: &FeedbackId) -> Result<bool, StoreError> {
        panic!("the disk said hunter2")
    }
}

#[async_trait::async_trait]
impl EventLog for Panicking {
    async fn logged(&self, _: &Tenant, _: u64, _: usize) -> Result<LogPage, StoreError> {
        panic!("the disk said hunter2")
    }

    async fn last_position(&self) -> Result<u64, StoreError> {
        panic!("the disk said hunter2")
    }

    async fn tenants_after(&self, _: u64) -> Result<Vec<(Tenant, u64)>, StoreError> {
        panic!("the disk said hunter2")
    }
}

#[async_trait::async_trait]
impl SessionStore for Panicking {
    async fn session(&self, _: &Tenant, _: &SessionId) -> Result<Option<SessionRow>, StoreError> {
        panic!("the disk said hunter2")
    }

    async fn sessions(&self, _: &SessionFilter) -> Result<Vec<SessionRow>, StoreError> {
        panic!("the disk said hunter2")
    }

    async fn save_session(&self, _: u64, _: &SessionRow) -> Result<SessionSaved, StoreError> {
        panic!("the disk said hunter2")
    }

    async fn segment_lengths(&self, _: &Tenant, _: &RunId) -> Result<Vec<(RunId, Option<u64>)>, StoreError> {
        panic!("the disk said hunter2")
    }

    async fn segments(&self, _: &Tenant, _: &[RunId]) -> Result<Vec<(RunId, Segment)>, StoreError> {
        panic!("the disk said hunter2")
    }
}

#[tokio::test]
async fn a_panic_fails_its_request_and_not_the_connection() {
    let agent = agent(&json!([]));
    let runner = AgentRunner::builder().store(Arc::new(Panicking)).agent(agent).build().unwrap();
    let mut site = Site::over(runner).await;
    // It reads the same store.
    site.rest = None;
    let mut stream = TcpStream::connect(site.address).await.unwrap();
    for _ in 0..2 {
        stream.write_all(b"GET /v1/runs HTTP/1.1\r\nHost: x\r\nx-request-id: mine\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        while !answer.ends_with('}') {
            let mut some = [0; 4096];
            let read = stream.read(&mut some).await.unwrap();
            assert!(read > 0, "the connection stays open: {answer}");
            answer.push_str(std::str::from_utf8(&some[..read]).unwrap());
        }
        assert!(answer.starts_with("HTTP/1.1 500"), "{answer}");
        assert!(answer.contains("application/problem+json") && answer.contains(r#""code":"internal""#), "{answer}");
        assert!(answer.contains(r#""request_id":"mine""#) && !answer.contains("hunter2"), "{answer}");
    }
}
