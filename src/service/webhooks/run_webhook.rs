//! Webhook of one run: an endpoint that receives the messages of this run alone.
//!
//! The endpoint is stored before the run starts, so that no event is without it, and its id is derived from that of the
//! run, so that a repeated start adds no second one. It is deleted with the run.

use std::collections::BTreeSet;

use toolgate_core::id::{EndpointId, RunId};
use toolgate_ports::{EndpointSecrets, WebhookEndpoint, WebhookKind, WebhookSecret};

use super::derived_id::following_from;
use super::signature;
use super::webhook_config::WebhookConfig;
use crate::authorize::Scope;
use crate::error::ServiceError;
use crate::runs::TenantRunner;

/// A webhook of one run.
#[derive(Debug)]
pub struct RunWebhook {
    /// The URL that messages are posted to.
    pub url: String,
    /// The signing secret. toolgate creates none: no response of a run shows a secret.
    pub secret: WebhookSecret,
    /// The events that are sent; empty means all.
    pub events: BTreeSet<WebhookKind>,
}

impl TenantRunner {
    /// Starts a run with this id, and with its webhook. If the run does not start, no webhook stays.
    ///
    /// The caller needs the scope `webhooks` for it: a run reports to an address that the request chooses.
    pub async fn with_webhook<T>(
        &self,
        run: &RunId,
        webhook: Option<RunWebhook>,
        start: impl Future<Output = Result<T, ServiceError>>,
    ) -> Result<T, ServiceError> {
        let Some(webhook) = webhook else { return start.await };
        self.caller.require(Scope::Webhooks)?;
        let config = self.webhooks.as_deref().ok_or_else(ServiceError::no_webhooks)?;
        let endpoint = self.endpoint(config, run, webhook)?;
        // A repeated start finds the endpoint of the first one.
        config.store.save(&endpoint).await?;
        let started = start.await;
        if started.is_err() && matches!(self.row(run.as_str()).await, Ok(None)) {
            // The sweep of the dispatcher deletes what stays here.
            let _ = config.store.remove(&endpoint.id).await;
        }
        started
    }

    fn endpoint(
        &self,
        config: &WebhookConfig,
        run: &RunId,
        webhook: RunWebhook,
    ) -> Result<WebhookEndpoint, ServiceError> {
        let RunWebhook { url, secret, events } = webhook;
        let at = |member: &str, why: String| ServiceError::invalid(format!("/webhook/{member}"), why);
        config.egress.check(&url).map_err(|refused| at("url", refused.to_string()))?;
        let current = signature::brought(secret.expose()).map_err(|why| at("secret", why))?;
        Ok(WebhookEndpoint {
            id: EndpointId::from(format!("we_{}", following_from(&format!("run\n{run}")))),
            tenant: self.caller.tenant.clone(),
            url,
            events,
            description: None,
            run: Some(run.clone()),
            secrets: EndpointSecrets { current, previous: Vec::new() },
            created_at: config.clock.now(),
            configured: false,
            revision: 0,
            failing_since: None,
            disabled: None,
        })
    }
}
