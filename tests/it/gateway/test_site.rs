//! A gateway served as `toolgate serve` serves it: over its own connections, with its background worker.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use reqwest::{Client, Method};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolgate::gateway::{Gateway, ServeSettings, serve};
use toolgate::runner::AgentRunner;
use toolgate::service::{Caller, Worker};

use super::served::HttpAnswer;

pub(super) struct Site {
    pub(super) runner: AgentRunner,
    pub(super) gateway: Gateway,
    pub(super) address: SocketAddr,
    pub(super) closing: CancellationToken,
    pub(super) serving: JoinSet<()>,
    pub(super) rest: Option<Worker>,
    client: Client,
}

impl Site {
    pub(super) async fn over(runner: AgentRunner) -> Self {
        Self::with(runner, ServeSettings::default(), |router| router).await
    }

    pub(super) async fn with(
        runner: AgentRunner,
        settings: ServeSettings,
        change: impl FnOnce(axum::Router) -> axum::Router,
    ) -> Self {
        Self::of(Gateway::builder(runner).anonymous(Caller::local()).build(), settings, change).await
    }

    pub(super) async fn serving(gateway: Gateway, settings: ServeSettings) -> Self {
        Self::of(gateway, settings, |router| router).await
    }

    async fn of(gateway: Gateway, settings: ServeSettings, change: impl FnOnce(axum::Router) -> axum::Router) -> Self {
        let runner = gateway.service().runner();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, closing) = (listener.local_addr().unwrap(), CancellationToken::new());
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, change(gateway.router()), settings, closing.clone()));
        let rest = Some(Worker::begin(gateway.service()).unwrap());
        Self { runner, gateway, address, closing, serving, rest, client: Client::new() }
    }

    pub(super) async fn get(&self, path: &str) -> HttpAnswer {
        HttpAnswer::of(self.client.get(format!("http://{}{path}", self.address)).send().await.unwrap()).await
    }

    pub(super) async fn post(&self, path: &str, body: Value) -> HttpAnswer {
        self.post_preferring("wait=30", path, body).await
    }

    pub(super) async fn post_preferring(&self, preference: &str, path: &str, body: Value) -> HttpAnswer {
        let request = self.client.request(Method::POST, format!("http://{}{path}", self.address));
        HttpAnswer::of(request.header("prefer", preference).json(&body).send().await.unwrap()).await
    }
}

/// Waits until a condition holds, and fails after a while.
pub(super) async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < Duration::from_secs(20), "the condition never became true");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
