//! `GET` and `DELETE /v1/webhook-endpoints/{endpoint}`, and what handlers have in common: how they find an endpoint of their
//! caller's tenant, save it, and send to it.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use super::outbound::Outbound;
use super::signature;
use super::view::{DeliveryView, EndpointView};
use crate::core::error::ErrorCode;
use crate::core::id::EndpointId;
use crate::gateway::access::{Caller, Scope};
use crate::gateway::body::Path;
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::state::Gateway;
use crate::ports::{DeliveryState, EndpointFilter, EndpointSaved, WebhookDelivery, WebhookEndpoint, WebhookSecret};

/// How long a description may be.
const LONGEST: usize = 500;

/// The endpoints of one tenant. What belongs to another one is not there.
pub(super) struct Endpoints<'a> {
    pub(super) outbound: &'a Outbound,
    pub(super) caller: Caller,
}

/// Read a webhook endpoint
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
    caller: Caller,
    Path(endpoint): Path<String>,
) -> Result<Json<EndpointView>, Problem> {
    caller.require(Scope::Webhooks)?;
    let found = Endpoints::of(&gateway, caller)?.find(&endpoint).await?;
    Ok(Json(EndpointView::of(found)))
}

/// Remove a webhook endpoint
///
/// With the log of its deliveries; nothing more is sent there.
#[utoipa::path(
    delete, path = "/v1/webhook-endpoints/{endpoint}", tag = "webhooks", operation_id = "removeWebhookEndpoint",
    params(("endpoint" = String, Path, description = "The endpoint")),
    responses(
        (status = 204, description = "It is gone"),
        (status = "default", description = "The request was refused", body = ProblemView, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn remove(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(endpoint): Path<String>,
) -> Result<StatusCode, Problem> {
    caller.require(Scope::Webhooks)?;
    let endpoints = Endpoints::of(&gateway, caller)?;
    let found = endpoints.find_own(&endpoint).await?;
    endpoints.outbound.store.remove(&found.id).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl<'a> Endpoints<'a> {
    /// Those of the caller's tenant.
    pub(super) fn of(gateway: &'a Gateway, caller: Caller) -> Result<Self, Problem> {
        match gateway.webhooks() {
            Some(outbound) => Ok(Self { outbound, caller }),
            None => Err(Problem::new(ErrorCode::Unavailable, "this gateway was put together without webhooks")),
        }
    }

    /// So many of them, oldest first.
    pub(super) async fn page(&self, after: Option<EndpointId>, most: usize) -> Result<Vec<WebhookEndpoint>, Problem> {
        let tenant = Some(self.caller.tenant.clone());
        let filter = EndpointFilter { id: None, tenant, after, limit: Some(most) };
        Ok(self.outbound.store.endpoints(&filter).await?)
    }

    /// One of them.
    pub(super) async fn find(&self, id: &str) -> Result<WebhookEndpoint, Problem> {
        let tenant = Some(self.caller.tenant.clone());
        let filter = EndpointFilter { id: Some(id.into()), tenant, ..EndpointFilter::default() };
        let found = self.outbound.store.endpoints(&filter).await?.pop();
        found.ok_or_else(|| Problem::not_found("webhook endpoint", id))
    }

    /// One of them that the tenant may change.
    pub(super) async fn find_own(&self, id: &str) -> Result<WebhookEndpoint, Problem> {
        let found = self.find(id).await?;
        if found.configured {
            let detail = format!("`{id}` stands in the operator's configuration (`gateway.webhooks`): change it there");
            return Err(Problem::lasting_conflict(detail));
        }
        Ok(found)
    }

    /// Adds one, or finds the one that its URL has already.
    pub(super) async fn add(&self, endpoint: &WebhookEndpoint) -> Result<Option<WebhookEndpoint>, Problem> {
        match self.outbound.store.save(endpoint).await? {
            EndpointSaved::UrlTaken(there) => Ok(Some(*there)),
            saved @ (EndpointSaved::Saved | EndpointSaved::Stale | EndpointSaved::LimitReached) => {
                refused(endpoint, saved).map(|()| None)
            }
        }
    }

    /// Writes a change down, unless somebody else was quicker.
    pub(super) async fn save(&self, endpoint: &WebhookEndpoint) -> Result<(), Problem> {
        refused(endpoint, self.outbound.store.save(endpoint).await?)
    }

    /// Makes a delivery due now, as if it had never been tried.
    pub(super) async fn send_at_once(
        &self,
        endpoint: &WebhookEndpoint,
        delivery: WebhookDelivery,
    ) -> Result<DeliveryView, Problem> {
        if endpoint.disabled.is_some() {
            let detail = format!("nothing is sent to `{}`: switch it on first (`enabled: true`)", endpoint.id);
            return Err(Problem::lasting_conflict(detail));
        }
        let due_at = self.outbound.clock.now();
        let delivery = WebhookDelivery { state: DeliveryState::Waiting { due_at }, tries: 0, ..delivery };
        if !self.outbound.store.enqueue(&delivery).await? {
            return Err(Problem::not_found("webhook endpoint", endpoint.id.as_str()));
        }
        self.outbound.wake.wake();
        Ok(DeliveryView::of(delivery))
    }
}

/// Why an endpoint was not saved, if it was not.
fn refused(endpoint: &WebhookEndpoint, saved: EndpointSaved) -> Result<(), Problem> {
    match saved {
        EndpointSaved::Saved => Ok(()),
        EndpointSaved::Stale => {
            let detail = format!("`{}` was changed in this very moment; read it and try again", endpoint.id);
            Err(Problem::new(ErrorCode::Conflict, detail))
        }
        EndpointSaved::UrlTaken(other) => {
            let detail = format!("`{}` posts to this URL already; remove one of them", other.id);
            Err(Problem::lasting_conflict(detail))
        }
        EndpointSaved::LimitReached => {
            let detail = format!("there are {} webhook endpoints already; remove one first", WebhookEndpoint::MOST);
            Err(Problem::lasting_conflict(detail))
        }
    }
}

/// The secret that somebody brings along, or else a fresh one.
pub(super) fn secret(brought: Option<&str>) -> Result<WebhookSecret, Problem> {
    match brought {
        Some(text) => signature::brought(text).map_err(|why| Problem::invalid("/secret", why)),
        None => signature::fresh().map_err(|why| Problem::new(ErrorCode::Internal, why)),
    }
}

/// A description that is no book.
pub(super) fn described(description: Option<String>) -> Result<Option<String>, Problem> {
    match description {
        Some(text) if text.chars().count() > LONGEST => {
            Err(Problem::invalid("/description", format!("at most {LONGEST} characters")))
        }
        description => Ok(description.filter(|text| !text.is_empty())),
    }
}
