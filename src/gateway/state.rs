//! Shared state of the gateway: what every handler and every layer of its middleware may use.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::backends::Backends;
use super::request_metrics::RequestMetrics;
use super::settings::GatewaySettings;
use super::webhooks::webhook_config::WebhookConfig;
use crate::core::id::RunId;
use crate::core::run::Channel;
use crate::gateway::access::Access;
use crate::ports::IdempotencyStore;
use crate::runner::{Activity, AgentRunner};
use crate::service::{Caller, TenantRunner};

/// An HTTP gateway over a runner. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Gateway {
    shared: Arc<Shared>,
}

/// The parts of a gateway, which its clones share.
pub(super) struct Shared {
    /// A new configuration replaces the runner. Requests and runs in progress keep the one they began with.
    pub(super) runner: ArcSwap<AgentRunner>,
    pub(super) access: Access,
    pub(super) settings: GatewaySettings,
    pub(super) backends: ArcSwap<Arc<dyn Backends>>,
    pub(super) request_metrics: RequestMetrics,
    pub(super) replies: Option<Arc<dyn IdempotencyStore>>,
    pub(super) webhooks: Option<WebhookConfig>,
    /// Cancelled when the gateway stops.
    pub(super) stopping: CancellationToken,
    /// Requests that are handled to their end, even if their connections close.
    pub(super) requests: TaskTracker,
}

impl Gateway {
    pub(super) fn new(shared: Shared) -> Self {
        Self { shared: Arc::new(shared) }
    }

    /// Stops the gateway: new runs are refused, streams close, and the background worker ends. The owner of the runner
    /// drains it.
    pub fn stop(&self) {
        self.shared.stopping.cancel();
    }

    /// Cancelled when the gateway stops.
    pub fn stopping(&self) -> &CancellationToken {
        &self.shared.stopping
    }

    /// Waits for requests that are still handled although their connections are closed. Call it when no connection is
    /// served any more, and before the store closes.
    pub async fn close(&self) {
        self.shared.requests.close();
        self.shared.requests.wait().await;
    }

    /// The tasks of requests that are handled to their end.
    pub(super) fn requests(&self) -> &TaskTracker {
        &self.shared.requests
    }

    /// Replaces the runner with the same one under [another configuration](AgentRunner::reconfigured), together with its
    /// adapters.
    pub fn replace(&self, runner: AgentRunner, backends: Arc<dyn Backends>) {
        self.shared.runner.store(Arc::new(runner));
        self.shared.backends.store(Arc::new(backends));
    }

    /// How many event streams are open.
    pub fn open_streams(&self) -> u64 {
        self.shared.request_metrics.streams()
    }

    /// How many runs are being executed, and how many wait for admission.
    pub fn activity(&self) -> Activity {
        self.shared.runner.load().activity()
    }

    /// The settings that apply to every request.
    pub(super) fn settings(&self) -> &GatewaySettings {
        &self.shared.settings
    }

    /// The address of a run.
    pub(super) fn address_of(&self, run: &RunId) -> String {
        format!("{}/v1/runs/{run}", self.settings().public_url)
    }

    pub(super) fn access(&self) -> &Access {
        &self.shared.access
    }

    pub(super) fn request_metrics(&self) -> &RequestMetrics {
        &self.shared.request_metrics
    }

    /// The store of idempotency records, if there is one.
    pub(super) fn replies(&self) -> Option<&Arc<dyn IdempotencyStore>> {
        self.shared.replies.as_ref()
    }

    /// The source of information that only adapters have.
    pub(super) fn backends(&self) -> Arc<dyn Backends> {
        Arc::clone(&self.shared.backends.load())
    }

    /// The webhook delivery, if there is one.
    pub(super) fn webhooks(&self) -> Option<&WebhookConfig> {
        self.shared.webhooks.as_ref()
    }

    /// The runner, limited to the caller's tenant.
    pub(super) fn runner_of(&self, caller: &Caller) -> TenantRunner {
        TenantRunner::new(self.runner(), caller.clone(), Channel::Api, self.settings().four_eyes)
    }

    /// The runner itself, for background work across all tenants.
    pub(super) fn runner(&self) -> AgentRunner {
        AgentRunner::clone(&self.shared.runner.load())
    }
}
