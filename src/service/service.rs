//! [`Service`]: the runner of the present configuration, and the settings that all surfaces of a process share.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio_util::sync::CancellationToken;
use toolgate_core::address::AllowedClasses;
use toolgate_core::run::Channel;
use toolgate_ports::UsageCounters;
use toolgate_runner::AgentRunner;

use super::authorize::Caller;
use super::file_config::FileConfig;
use super::retention_rule::RetentionRule;
use super::runs::TenantRunner;
use super::webhooks::WebhookConfig;

/// The service over a runner. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Service {
    /// A new configuration replaces the runner. Requests and runs in progress keep the one they began with.
    runner: Arc<ArcSwap<AgentRunner>>,
    four_eyes: bool,
    /// The addresses that media URLs may lead to.
    media_hosts: AllowedClasses,
    webhooks: Option<Arc<WebhookConfig>>,
    retention: Vec<RetentionRule>,
    usage: Option<Arc<dyn UsageCounters>>,
    files: Option<Arc<FileConfig>>,
    /// Cancelled when the process stops.
    stopping: CancellationToken,
}

impl Service {
    /// A service over a runner.
    pub fn new(runner: AgentRunner) -> Self {
        Self {
            runner: Arc::new(ArcSwap::from_pointee(runner)),
            four_eyes: false,
            media_hosts: AllowedClasses::default(),
            webhooks: None,
            retention: Vec::new(),
            usage: None,
            files: None,
            stopping: CancellationToken::new(),
        }
    }

    /// Sets whether the caller who started a run may not approve its calls. Default: it may.
    #[must_use]
    pub fn four_eyes(self, four_eyes: bool) -> Self {
        Self { four_eyes, ..self }
    }

    /// Sets the classes of addresses that media URLs may lead to besides the public internet. Default: no further ones.
    #[must_use]
    pub fn media_hosts(self, media_hosts: AllowedClasses) -> Self {
        Self { media_hosts, ..self }
    }

    /// Sets the webhook delivery; without it, there are no webhooks.
    #[must_use]
    pub fn webhooks(self, webhooks: WebhookConfig) -> Self {
        Self { webhooks: Some(Arc::new(webhooks)), ..self }
    }

    /// Sets the rules by which the [`Worker`](super::Worker) deletes ended runs. Default: it deletes none.
    #[must_use]
    pub fn retention(self, retention: Vec<RetentionRule>) -> Self {
        Self { retention, ..self }
    }

    /// Sets the counters of the runner's store, to show callers their quotas. The store itself counts and refuses.
    #[must_use]
    pub fn usage(self, counters: Arc<dyn UsageCounters>) -> Self {
        Self { usage: Some(counters), ..self }
    }

    /// Sets the store of files; without it, callers cannot upload any.
    #[must_use]
    pub fn files(self, files: FileConfig) -> Self {
        Self { files: Some(Arc::new(files)), ..self }
    }

    /// The runner, limited to the tenant of a caller. `via`: where the caller decides, for the journal.
    pub fn for_caller(&self, caller: Caller, via: Channel) -> TenantRunner {
        let Self { four_eyes, media_hosts, .. } = *self;
        let (webhooks, files) = (self.webhook_config(), self.files.clone());
        TenantRunner { runner: self.runner(), caller, via, four_eyes, media_hosts, webhooks, files }
    }

    /// The runner itself, for work across all tenants.
    pub fn runner(&self) -> AgentRunner {
        AgentRunner::clone(&self.runner.load())
    }

    /// Replaces the runner with the same one under [another configuration](AgentRunner::reconfigured).
    pub fn replace(&self, runner: AgentRunner) {
        self.runner.store(Arc::new(runner));
    }

    /// Stops the service: streams close, and the background worker ends. The owner of the runner drains it.
    pub fn stop(&self) {
        self.stopping.cancel();
    }

    /// Cancelled when the service stops.
    pub fn stopping(&self) -> &CancellationToken {
        &self.stopping
    }

    pub(crate) fn retention_rules(&self) -> Vec<RetentionRule> {
        self.retention.clone()
    }

    /// The counters of the store, if it has some.
    pub(crate) fn usage_counters(&self) -> Option<&Arc<dyn UsageCounters>> {
        self.usage.as_ref()
    }

    /// The store of files, if there is one.
    pub fn file_config(&self) -> Option<&FileConfig> {
        self.files.as_deref()
    }

    /// The webhook delivery, if there is one.
    pub(crate) fn webhook_config(&self) -> Option<Arc<WebhookConfig>> {
        self.webhooks.clone()
    }
}

impl From<AgentRunner> for Service {
    fn from(runner: AgentRunner) -> Self {
        Self::new(runner)
    }
}
