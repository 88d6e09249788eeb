//! A process without fakes: a runner and a gateway over a file, as real as one that is killed has to be.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::net::TcpListener;
use toolgate::gateway::Gateway;
use toolgate::ports::{EndpointSecrets, WebhookEndpoint, WebhookSecret};
use toolgate::runner::AgentRunner;
use toolgate::service::{Caller, Dispatcher, Service, WebhookConfig};
use toolgate::stores::{Durability, SqliteStore};

use super::HERE;
use crate::runner::world::{given_an_agent, say};

pub(super) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

pub(super) struct Process {
    pub(super) store: Arc<SqliteStore>,
    pub(super) runner: AgentRunner,
    gateway: Gateway,
}

impl Process {
    pub(super) async fn on(directory: &Path) -> Self {
        let store =
            SqliteStore::open_with_durability(&directory.join("runs.db"), Durability::ProcessCrash).await.unwrap();
        let store = Arc::new(store);
        let agent = given_an_agent().whose_model_says(json!([say("Done.")])).agent();
        let runner = AgentRunner::builder().store(store.clone()).agent(agent).build().unwrap();
        let outbound = WebhookConfig::new(store.clone()).egress(HERE).look_every(Duration::from_millis(5));
        let gateway =
            Gateway::builder(Service::new(runner.clone()).webhooks(outbound)).anonymous(Caller::local()).build();
        Self { store, runner, gateway }
    }

    /// Serves the gateway until the test ends; returns its address.
    pub(super) async fn serve(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let router = self.gateway.router();
        tokio::spawn(async move { axum::serve(listener, router).await });
        address
    }

    pub(super) fn dispatcher(&self) -> Dispatcher {
        self.gateway.service().dispatcher().unwrap().expect("it sends webhooks")
    }
}

/// An endpoint that receives all events, as the store has it.
pub(super) fn endpoint(url: String) -> WebhookEndpoint {
    WebhookEndpoint {
        id: "we_1".into(),
        tenant: Default::default(),
        url,
        events: [].into(),
        description: None,
        run: None,
        secrets: EndpointSecrets { current: WebhookSecret::new(SECRET), previous: Vec::new() },
        created_at: jiff::Timestamp::UNIX_EPOCH,
        configured: false,
        revision: 0,
        failing_since: None,
        disabled: None,
    }
}
