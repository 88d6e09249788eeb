//! What a gateway needs to send webhooks.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::egress::WebhookEgress;
use super::signature;
use super::wake::Wake;
use crate::core::id::{EndpointId, Tenant};
use crate::core::json::hex;
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
    /// In words, what is wrong with one of them; or that the store cannot be used.
    pub async fn configure(&self, endpoints: &[ConfiguredWebhook]) -> Result<(), String> {
        let endpoints: Vec<_> = endpoints.iter().map(|endpoint| self.configured(endpoint)).collect::<Result<_, _>>()?;
        self.store.configure(&endpoints).await.map_err(|error: StoreError| error.to_string())
    }

    fn configured(&self, endpoint: &ConfiguredWebhook) -> Result<WebhookEndpoint, String> {
        let ConfiguredWebhook { tenant, url, secret, events } = endpoint;
        let is_http = reqwest::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        if !is_http {
            return Err(format!("the webhook `{url}` is no HTTP address: write `https://…`"));
        }
        let current = signature::brought(secret).map_err(|why| format!("the webhook `{url}`: {why}"))?;
        let id: String = hex(&Sha256::digest(format!("{tenant}\n{url}"))).chars().take(32).collect();
        Ok(WebhookEndpoint {
            id: EndpointId::from(format!("we_{id}")),
            tenant: tenant.clone(),
            url: url.clone(),
            events: events.clone(),
            description: None,
            secrets: EndpointSecrets { current, previous: Vec::new() },
            created_at: self.clock.now(),
            configured: true,
            revision: 0,
            failing_since: None,
            disabled: None,
        })
    }
}
