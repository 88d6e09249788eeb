//! Gateway builder.

use std::sync::Arc;
use std::time::Duration;

use super::access::{ApiKeyAuthenticator, Authenticator, Caller, Limits, Origins};
use super::backends::{Backends, NoBackends};
use super::runs::MediaHosts;
use super::serve::RequestMetrics;
use super::state::Gateway;
use super::webhooks::WebhookConfig;
use crate::ports::{AccessKeys, IdempotencyStore, RequestMeter};
use crate::runner::AgentRunner;

/// Settings that apply to every request.
#[derive(Clone, Debug)]
pub struct GatewaySettings {
    /// The gateway's public address, without a trailing slash: the prefix of `Location` and of the `type` of problems.
    /// Default: empty, so that they are paths.
    pub public_url: String,
    /// The largest body, in bytes.
    pub body_bytes: usize,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// The limits of one caller. Default: no limits.
    pub limits: Limits,
    /// How long a request waits for a run by default, until it is pending or has ended.
    pub usual_wait: Duration,
    /// The longest wait that a request can ask for.
    pub longest_wait: Duration,
    /// How often an idle stream sends a heartbeat.
    pub heartbeat: Duration,
    /// How often the credentials of an open stream are checked again.
    pub recheck: Duration,
    /// How often a stream polls the journal of a run that another process drives.
    pub poll: Duration,
    /// Hosts of media URLs that are allowed besides those of the public internet. Default: no further hosts.
    pub media_hosts: MediaHosts,
    /// Whether the caller who started a run may not approve its calls.
    pub four_eyes: bool,
}

impl Default for GatewaySettings {
    fn default() -> Self {
        Self {
            public_url: String::new(),
            body_bytes: 4 * 1024 * 1024,
            body_timeout: Duration::from_secs(30),
            limits: Limits::default(),
            usual_wait: Duration::from_secs(300),
            longest_wait: Duration::from_secs(300),
            heartbeat: Duration::from_secs(15),
            recheck: Duration::from_secs(5),
            poll: Duration::from_secs(1),
            media_hosts: MediaHosts::default(),
            four_eyes: false,
        }
    }
}

/// Collects the parts of a gateway besides its runner.
pub struct Builder {
    pub(super) runner: AgentRunner,
    pub(super) settings: GatewaySettings,
    pub(super) authenticators: Vec<Arc<dyn Authenticator>>,
    pub(super) keys: Option<Arc<ApiKeyAuthenticator>>,
    pub(super) anonymous: Option<Caller>,
    pub(super) origins: Option<Origins>,
    pub(super) backends: Arc<dyn Backends>,
    pub(super) request_metrics: RequestMetrics,
    pub(super) replies: Option<Arc<dyn IdempotencyStore>>,
    pub(super) webhooks: Option<WebhookConfig>,
}

impl Builder {
    pub(super) fn new(runner: AgentRunner) -> Self {
        Self {
            runner,
            settings: GatewaySettings::default(),
            authenticators: Vec::new(),
            keys: None,
            anonymous: None,
            origins: None,
            backends: Arc::new(NoBackends),
            request_metrics: RequestMetrics::default(),
            replies: None,
            webhooks: None,
        }
    }

    /// Sets the settings that apply to every request.
    #[must_use]
    pub fn settings(mut self, settings: GatewaySettings) -> Self {
        self.settings = settings;
        self
    }

    /// Adds an authenticator; authenticators are tried in the order they were added.
    #[must_use]
    pub fn door(mut self, door: Arc<dyn Authenticator>) -> Self {
        self.authenticators.push(door);
        self
    }

    /// Adds authentication by API key, and `/v1/keys` to manage keys.
    #[must_use]
    pub fn keys(mut self, store: Arc<dyn AccessKeys>) -> Self {
        let door = Arc::new(ApiKeyAuthenticator::new(store));
        self.keys = Some(door.clone());
        self.door(door)
    }

    /// Sets the rules for browsers. Without them, the application that nests the router is responsible.
    #[must_use]
    pub fn origins(mut self, origins: Origins) -> Self {
        self.origins = Some(origins);
        self
    }

    /// Sets the store of idempotency records; without it, requests with an idempotency key are refused.
    #[must_use]
    pub fn replies(mut self, store: Arc<dyn IdempotencyStore>) -> Self {
        self.replies = Some(store);
        self
    }

    /// Sets the caller for requests without credentials; without it, such requests are refused.
    #[must_use]
    pub fn anonymous(mut self, caller: Caller) -> Self {
        self.anonymous = Some(caller);
        self
    }

    /// Sets the source of information that only adapters have.
    #[must_use]
    pub fn backends(mut self, backends: Arc<dyn Backends>) -> Self {
        self.backends = backends;
        self
    }

    /// Sets the meter for requests.
    #[must_use]
    pub fn measured(mut self, meter: Arc<dyn RequestMeter>) -> Self {
        self.request_metrics.meter = Some(meter);
        self
    }

    /// Sets the webhook delivery; without it, the gateway has no webhooks.
    #[must_use]
    pub fn webhooks(mut self, webhooks: WebhookConfig) -> Self {
        self.webhooks = Some(webhooks);
        self
    }

    /// Builds the gateway.
    pub fn build(self) -> Gateway {
        Gateway::new(self)
    }
}
