//! The gateway's shared state.

use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::Router;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa_axum::router::OpenApiRouter;

use super::access::{self, Access, Caller, Limiter, keys};
use super::backends::Backends;
use super::builder::{Builder, GatewaySettings};
use super::serve::{self, RequestMetrics};
use super::tenant::TenantRunner;
use super::webhooks::{Dispatcher, WebhookConfig};
use super::{
    agents, approvals, grants, health, idempotency, models, openapi, request_id, runs, servers, tools, webhooks,
};
use crate::core::id::RunId;
use crate::ports::IdempotencyStore;
use crate::runner::{Activity, AgentRunner};

/// An HTTP gateway over a runner. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Gateway {
    inner: Arc<Inner>,
}

struct Inner {
    /// A new configuration replaces the runner. Requests and runs in progress keep the one they began with.
    runner: ArcSwap<AgentRunner>,
    access: Access,
    settings: GatewaySettings,
    backends: ArcSwap<Arc<dyn Backends>>,
    request_metrics: RequestMetrics,
    replies: Option<Arc<dyn IdempotencyStore>>,
    webhooks: Option<WebhookConfig>,
    /// Cancelled when the gateway stops.
    stopping: CancellationToken,
    /// Requests that are handled to their end, even if their connections close.
    requests: TaskTracker,
}

impl Gateway {
    /// A builder for a gateway.
    pub fn builder(runner: AgentRunner) -> Builder {
        Builder::new(runner)
    }

    pub(super) fn new(built: Builder) -> Self {
        let access = Access {
            authenticators: built.authenticators,
            keys: built.keys,
            anonymous: built.anonymous,
            origins: built.origins,
            limiter: Limiter::new(&built.settings.limits),
        };
        let inner = Inner {
            runner: ArcSwap::from_pointee(built.runner),
            access,
            settings: built.settings,
            backends: ArcSwap::from_pointee(built.backends),
            request_metrics: built.request_metrics,
            replies: built.replies,
            webhooks: built.webhooks,
            stopping: CancellationToken::new(),
            requests: TaskTracker::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The router of the API under `/v1`, and of its description.
    pub fn router(&self) -> Router {
        let (described, api) = api().split_for_parts();
        let accounted = axum::middleware::from_fn_with_state(self.clone(), serve::access_log);
        let answered = axum::middleware::from_fn_with_state(self.clone(), request_id::finish);
        let everything = access::guarded(idempotency::once(described, self), self)
            .merge(openapi::routes(api))
            .merge(health::routes())
            .fallback(request_id::no_such_path)
            .method_not_allowed_fallback(request_id::no_such_method)
            .layer(axum::extract::DefaultBodyLimit::max(self.settings().body_bytes))
            .layer(CatchPanicLayer::custom(serve::caught));
        access::fenced(everything, self).layer(answered).layer(accounted).with_state(self.clone())
    }

    /// Stops the gateway: new runs are refused, streams close, and the background worker ends. The owner of the runner
    /// drains it.
    pub fn stop(&self) {
        self.inner.stopping.cancel();
    }

    /// Cancelled when the gateway stops.
    pub fn stopping(&self) -> &CancellationToken {
        &self.inner.stopping
    }

    /// Waits for requests that are still handled although their connections are closed. Call it when no connection is
    /// served any more, and before the store closes.
    pub async fn close(&self) {
        self.inner.requests.close();
        self.inner.requests.wait().await;
    }

    /// The tasks of requests that are handled to their end.
    pub(super) fn requests(&self) -> &TaskTracker {
        &self.inner.requests
    }

    /// Replaces the runner with the same one under [another configuration](AgentRunner::reconfigured), together with its
    /// adapters.
    pub fn replace(&self, runner: AgentRunner, backends: Arc<dyn Backends>) {
        self.inner.runner.store(Arc::new(runner));
        self.inner.backends.store(Arc::new(backends));
    }

    /// How many event streams are open.
    pub fn open_streams(&self) -> u64 {
        self.inner.request_metrics.streams()
    }

    /// How many runs are being executed, and how many wait for admission.
    pub fn activity(&self) -> Activity {
        self.inner.runner.load().activity()
    }

    /// How many runs this process found that it cannot execute, because its configuration lacks their agent or server.
    pub fn blocked_runs(&self) -> usize {
        self.inner.runner.load().blocked_runs()
    }

    /// The settings that apply to every request.
    pub(super) fn settings(&self) -> &GatewaySettings {
        &self.inner.settings
    }

    /// The address of a run.
    pub(super) fn address_of(&self, run: &RunId) -> String {
        format!("{}/v1/runs/{run}", self.settings().public_url)
    }

    pub(super) fn access(&self) -> &Access {
        &self.inner.access
    }

    pub(super) fn request_metrics(&self) -> &RequestMetrics {
        &self.inner.request_metrics
    }

    /// The store of idempotency records, if there is one.
    pub(super) fn replies(&self) -> Option<&Arc<dyn IdempotencyStore>> {
        self.inner.replies.as_ref()
    }

    /// The source of information that only adapters have.
    pub(super) fn backends(&self) -> Arc<dyn Backends> {
        Arc::clone(&self.inner.backends.load())
    }

    /// The webhook delivery, if there is one.
    pub(super) fn webhooks(&self) -> Option<&WebhookConfig> {
        self.inner.webhooks.as_ref()
    }

    /// The webhook dispatcher, a task to run beside the server; `None` without webhooks.
    ///
    /// # Errors
    /// A text that says why no webhooks can be sent.
    pub fn dispatcher(&self) -> Result<Option<Dispatcher>, String> {
        self.webhooks().map(|outbound| Dispatcher::new(self.clone(), outbound.clone())).transpose()
    }

    /// The runner, limited to the caller's tenant.
    pub(super) fn runner_of(&self, caller: &Caller) -> TenantRunner {
        TenantRunner::new(self.runner(), caller.clone(), self.settings().four_eyes)
    }

    /// The runner itself, for background work across all tenants.
    pub(super) fn runner(&self) -> AgentRunner {
        AgentRunner::clone(&self.inner.runner.load())
    }
}

/// The routes of every folder.
pub(super) fn api() -> OpenApiRouter<Gateway> {
    OpenApiRouter::with_openapi(openapi::head())
        .merge(runs::routes())
        .merge(approvals::routes())
        .merge(grants::routes())
        .merge(tools::routes())
        .merge(servers::routes())
        .merge(agents::routes())
        .merge(models::routes())
        .merge(webhooks::routes())
        .merge(keys::routes())
}
