//! Webhook configuration.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use toolgate_core::id::{EndpointId, Tenant};
use toolgate_ports::{Clock, EndpointSecrets, StoreError, WebhookEndpoint, WebhookKind, Webhooks};
use toolgate_runner::SystemClock;

use super::derived_id::following_from;
use super::egress::WebhookEgress;
use super::signature;
use super::wake_signal::WebhookWakeSignal;

/// The store of endpoints and deliveries, and the settings of their delivery. Cheap to clone.
#[derive(Clone)]
pub struct WebhookConfig {
    pub(super) store: Arc<dyn Webhooks>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) wake: WebhookWakeSignal,
    pub(super) egress: WebhookEgress,
    pub(super) look_every: Duration,
    pub(super) timeout: Duration,
}

/// A webhook endpoint of the operator's configuration. Its address may be anywhere.
#[derive(Clone, Debug)]
pub struct ConfiguredWebhook {
    /// The tenant whose runs the endpoint receives events of.
    pub tenant: Tenant,
    /// The URL that messages are posted to.
    pub url: String,
    /// The signing secret: `whsec_` and the Base64 of 24 to 64 bytes.
    pub secret: String,
    /// The events that the endpoint receives; empty means all.
    pub events: BTreeSet<WebhookKind>,
}

impl ConfiguredWebhook {
    /// Validates the endpoints of a configuration.
    ///
    /// # Errors
    /// A text that says what is wrong with an endpoint. It names the endpoint by its number, because its address may
    /// hold a token.
    pub fn check(endpoints: &[Self]) -> Result<(), String> {
        for (place, endpoint) in endpoints.iter().enumerate() {
            let number = place + 1;
            endpoint.check_alone().map_err(|why| format!("number {number}: {why}"))?;
            let is_same = |other: &Self| (&other.tenant, &other.url) == (&endpoint.tenant, &endpoint.url);
            if endpoints.iter().take(place).any(is_same) {
                return Err(format!(
                    "number {number} has the tenant and the address of an earlier one; remove one of them"
                ));
            }
        }
        Ok(())
    }

    fn check_alone(&self) -> Result<(), String> {
        let url = Url::parse(&self.url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url.ok_or("this is not an HTTP address; write `https://…`")?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err("leave name and password out of the address; messages are signed instead".to_owned());
        }
        signature::brought(&self.secret).map(drop)
    }
}

impl WebhookConfig {
    /// Webhook delivery over a store that also has the journals.
    pub fn new(store: Arc<dyn Webhooks>) -> Self {
        Self {
            store,
            clock: Arc::new(SystemClock),
            wake: WebhookWakeSignal::default(),
            egress: WebhookEgress::default(),
            look_every: Duration::from_secs(2),
            timeout: Duration::from_secs(15),
        }
    }

    /// Sets the clock. Default: the system's. It has to be the runner's.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Sets the wake signal of the runner; without it, the dispatcher finds runs only by polling.
    #[must_use]
    pub fn wake_signal(self, wake: WebhookWakeSignal) -> Self {
        Self { wake, ..self }
    }

    /// Sets the destinations that are allowed besides HTTPS to the public internet.
    #[must_use]
    pub fn egress(self, egress: WebhookEgress) -> Self {
        Self { egress, ..self }
    }

    /// Sets the polling interval. Default: two seconds.
    #[must_use]
    pub fn look_every(self, look_every: Duration) -> Self {
        Self { look_every, ..self }
    }

    /// Sets the timeout of an attempt, from the name lookup to the end of the response. Default: 15 seconds.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Replaces the endpoints of the previous configuration with those of this one. Messages in progress still go to
    /// their old address.
    ///
    /// # Errors
    /// Those of [`ConfiguredWebhook::check`], or that the store is not available.
    pub async fn configure(&self, endpoints: &[ConfiguredWebhook]) -> Result<(), String> {
        ConfiguredWebhook::check(endpoints)?;
        let endpoints: Vec<_> = endpoints.iter().map(|endpoint| self.configured(endpoint)).collect::<Result<_, _>>()?;
        self.store.configure(&endpoints).await.map_err(|error: StoreError| error.to_string())
    }

    fn configured(&self, endpoint: &ConfiguredWebhook) -> Result<WebhookEndpoint, String> {
        let ConfiguredWebhook { tenant, url, secret, events } = endpoint;
        Ok(WebhookEndpoint {
            id: EndpointId::from(format!("we_{}", following_from(&format!("{tenant}\n{url}")))),
            tenant: tenant.clone(),
            url: url.clone(),
            events: events.clone(),
            description: None,
            run: None,
            secrets: EndpointSecrets { current: signature::brought(secret)?, previous: Vec::new() },
            created_at: self.clock.now(),
            configured: true,
            revision: 0,
            failing_since: None,
            disabled: None,
        })
    }
}
