//! What a gateway needs to send webhooks.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;

use super::egress::WebhookEgress;
use super::wake::Wake;
use super::{following_from, signature};
use crate::core::id::{EndpointId, Tenant};
use crate::ports::{Clock, EndpointSecrets, StoreError, WebhookEndpoint, WebhookKind, Webhooks};
use crate::runner::SystemClock;

const PATIENCE: Duration = Duration::from_secs(15);

/// The store of endpoints and deliveries, and how they are dealt with. Cheap to clone.
#[derive(Clone)]
pub struct Outbound {
    pub(super) store: Arc<dyn Webhooks>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) wake: Wake,
    pub(super) egress: WebhookEgress,
    pub(super) look_every: Duration,
    pub(super) patience: Duration,
}

/// An endpoint of the operator's configuration. It may be anywhere.
#[derive(Clone, Debug)]
pub struct ConfiguredWebhook {
    /// Whose runs it hears of.
    pub tenant: Tenant,
    /// Where messages are posted.
    pub url: String,
    /// `whsec_` and the Base64 of 24 to 64 bytes.
    pub secret: String,
    /// What it wants to hear of; nothing means everything.
    pub events: BTreeSet<WebhookKind>,
}

impl ConfiguredWebhook {
    /// Whether these can be the endpoints of a configuration.
    ///
    /// # Errors
    /// In words, what is wrong with one of them, by its number: its address may hold a token.
    pub fn check(endpoints: &[Self]) -> Result<(), String> {
        for (place, endpoint) in endpoints.iter().enumerate() {
            let number = place + 1;
            endpoint.check_alone().map_err(|why| format!("number {number}: {why}"))?;
            let is_same = |other: &Self| (&other.tenant, &other.url) == (&endpoint.tenant, &endpoint.url);
            if endpoints.iter().take(place).any(is_same) {
                return Err(format!(
                    "number {number} has the tenant and the address of one before it; write one of them"
                ));
            }
        }
        Ok(())
    }

    fn check_alone(&self) -> Result<(), String> {
        let url = Url::parse(&self.url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url.ok_or("this is no HTTP address; write `https://…`")?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err("leave name and password out of the address; messages are signed instead".to_owned());
        }
        signature::brought(&self.secret).map(drop)
    }
}

impl Outbound {
    /// Over a store that also has the journals.
    pub fn new(store: Arc<dyn Webhooks>) -> Self {
        Self {
            store,
            clock: Arc::new(SystemClock),
            wake: Wake::default(),
            egress: WebhookEgress::default(),
            look_every: Duration::from_secs(2),
            patience: PATIENCE,
        }
    }

    /// Time; default: the system's. It has to be the runner's.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// What the runner says when a run comes to rest; without it that is found by looking.
    #[must_use]
    pub fn woken_by(self, wake: Wake) -> Self {
        Self { wake, ..self }
    }

    /// What is let through besides HTTPS to the public internet.
    #[must_use]
    pub fn egress(self, egress: WebhookEgress) -> Self {
        Self { egress, ..self }
    }

    /// How often it is looked for what is to be told and sent; default: every two seconds.
    #[must_use]
    pub fn look_every(self, look_every: Duration) -> Self {
        Self { look_every, ..self }
    }

    /// How long an attempt may take, from looking the name up to the end of the answer; default: 15 seconds.
    #[must_use]
    pub fn patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Puts the endpoints of the configuration in the place of those of the configuration before. What is sent at this
    /// moment still goes where it was going.
    ///
    /// # Errors
    /// As [`ConfiguredWebhook::check`]; or that the store cannot be used.
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
            secrets: EndpointSecrets { current: signature::brought(secret)?, previous: Vec::new() },
            created_at: self.clock.now(),
            configured: true,
            revision: 0,
            failing_since: None,
            disabled: None,
        })
    }
}
