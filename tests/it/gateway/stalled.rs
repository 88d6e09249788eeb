//! Clients that do not read: they hold few resources of a server, and not for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use toolgate::gateway::ServeSettings;
use toolgate::runner::AgentRunner;
use toolgate::stores::MemoryStore;

use super::queueing::agent;
use super::test_site::{Site, until};

const PIECE: usize = 64 * 1024;
/// More than the socket buffers of a connection can hold.
const ON_THE_WAY: usize = 64 * 1024 * 1024;

/// Hyper writes the first over HTTP/1.1, and the gateway itself the second.
const KINDS: [&str; 2] = ["application/octet-stream", "text/event-stream"];

/// Only a stalled write ends a connection of this server.
fn patient_but_for_writes(stalled_write: Duration) -> ServeSettings {
    const LONG: Duration = Duration::from_secs(600);
    ServeSettings { first_request: LONG, idle: LONG, closing: LONG, stalled_write, ..ServeSettings::default() }
}

/// A stream without an end: its media type, how many are open, and how much of them was read.
#[derive(Clone)]
struct Endless {
    media_type: &'static str,
    open: Arc<()>,
    taken: Arc<AtomicUsize>,
}

impl Endless {
    fn of(media_type: &'static str) -> Self {
        Self { media_type, open: Arc::default(), taken: Arc::default() }
    }

    fn open(&self) -> usize {
        // One reference is here and one in the route.
        Arc::strong_count(&self.open) - 2
    }

    fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    async fn served(&self, settings: ServeSettings) -> Site {
        let endless = self.clone();
        let answer = move || {
            let (open, taken) = (endless.open.clone(), endless.taken.clone());
            let pieces = futures::stream::repeat_with(move || {
                let _ = &open;
                taken.fetch_add(PIECE, Ordering::Relaxed);
                Ok::<_, std::io::Error>(Bytes::from_static(&[b'x'; PIECE]))
            });
            std::future::ready(([(CONTENT_TYPE, endless.media_type)], Body::from_stream(pieces)))
        };
        let route = Router::new().route("/endless", get(answer));
        let agent = agent(&json!([{"say": "Hello yourself."}]));
        let runner = AgentRunner::builder().store(Arc::new(MemoryStore::new())).agent(agent).build().unwrap();
        Site::with(runner, settings, |router| router.merge(route)).await
    }

    /// How much was sent when the sending stops.
    async fn comes_to_a_stop(&self) -> usize {
        let mut before = 0;
        loop {
            tokio::time::sleep(Duration::from_millis(150)).await;
            let taken = self.taken();
            if taken > 0 && taken == before {
                return taken;
            }
            assert!(taken < 16 * ON_THE_WAY, "a client that reads nothing is sent everything");
            before = taken;
        }
    }
}

/// A client that sends a request and never reads.
async fn asks(site: &Site) -> TcpStream {
    let mut stream = TcpStream::connect(site.address).await.unwrap();
    stream.write_all(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    stream
}

#[tokio::test]
async fn a_client_that_never_reads_its_stream_is_disconnected() {
    for endless in KINDS.map(Endless::of) {
        let site = endless.served(patient_but_for_writes(Duration::from_millis(300))).await;
        let _stream = asks(&site).await;
        until(async || endless.open() == 1).await;
        until(async || endless.open() == 0).await;
        assert!(endless.taken() < ON_THE_WAY, "{}", endless.taken());
    }
}

#[tokio::test]
async fn a_client_that_pauses_briefly_keeps_its_stream() {
    for endless in KINDS.map(Endless::of) {
        let site = endless.served(patient_but_for_writes(Duration::from_secs(600))).await;
        let stream = asks(&site).await;
        assert!(endless.comes_to_a_stop().await < ON_THE_WAY);
        assert_eq!(endless.open(), 1, "nothing else ends the stream");
        drop(stream);
        until(async || endless.open() == 0).await;
    }
}

#[tokio::test]
async fn an_unread_http_2_stream_costs_only_its_window() {
    let endless = Endless::of(KINDS[0]);
    let site = endless.served(patient_but_for_writes(Duration::from_secs(600))).await;
    let client = reqwest::Client::builder().http2_prior_knowledge().build().unwrap();
    let url = |path: &str| format!("http://{}{path}", site.address);
    let unread = client.get(url("/endless")).send().await.unwrap();
    assert!(endless.comes_to_a_stop().await < ON_THE_WAY);
    let other = client.get(url("/healthz")).send().await.unwrap();
    assert_eq!(other.status(), 200, "other requests on the connection are not delayed");
    drop(unread);
    until(async || endless.open() == 0).await;
}
