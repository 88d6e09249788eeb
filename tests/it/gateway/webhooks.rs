//! Webhooks as their receivers see them: real HTTP, signatures checked by independent code, endpoints that misbehave.

mod announcements;
mod endpoints;
mod failing_endpoints;
mod of_runs;
mod peers;
mod process;
mod process_crash;
mod receiver;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolgate::core::address::AllowedClasses;
use toolgate::gateway::Gateway;
use toolgate::ports::Clock;
use toolgate::service::{Caller, Scopes, Service, WebhookConfig, WebhookEgress};

use self::receiver::Receiver;
use super::served::{HttpAnswer, Served};
use crate::fakes::FakeClock;
use crate::runner::world::World;

/// The runner's clock, which can be advanced: sleeping takes almost no time, whatever its duration.
struct Ahead {
    clock: Arc<FakeClock>,
    seconds: AtomicI64,
}

impl Ahead {
    fn by(&self, seconds: i64) {
        self.seconds.fetch_add(seconds, Ordering::SeqCst);
    }
}

#[async_trait]
impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        self.clock.now() + Duration::from_secs(self.seconds.load(Ordering::SeqCst).unsigned_abs())
    }

    async fn sleep(&self, _duration: Duration) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A gateway that sends webhooks.
struct Hooked {
    served: Served,
    clock: Arc<Ahead>,
    outbound: WebhookConfig,
    stop: CancellationToken,
    dispatching: JoinSet<()>,
}

/// Webhooks may go to this machine, where the receivers are.
const HERE: WebhookEgress = WebhookEgress { http: false, classes: AllowedClasses { private: false, loopback: true } };

/// How many endpoints were added.
static ADDED: AtomicUsize = AtomicUsize::new(0);

impl Hooked {
    async fn with(world: World) -> Self {
        Self::within(world, HERE).await
    }

    async fn within(world: World, egress: WebhookEgress) -> Self {
        let mut hooked = Self::quiet(world, egress).await;
        hooked.dispatch();
        hooked
    }

    /// Without a dispatcher yet.
    async fn quiet(world: World, egress: WebhookEgress) -> Self {
        Self::quiet_with_patience(world, egress, Duration::from_millis(400)).await
    }

    /// With a timeout longer than any test.
    async fn patient(world: World) -> Self {
        let mut hooked = Self::quiet_with_patience(world, HERE, Duration::from_secs(60 * 60)).await;
        hooked.dispatch();
        hooked
    }

    async fn quiet_with_patience(world: World, egress: WebhookEgress, patience: Duration) -> Self {
        let clock = Arc::new(Ahead { clock: world.clock.clone(), seconds: AtomicI64::new(0) });
        let outbound = WebhookConfig::new(world.webhooks()).clock(clock.clone()).egress(egress).timeout(patience);
        let service = Service::new(world.runner.clone()).webhooks(outbound.clone());
        let served = Served::over(service, world, |builder| builder.anonymous(Caller::local())).await;
        Self { served, clock, outbound, stop: CancellationToken::new(), dispatching: JoinSet::new() }
    }

    /// Starts one more dispatcher, like that of another process.
    fn dispatch(&mut self) {
        let gateway = self.served.gateway.clone();
        self.dispatch_of(&gateway);
    }

    fn dispatch_of(&mut self, gateway: &Gateway) {
        let dispatcher = gateway.service().dispatcher().unwrap().expect("it sends webhooks");
        self.dispatching.spawn(dispatcher.run(self.stop.clone()));
    }

    /// The same API for a caller of another tenant.
    fn of_tenant(&self, tenant: &str) -> Gateway {
        let caller = Caller { tenant: tenant.into(), name: tenant.into(), principal: None, scopes: Scopes::all() };
        let service = Service::new(self.served.world.runner.clone()).webhooks(self.outbound.clone());
        Gateway::builder(service).anonymous(caller).build()
    }

    /// Adds the receiver as an endpoint and returns its id.
    async fn add(&self, receiver: &Receiver, events: &[&str]) -> String {
        // A URL has one endpoint.
        let url = format!("{}?n={}", receiver.url(), ADDED.fetch_add(1, Ordering::Relaxed));
        let created = self.served.post("/v1/webhook-endpoints", json!({"url": url, "events": events})).await;
        assert_eq!(created.status, 201, "{created:?}");
        receiver.learn(created.text("secret"));
        created.text("id").to_owned()
    }

    async fn deliveries(&self, endpoint: &str) -> Vec<Value> {
        let listed = self.served.get(&format!("/v1/webhook-endpoints/{endpoint}/deliveries?limit=100")).await;
        listed.body["data"].as_array().unwrap_or_else(|| panic!("{listed:?}")).clone()
    }

    /// The newest delivery, once a condition holds.
    async fn delivery(&self, endpoint: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        until(async || self.deliveries(endpoint).await.into_iter().next().filter(&is_so)).await
    }

    /// Whether every event was announced, and delivered or failed.
    async fn has_nothing_to_send(&self) -> bool {
        let store = self.served.world.webhooks();
        let ever = self.clock.now() + Duration::from_secs(100 * 24 * 60 * 60);
        store.unannounced(1).await.unwrap().is_empty() && store.due(ever).await.unwrap().is_empty()
    }

    async fn endpoint(&self, endpoint: &str) -> HttpAnswer {
        self.served.get(&format!("/v1/webhook-endpoints/{endpoint}")).await
    }
}

/// Repeats a question until there is an answer.
async fn until<T>(ask: impl AsyncFn() -> Option<T>) -> T {
    let asking = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), asking).await.expect("the condition becomes true")
}
