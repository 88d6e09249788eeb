//! `GET` and `DELETE /v1/webhook-endpoints/{endpoint}`, and the operations that all handlers share: finding an endpoint
//! of the caller's tenant, saving it, and sending to it.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use super::signature;
use super::view::{DeliveryView, EndpointView};
use super::webhook_config::WebhookConfig;
use crate::core::error::ErrorCode;
use crate::core::id::EndpointId;
use crate::gateway::access::Authenticated;
use crate::gateway::body::Path;
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::state::Gateway;
use crate::ports::{DeliveryState, EndpointFilter, EndpointSaved, WebhookDelivery, WebhookEndpoint, WebhookSecret};
use crate::service::{Caller, Scope, ServiceError};

/// The longest description, in characters.
const LONGEST: usize = 500;

/// The endpoints of one tenant. Those of other tenants are out of reach.
pub(super) struct Endpoints<'a> {
    pub(super) outbound: &'a WebhookConfig,
    pub(super) caller: Caller,
}

/// Retrieve a webhook endpoint
#[utoipa::path(
    get, path = "/v1/webhook-endpoints/{endpoint}", tag = "webhooks", operation_id = "readWebhookEndpoint",
    params(("endpoint" = String, Path, description = "The endpoint")),
    responses(
        (status = 200, description = "The endpoint, without its secret", body = EndpointView),
        (status = "default", description = "The request was refused", body = ProblemView, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn read(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Path(endpoint): Path<String>,
) -> Result<Json<EndpointView>, Problem> {
    caller.require(Scope::Webhooks)?;
    let found = Endpoints::of(&gateway, caller)?.find(&endpoint).await?;
    Ok(Json(EndpointView::of(found)))
}

/// Delete a webhook endpoint
///
/// Deletes the endpoint and the log of its deliveries. No more messages are sent to it.
#[utoipa::path(
    delete, path = "/v1/webhook-endpoints/{endpoint}", tag = "webhooks", operation_id = "removeWebhookEndpoint",
    params(("endpoint" = String, Path, description = "The endpoint")),
    responses(
        (status = 204, description = "The endpoint is deleted"),
        (status = "default", description = "The request was refused", body = ProblemView, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn remove(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Path(endpoint): Path<String>,
) -> Result<StatusCode, Problem> {
    caller.require(Scope::Webhooks)?;
    let endpoints = Endpoints::of(&gateway, caller)?;
    let found = endpoints.find_own(&endpoint).await?;
    endpoints.outbound.store.remove(&found.id).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl<'a> Endpoints<'a> {
    /// The endpoints of the caller's tenant.
    pub(super) fn of(gateway: &'a Gateway, caller: Caller) -> Result<Self, ServiceError> {
        match gateway.webhooks() {
            Some(outbound) => Ok(Self { outbound, caller }),
            None => Err(ServiceError::new(ErrorCode::Unavailable, "this gateway has no webhooks")),
        }
    }

    /// A page of the endpoints, oldest first.
    pub(super) async fn page(
        &self,
        after: Option<EndpointId>,
        most: usize,
    ) -> Result<Vec<WebhookEndpoint>, ServiceError> {
        let tenant = Some(self.caller.tenant.clone());
        let filter = EndpointFilter { id: None, tenant, after, limit: Some(most) };
        Ok(self.outbound.store.endpoints(&filter).await?)
    }

    /// One of the endpoints.
    pub(super) async fn find(&self, id: &str) -> Result<WebhookEndpoint, ServiceError> {
        let tenant = Some(self.caller.tenant.clone());
        let filter = EndpointFilter { id: Some(id.into()), tenant, ..EndpointFilter::default() };
        let found = self.outbound.store.endpoints(&filter).await?.pop();
        found.ok_or_else(|| ServiceError::not_found("webhook endpoint", id))
    }

    /// One of the endpoints that the tenant may change.
    pub(super) async fn find_own(&self, id: &str) -> Result<WebhookEndpoint, ServiceError> {
        let found = self.find(id).await?;
        if found.configured {
            let detail = format!("`{id}` is in the operator's configuration (`gateway.webhooks`): change it there");
            return Err(ServiceError::lasting_conflict(detail));
        }
        Ok(found)
    }

    /// Adds an endpoint, or returns the existing one of its URL.
    pub(super) async fn add(&self, endpoint: &WebhookEndpoint) -> Result<Option<WebhookEndpoint>, ServiceError> {
        match self.outbound.store.save(endpoint).await? {
            EndpointSaved::UrlTaken(there) => Ok(Some(*there)),
            saved @ (EndpointSaved::Saved | EndpointSaved::Stale | EndpointSaved::LimitReached) => {
                refused(endpoint, saved).map(|()| None)
            }
        }
    }

    /// Saves a change, unless another request changed the endpoint first.
    pub(super) async fn save(&self, endpoint: &WebhookEndpoint) -> Result<(), ServiceError> {
        refused(endpoint, self.outbound.store.save(endpoint).await?)
    }

    /// Makes a delivery due now, with all its attempts.
    pub(super) async fn send_at_once(
        &self,
        endpoint: &WebhookEndpoint,
        delivery: WebhookDelivery,
    ) -> Result<DeliveryView, ServiceError> {
        if endpoint.disabled.is_some() {
            let detail = format!("`{}` is disabled: enable it first (`enabled: true`)", endpoint.id);
            return Err(ServiceError::lasting_conflict(detail));
        }
        let due_at = self.outbound.clock.now();
        let delivery = WebhookDelivery { state: DeliveryState::Waiting { due_at }, tries: 0, ..delivery };
        if !self.outbound.store.enqueue(&delivery).await? {
            return Err(ServiceError::not_found("webhook endpoint", endpoint.id.as_str()));
        }
        self.outbound.wake.wake();
        Ok(DeliveryView::of(delivery))
    }
}

/// The problem if an endpoint was not saved.
fn refused(endpoint: &WebhookEndpoint, saved: EndpointSaved) -> Result<(), ServiceError> {
    match saved {
        EndpointSaved::Saved => Ok(()),
        EndpointSaved::Stale => {
            let detail = format!("`{}` was changed at the same time; read it and try again", endpoint.id);
            Err(ServiceError::new(ErrorCode::Conflict, detail))
        }
        EndpointSaved::UrlTaken(other) => {
            let detail = format!("`{}` already posts to this URL; delete one of them", other.id);
            Err(ServiceError::lasting_conflict(detail))
        }
        EndpointSaved::LimitReached => {
            let detail = format!("there are already {} webhook endpoints; delete one first", WebhookEndpoint::MOST);
            Err(ServiceError::lasting_conflict(detail))
        }
    }
}

/// The secret that the client provides, or a new one.
pub(super) fn secret(brought: Option<&str>) -> Result<WebhookSecret, ServiceError> {
    match brought {
        Some(text) => signature::brought(text).map_err(|why| ServiceError::invalid("/secret", why)),
        None => signature::fresh().map_err(|why| ServiceError::new(ErrorCode::Internal, why)),
    }
}

/// A description that is not too long.
pub(super) fn described(description: Option<String>) -> Result<Option<String>, ServiceError> {
    match description {
        Some(text) if text.chars().count() > LONGEST => {
            Err(ServiceError::invalid("/description", format!("at most {LONGEST} characters")))
        }
        description => Ok(description.filter(|text| !text.is_empty())),
    }
}
