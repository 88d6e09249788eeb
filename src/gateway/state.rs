//! The gateway as its handlers share it.

use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::Router;
use utoipa_axum::router::OpenApiRouter;

use super::access::{self, Access, Caller};
use super::builder::{Builder, GatewaySettings};
use super::surroundings::Surroundings;
use super::tenant::TenantRunner;
use super::webhooks::{Dispatcher, Outbound};
use super::{answer, contract, runs, webhooks};
use crate::runner::AgentRunner;

/// An HTTP gateway over a runner. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Gateway {
    inner: Arc<Inner>,
}

struct Inner {
    /// What a changed configuration puts another one in the place of. What is under way keeps the one it began with.
    runner: ArcSwap<AgentRunner>,
    access: Access,
    settings: GatewaySettings,
    surroundings: Arc<dyn Surroundings>,
    webhooks: Option<Outbound>,
}

impl Gateway {
    /// A gateway to be put together.
    pub fn builder(runner: AgentRunner) -> Builder {
        Builder::new(runner)
    }

    pub(super) fn new(
        runner: AgentRunner,
        access: Access,
        settings: GatewaySettings,
        surroundings: Arc<dyn Surroundings>,
        webhooks: Option<Outbound>,
    ) -> Self {
        let runner = ArcSwap::from_pointee(runner);
        Self { inner: Arc::new(Inner { runner, access, settings, surroundings, webhooks }) }
    }

    /// Everything under `/v1`, and the description of it.
    pub fn router(&self) -> Router {
        let (described, api) = api().split_for_parts();
        let let_in = axum::middleware::from_fn_with_state(self.clone(), access::let_in);
        let answered = axum::middleware::from_fn_with_state(self.clone(), answer::finish);
        described
            .layer(let_in)
            .merge(contract::routes(api))
            .fallback(answer::no_such_path)
            .method_not_allowed_fallback(answer::no_such_method)
            .layer(axum::extract::DefaultBodyLimit::max(self.settings().body_bytes))
            .layer(answered)
            .with_state(self.clone())
    }

    /// What is the same for every request.
    pub(super) fn settings(&self) -> &GatewaySettings {
        &self.inner.settings
    }

    pub(super) fn access(&self) -> &Access {
        &self.inner.access
    }

    /// What only adapters know.
    pub(super) fn surroundings(&self) -> &dyn Surroundings {
        &*self.inner.surroundings
    }

    /// What webhooks are sent with.
    pub(super) fn webhooks(&self) -> Option<&Outbound> {
        self.inner.webhooks.as_ref()
    }

    /// The task that tells webhooks of runs, to be run beside the server; `None` without webhooks.
    ///
    /// # Errors
    /// In words, why nothing can be sent.
    pub fn dispatcher(&self) -> Result<Option<Dispatcher>, String> {
        self.webhooks().map(|outbound| Dispatcher::new(self.clone(), outbound.clone())).transpose()
    }

    /// The runner as whoever asks may use it.
    pub(super) fn runner_of(&self, caller: &Caller) -> TenantRunner {
        TenantRunner::new(self.runner(), caller.clone())
    }

    /// The runner itself: for what the gateway does on its own account, for all tenants.
    pub(super) fn runner(&self) -> AgentRunner {
        AgentRunner::clone(&self.inner.runner.load())
    }
}

/// The routes of every folder.
pub(super) fn api() -> OpenApiRouter<Gateway> {
    OpenApiRouter::with_openapi(contract::head()).merge(runs::routes()).merge(webhooks::routes())
}
