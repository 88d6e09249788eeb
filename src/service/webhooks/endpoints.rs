//! Webhook endpoints of one tenant: finding, changing and testing them. Those of other tenants are out of reach.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, json};
use toolgate_core::error::ErrorCode;
use toolgate_core::id::{EndpointId, MessageId, RunId};
use toolgate_ports::{
    DeliveryFilter, DeliveryState, Disabled, EndpointFilter, EndpointRuns, EndpointSaved, EndpointSecrets,
    WebhookDelivery, WebhookEndpoint, WebhookKind, WebhookSecret,
};
use uuid::Uuid;

use super::webhook_config::WebhookConfig;
use super::{notifications, signature};
use crate::authorize::Caller;
use crate::error::ServiceError;
use crate::error_reason::ErrorReason;
use crate::service::Service;

/// The longest description, in characters.
const LONGEST: usize = 500;

/// How long a previous secret still signs.
const OVERLAP: Duration = Duration::from_secs(24 * 60 * 60);

/// The endpoints of one tenant.
pub struct TenantWebhooks {
    config: Arc<WebhookConfig>,
    caller: Caller,
}

/// An endpoint to create.
#[derive(Debug)]
pub struct NewEndpoint {
    /// The URL that messages are posted to.
    pub url: String,
    /// The events that the endpoint receives; empty means all.
    pub events: BTreeSet<WebhookKind>,
    /// A description for people.
    pub description: Option<String>,
    /// A signing secret of the caller's own. `None`: a new one.
    pub secret: Option<String>,
}

/// Changes to an endpoint. `None` changes nothing.
#[derive(Debug)]
pub struct EndpointChange {
    /// The URL that messages are posted to.
    pub url: Option<String>,
    /// The events that the endpoint receives; empty means all.
    pub events: Option<BTreeSet<WebhookKind>>,
    /// A description for people; an empty text removes it.
    pub description: Option<String>,
    /// Whether messages are sent.
    pub enabled: Option<bool>,
}

impl TenantWebhooks {
    /// The endpoints of the caller's tenant.
    pub fn new(service: &Service, caller: Caller) -> Result<Self, ServiceError> {
        match service.webhook_config() {
            Some(config) => Ok(Self { config, caller }),
            None => Err(ServiceError::no_webhooks()),
        }
    }

    /// A page of the endpoints for all runs, or of the endpoints of one run, oldest first.
    pub async fn page(
        &self,
        run: Option<RunId>,
        after: Option<EndpointId>,
        most: usize,
    ) -> Result<Vec<WebhookEndpoint>, ServiceError> {
        let tenant = Some(self.caller.tenant.clone());
        let runs = run.map_or(EndpointRuns::OfTenant, EndpointRuns::Only);
        let filter = EndpointFilter { id: None, tenant, runs, after, limit: Some(most) };
        Ok(self.config.store.endpoints(&filter).await?)
    }

    /// One of the endpoints.
    pub async fn find(&self, id: &str) -> Result<WebhookEndpoint, ServiceError> {
        let tenant = Some(self.caller.tenant.clone());
        let filter = EndpointFilter { id: Some(id.into()), tenant, ..EndpointFilter::default() };
        let found = self.config.store.endpoints(&filter).await?.pop();
        found.ok_or_else(|| ServiceError::not_found("webhook endpoint", id))
    }

    /// Creates an endpoint, with its secret. A URL has one endpoint: if it exists with the same settings, it is returned
    /// without a secret.
    pub async fn create(&self, new: NewEndpoint) -> Result<(WebhookEndpoint, Option<WebhookSecret>), ServiceError> {
        self.check_url(&new.url)?;
        let description = described(new.description)?;
        let current = secret(new.secret.as_deref())?;
        let brought = new.secret.is_some().then_some(&current);
        let endpoint = WebhookEndpoint {
            id: EndpointId::from(format!("we_{}", Uuid::now_v7().simple())),
            tenant: self.caller.tenant.clone(),
            url: new.url,
            events: new.events,
            description,
            run: None,
            secrets: EndpointSecrets { current: current.clone(), previous: Vec::new() },
            created_at: self.config.clock.now(),
            configured: false,
            revision: 0,
            failing_since: None,
            disabled: None,
        };
        match self.config.store.save(&endpoint).await? {
            EndpointSaved::UrlTaken(there) => {
                must_fit(&there, &endpoint, brought)?;
                Ok((*there, None))
            }
            saved @ (EndpointSaved::Saved | EndpointSaved::Stale | EndpointSaved::LimitReached) => {
                refused(&endpoint, saved)?;
                Ok((endpoint, Some(current)))
            }
        }
    }

    /// Changes an endpoint.
    pub async fn change(&self, id: &str, change: EndpointChange) -> Result<WebhookEndpoint, ServiceError> {
        let mut endpoint = self.find_own(id).await?;
        if let Some(url) = change.url {
            self.check_url(&url)?;
            endpoint.url = url;
        }
        if let Some(events) = change.events {
            endpoint.events = events;
        }
        if change.description.is_some() {
            endpoint.description = described(change.description)?;
        }
        match change.enabled {
            Some(true) if endpoint.disabled.is_some() => (endpoint.disabled, endpoint.failing_since) = (None, None),
            Some(false) if endpoint.disabled.is_none() => {
                let reason = format!("{} disabled it", self.caller.name);
                endpoint.disabled = Some(Disabled { at: self.config.clock.now(), reason });
            }
            Some(_) | None => {}
        }
        self.save(&endpoint).await?;
        self.config.wake.wake();
        Ok(endpoint)
    }

    /// Replaces the secret of an endpoint by the caller's own, or by a new one. The previous secret signs for a day.
    pub async fn rotate(
        &self,
        id: &str,
        brought: Option<&str>,
    ) -> Result<(WebhookEndpoint, WebhookSecret), ServiceError> {
        let mut endpoint = self.find_own(id).await?;
        let current = secret(brought)?;
        let now = self.config.clock.now();
        let until = now.saturating_add(OVERLAP).unwrap_or(now);
        endpoint.secrets = endpoint.secrets.rotated(current.clone(), now, until);
        self.save(&endpoint).await?;
        Ok((endpoint, current))
    }

    /// Deletes an endpoint and the log of its deliveries.
    pub async fn remove(&self, id: &str) -> Result<(), ServiceError> {
        let found = self.find_own(id).await?;
        self.config.store.remove(&found.id).await?;
        Ok(())
    }

    /// Deliveries to an endpoint, newest first.
    pub async fn deliveries(
        &self,
        id: &str,
        after: Option<MessageId>,
        most: usize,
    ) -> Result<Vec<WebhookDelivery>, ServiceError> {
        let endpoint = self.find(id).await?.id;
        let filter = DeliveryFilter { endpoint, id: None, after, limit: most };
        Ok(self.config.store.deliveries(&filter).await?)
    }

    /// Sends a test message.
    pub async fn test(&self, id: &str) -> Result<WebhookDelivery, ServiceError> {
        let endpoint = self.find(id).await?;
        let now = self.config.clock.now();
        let data = Map::from_iter([("endpoint_id".to_owned(), json!(endpoint.id))]);
        let delivery = WebhookDelivery {
            id: MessageId::from(format!("msg_{}", Uuid::now_v7().simple())),
            endpoint: endpoint.id.clone(),
            kind: WebhookKind::Test,
            run: None,
            body: notifications::body(WebhookKind::Test, now, &data),
            created_at: now,
            state: DeliveryState::Waiting { due_at: now },
            tries: 0,
            attempts: Vec::new(),
        };
        self.send_at_once(&endpoint, delivery).await
    }

    /// Sends a message again, with the same id and body.
    pub async fn redeliver(&self, id: &str, delivery: &str) -> Result<WebhookDelivery, ServiceError> {
        let endpoint = self.find(id).await?;
        let filter = DeliveryFilter { endpoint: endpoint.id.clone(), id: Some(delivery.into()), after: None, limit: 1 };
        let found = self.config.store.deliveries(&filter).await?.pop();
        let found = found.ok_or_else(|| ServiceError::not_found("delivery", delivery))?;
        self.send_at_once(&endpoint, found).await
    }

    /// One of the endpoints that the tenant may change.
    async fn find_own(&self, id: &str) -> Result<WebhookEndpoint, ServiceError> {
        let found = self.find(id).await?;
        if found.configured {
            let detail = format!("`{id}` is in the operator's configuration (`gateway.webhooks`): change it there");
            return Err(ServiceError::lasting_conflict(detail));
        }
        Ok(found)
    }

    /// Saves a change, unless another request changed the endpoint first.
    async fn save(&self, endpoint: &WebhookEndpoint) -> Result<(), ServiceError> {
        refused(endpoint, self.config.store.save(endpoint).await?)
    }

    fn check_url(&self, url: &str) -> Result<(), ServiceError> {
        let checked = self.config.egress.check(url);
        checked.map(drop).map_err(|refused| ServiceError::invalid("/url", refused.to_string()))
    }

    /// Makes a delivery due now, with all its attempts.
    async fn send_at_once(
        &self,
        endpoint: &WebhookEndpoint,
        delivery: WebhookDelivery,
    ) -> Result<WebhookDelivery, ServiceError> {
        if endpoint.disabled.is_some() {
            let detail = format!("`{}` is disabled: enable it first (`enabled: true`)", endpoint.id);
            return Err(ServiceError::lasting_conflict(detail));
        }
        let due_at = self.config.clock.now();
        let delivery = WebhookDelivery { state: DeliveryState::Waiting { due_at }, tries: 0, ..delivery };
        if !self.config.store.enqueue(&delivery).await? {
            return Err(ServiceError::not_found("webhook endpoint", endpoint.id.as_str()));
        }
        self.config.wake.wake();
        Ok(delivery)
    }
}

/// Refuses another endpoint for a URL that has one with other settings. Settings that the request leaves out are not
/// compared.
fn must_fit(
    there: &WebhookEndpoint,
    wanted: &WebhookEndpoint,
    brought: Option<&WebhookSecret>,
) -> Result<(), ServiceError> {
    let has_other_secret = brought.is_some_and(|secret| *secret != there.secrets.current);
    let has_other_description = wanted.description.is_some() && wanted.description != there.description;
    if there.events == wanted.events && !has_other_secret && !has_other_description {
        return Ok(());
    }
    let detail = format!(
        "`{}` already posts to this URL, with other settings; change it, rotate its secret, or delete it",
        there.id
    );
    Err(ServiceError::lasting_conflict(detail).with(ErrorReason::UrlTaken))
}

/// The error if an endpoint was not saved.
fn refused(endpoint: &WebhookEndpoint, saved: EndpointSaved) -> Result<(), ServiceError> {
    match saved {
        EndpointSaved::Saved => Ok(()),
        EndpointSaved::Stale => {
            let detail = format!("`{}` was changed at the same time; read it and try again", endpoint.id);
            Err(ServiceError::new(ErrorCode::Conflict, detail).with(ErrorReason::VersionMoved))
        }
        EndpointSaved::UrlTaken(other) => {
            let detail = format!("`{}` already posts to this URL; delete one of them", other.id);
            Err(ServiceError::lasting_conflict(detail).with(ErrorReason::UrlTaken))
        }
        EndpointSaved::LimitReached => {
            let detail = format!("there are already {} webhook endpoints; delete one first", WebhookEndpoint::MOST);
            Err(ServiceError::lasting_conflict(detail).with(ErrorReason::LimitReached))
        }
    }
}

/// The secret that the client provides, or a new one.
fn secret(brought: Option<&str>) -> Result<WebhookSecret, ServiceError> {
    match brought {
        Some(text) => signature::brought(text).map_err(|why| ServiceError::invalid("/secret", why)),
        None => signature::fresh().map_err(|why| ServiceError::new(ErrorCode::Internal, why)),
    }
}

/// A description that is not too long.
fn described(description: Option<String>) -> Result<Option<String>, ServiceError> {
    match description {
        Some(text) if text.chars().count() > LONGEST => {
            Err(ServiceError::invalid("/description", format!("at most {LONGEST} characters")))
        }
        description => Ok(description.filter(|text| !text.is_empty())),
    }
}
