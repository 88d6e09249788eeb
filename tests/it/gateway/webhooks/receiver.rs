//! A receiver of webhooks that checks every signature with its own code, and answers as configured.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_lc_rs::hmac;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::until;

/// The response of a receiver.
#[derive(Clone, Debug)]
pub(super) enum Manner {
    Status(u16),
    RetryAfter(u16, &'static str),
    RedirectTo(String),
    Never,
    /// A response whose body never ends.
    Endless,
}

/// A message that arrived.
#[derive(Clone, Debug)]
pub(super) struct Received {
    pub(super) id: String,
    pub(super) timestamp: String,
    pub(super) signature: String,
    pub(super) text: String,
    pub(super) body: Value,
}

pub(super) struct Receiver {
    address: SocketAddr,
    desk: Arc<Desk>,
    _serving: JoinSet<()>,
}

#[derive(Default)]
struct Desk {
    received: Mutex<Vec<Received>>,
    /// The next responses; the last one is repeated, and without any it is 204.
    manners: Mutex<VecDeque<Manner>>,
    secrets: Mutex<Vec<String>>,
    unsigned: Mutex<Vec<String>>,
}

impl Receiver {
    pub(super) async fn open() -> Self {
        Self::that_answers([]).await
    }

    pub(super) async fn that_answers<const N: usize>(manners: [Manner; N]) -> Self {
        let desk = Arc::new(Desk { manners: Mutex::new(manners.into()), ..Desk::default() });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = axum::Router::new().fallback(receive).with_state(desk.clone());
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, desk, _serving: serving }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/hooks", self.address)
    }

    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Adds a trusted secret.
    pub(super) fn learn(&self, secret: &str) {
        self.desk.secrets.lock().unwrap().push(secret.to_owned());
    }

    /// Trusts only this secret.
    pub(super) fn trust_only(&self, secret: &str) {
        *self.desk.secrets.lock().unwrap() = vec![secret.to_owned()];
    }

    /// Every attempt that arrived, in the order of arrival.
    pub(super) fn received(&self) -> Vec<Received> {
        let unsigned = self.desk.unsigned.lock().unwrap();
        assert!(unsigned.is_empty(), "these were not signed with a secret of the receiver: {unsigned:?}");
        self.desk.received.lock().unwrap().clone()
    }

    /// Waits until so many have arrived.
    pub(super) async fn receives(&self, count: usize) -> Vec<Received> {
        until(async || Some(self.received()).filter(|received| received.len() >= count)).await
    }

    /// The types of the messages, sorted.
    pub(super) async fn types(&self, count: usize) -> Vec<String> {
        let mut types: Vec<String> = self.receives(count).await.iter().map(Received::kind).collect();
        types.sort();
        types
    }
}

impl Received {
    pub(super) fn kind(&self) -> String {
        self.body["type"].as_str().unwrap().to_owned()
    }
}

async fn receive(State(desk): State<Arc<Desk>>, headers: HeaderMap, body: Bytes) -> Response {
    let header = |name: &str| headers.get(name).unwrap_or_else(|| panic!("{name}")).to_str().unwrap().to_owned();
    let text = String::from_utf8(body.to_vec()).unwrap();
    let received = Received {
        id: header("webhook-id"),
        timestamp: header("webhook-timestamp"),
        signature: header("webhook-signature"),
        body: serde_json::from_str(&text).unwrap(),
        text,
    };
    assert_eq!(header("content-type"), "application/json");
    if !desk.secrets.lock().unwrap().iter().any(|secret| is_signed(&received, secret)) {
        desk.unsigned.lock().unwrap().push(format!("{received:?}"));
    }
    desk.received.lock().unwrap().push(received);
    let manner = {
        let mut manners = desk.manners.lock().unwrap();
        if manners.len() > 1 { manners.pop_front() } else { manners.front().cloned() }
    };
    answer(manner.unwrap_or(Manner::Status(204))).await
}

async fn answer(manner: Manner) -> Response {
    let status = |status| StatusCode::from_u16(status).unwrap();
    match manner {
        Manner::Status(code) => status(code).into_response(),
        Manner::RetryAfter(code, after) => (status(code), [("retry-after", after)]).into_response(),
        Manner::RedirectTo(url) => (status(307), [("location", url)]).into_response(),
        Manner::Never => std::future::pending().await,
        Manner::Endless => {
            let chunks = futures::stream::unfold((), async |()| {
                tokio::time::sleep(Duration::from_millis(1)).await;
                Some((Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; 1024])), ()))
            });
            axum::body::Body::from_stream(chunks).into_response()
        }
    }
}

fn is_signed(received: &Received, secret: &str) -> bool {
    let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    let signed = format!("{}.{}.{}", received.id, received.timestamp, received.text);
    let signatures = received.signature.split(' ').map(|signature| signature.strip_prefix("v1,").unwrap());
    let decoded = signatures.map(|signature| STANDARD.decode(signature).unwrap());
    decoded.into_iter().any(|signature| hmac::verify(&key, signed.as_bytes(), &signature).is_ok())
}
