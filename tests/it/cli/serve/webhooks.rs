//! Webhooks of servers that are killed, of several servers, and of a reloaded server.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_lc_rs::hmac;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::server::{Server, desk, until_within};
use super::with_agents;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const ANOTHER: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

/// A received message: endpoint, id, signing secret, and run.
#[derive(Clone, Debug)]
struct Message {
    path: String,
    id: String,
    secret: Option<&'static str>,
    run: String,
}

struct Receiver {
    address: String,
    heard: Arc<Mutex<Vec<Message>>>,
    _serving: JoinSet<()>,
}

impl Receiver {
    async fn open() -> Self {
        let heard = Arc::<Mutex<Vec<Message>>>::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let router = axum::Router::new().route("/{path}", axum::routing::post(hear)).with_state(heard.clone());
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, heard, _serving: serving }
    }

    fn heard(&self, path: &str) -> Vec<Message> {
        self.heard.lock().unwrap().iter().filter(|message| message.path == path).cloned().collect()
    }

    /// Waits until the receiver has messages about exactly these runs, each with one id.
    async fn hears_of(&self, path: &str, runs: &BTreeSet<String>) -> Vec<Message> {
        let heard = async || {
            let heard = self.heard(path);
            let told: BTreeSet<&String> = heard.iter().map(|message| &message.run).collect();
            (told.len() >= runs.len()).then_some(heard)
        };
        // A delivery that a killed process had claimed stays claimed for a minute.
        let heard = until_within(Duration::from_secs(90), heard).await;
        let told: BTreeSet<(String, String)> =
            heard.iter().map(|message| (message.run.clone(), message.id.clone())).collect();
        assert_eq!(told.iter().map(|(run, _)| run.clone()).collect::<BTreeSet<_>>(), *runs);
        assert_eq!(told.len(), runs.len(), "each under one id: {told:?}");
        heard
    }
}

async fn hear(
    State(heard): State<Arc<Mutex<Vec<Message>>>>,
    Path(path): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let header = |name: &str| headers[name].to_str().unwrap().to_owned();
    let (id, body) = (header("webhook-id"), String::from_utf8(body.to_vec()).unwrap());
    let signed = format!("{id}.{}.{body}", header("webhook-timestamp"));
    let signature = STANDARD.decode(header("webhook-signature").strip_prefix("v1,").unwrap()).unwrap();
    let fits = |secret: &&str| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap());
        hmac::verify(&key, signed.as_bytes(), &signature).is_ok()
    };
    let secret = [SECRET, ANOTHER].into_iter().find(|secret| fits(secret));
    let body: Value = serde_json::from_str(&body).unwrap();
    let run = body["data"]["run_id"].as_str().unwrap().to_owned();
    heard.lock().unwrap().push(Message { path, id, secret, run });
    StatusCode::NO_CONTENT
}

fn told_at(receiver: &Receiver, path: &str, secret: &str) -> String {
    let webhook = format!("webhooks: [{{ url: '{}/{path}', secret: '{secret}' }}]", receiver.address);
    let gateway = format!("gateway: {{ {webhook}, webhook_egress: {{ http: true, loopback: true }},");
    with_agents("desk: {}").replace("gateway: {", &gateway).replace("lease_s: 600", "lease_s: 1")
}

const TURNS: &str = "turns: [{ say: Done. }]";

#[tokio::test(flavor = "multi_thread")]
async fn the_next_server_announces_the_runs_of_a_killed_one() {
    let receiver = Receiver::open().await;
    let desk = desk(&told_at(&receiver, "configured", SECRET), TURNS);
    let first = Server::at(&desk).await;
    let endpoint = json!({"url": format!("{}/tenants", receiver.address), "secret": ANOTHER});
    let (status, made) = first.post("/v1/webhook-endpoints", "", endpoint).await;
    assert_eq!(status, 201, "{made}");
    let mut runs = BTreeSet::new();
    for _ in 0..24 {
        runs.insert(first.start(json!({"input": "Hello"})).await);
    }

    drop(first);

    let second = Server::at(&desk).await;
    for run in &runs {
        second.sees(run, "completed").await;
    }
    let configured = receiver.hears_of("configured", &runs).await;
    assert!(configured.iter().all(|message| message.secret == Some(SECRET)), "{configured:?}");
    let tenants = receiver.hears_of("tenants", &runs).await;
    assert!(tenants.iter().all(|message| message.secret == Some(ANOTHER)), "{tenants:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_listen_leaves_the_webhooks_of_the_one_that_does() {
    let receiver = Receiver::open().await;
    let desk = desk(&told_at(&receiver, "configured", SECRET), TURNS);
    let server = Server::at(&desk).await;
    let configured = async || server.get("/v1/webhook-endpoints").await.1["data"][0]["url"].clone();
    let before = configured().await;

    desk.write("toolgate.yaml", &told_at(&receiver, "elsewhere", ANOTHER));
    let taken = server.url.strip_prefix("http://").unwrap();
    let refused = desk.toolgate(&["serve", "--listen", taken]);

    assert!(refused.code != 0 && refused.err.contains(taken), "{}", refused.err);
    assert_eq!((configured().await, before.as_str().unwrap().ends_with("/configured")), (before, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_on_one_store_announce_each_run_once() {
    let receiver = Receiver::open().await;
    let desk = desk(&told_at(&receiver, "configured", SECRET), TURNS);
    let (first, second) = (Server::at(&desk).await, Server::at(&desk).await);
    let mut runs = BTreeSet::new();
    for _ in 0..10 {
        let (one, other) =
            tokio::join!(first.start(json!({"input": "Hello"})), second.start(json!({"input": "Hello"})));
        runs.extend([one, other]);
    }
    receiver.hears_of("configured", &runs).await;
    // A server that stops waits for its deliveries, so no message arrives later.
    for server in [first, second] {
        server.send(Signal::TERM);
        assert_eq!(server.ended().await, Some(0));
    }
    assert_eq!(receiver.heard("configured").len(), runs.len(), "none twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_in_flight_does_not_block_a_hand_over() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hooks", silent.local_addr().unwrap());
    let config = with_agents("desk: {}").replace("gateway: {", "gateway: { webhook_egress: { loopback: true },");
    let desk =
        desk(&config, "turns: [{ latency_ms: 500, calls: [{ name: nothing }] }, { latency_ms: 500, say: Done. }]");
    let server = Server::at(&desk).await;
    let (_, endpoint) = server.post("/v1/webhook-endpoints", "", json!({"url": url})).await;
    server.post(&format!("/v1/webhook-endpoints/{}/test", endpoint["id"].as_str().unwrap()), "", json!({})).await;
    let (_on_its_way, _) = silent.accept().await.unwrap();
    let run = server.start(json!({"input": "Hello"})).await;

    server.send(Signal::TERM);

    let next = Server::at(&desk).await;
    next.sees(&run, "completed").await;
    let journal = desk.journal(&run);
    assert!(
        journal.iter().any(|fact| fact["type"] == "execution.resumed"),
        "the run was not handed over: {journal:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn reloaded_webhooks_apply_to_a_running_server() {
    let receiver = Receiver::open().await;
    let desk = desk(&with_agents("desk: {}"), TURNS);
    let mut server = Server::at(&desk).await;
    let mut reloads = 0;
    let mut run_with = async |path: &str, secret: &str| {
        desk.write("toolgate.yaml", &told_at(&receiver, path, secret).replace("lease_s: 1", "lease_s: 600"));
        server.send(Signal::HUP);
        reloads += 1;
        server.lines("configuration reloaded", reloads).await;
        let (_, run) = server.post("/v1/runs", "wait=20", json!({"input": "Hello"})).await;
        BTreeSet::from([run["id"].as_str().unwrap().to_owned()])
    };

    let first = run_with("configured", SECRET).await;
    assert_eq!(receiver.hears_of("configured", &first).await[0].secret, Some(SECRET));
    let second = run_with("elsewhere", ANOTHER).await;
    assert_eq!(receiver.hears_of("elsewhere", &second).await[0].secret, Some(ANOTHER));
    assert_eq!(receiver.heard("configured").len(), 1, "a removed endpoint receives nothing");
    let third = run_with("elsewhere", SECRET).await;
    let both = second.union(&third).cloned().collect();
    assert_eq!(receiver.hears_of("elsewhere", &both).await[1].secret, Some(SECRET), "a secret that changed is used");
}
