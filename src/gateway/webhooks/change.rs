//! `PATCH /v1/webhook-endpoints/{endpoint}`

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::ToSchema;

use super::endpoint::{Endpoints, described};
use super::view::{EndpointView, EventView};
use crate::gateway::access::Authenticated;
use crate::gateway::body::{Body, Path};
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::state::Gateway;
use crate::ports::Disabled;
use crate::service::Scope;

/// Changes to an endpoint. Fields that are left out do not change.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = WebhookEndpointChange)]
pub(super) struct Change {
    /// The URL that messages are posted to, including waiting ones.
    url: Option<String>,
    /// The events that the endpoint receives; an empty list means all.
    events: Option<Vec<EventView>>,
    /// A description for people; an empty text removes it.
    description: Option<String>,
    /// Whether messages are sent. Messages that wait while the endpoint is disabled are sent when it is enabled again;
    /// events that happen meanwhile are not sent.
    enabled: Option<bool>,
}

/// Update a webhook endpoint
#[utoipa::path(
    patch, path = "/v1/webhook-endpoints/{endpoint}", tag = "webhooks", operation_id = "changeWebhookEndpoint",
    request_body = Change, params(("endpoint" = String, Path, description = "The endpoint")),
    responses(
        (status = 200, description = "The endpoint as it is now", body = EndpointView),
        (status = "default", description = "The request was refused", body = ProblemView, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn change(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Path(endpoint): Path<String>,
    Body(change): Body<Change>,
) -> Result<Json<EndpointView>, Problem> {
    caller.require(Scope::Webhooks)?;
    let endpoints = Endpoints::of(&gateway, caller)?;
    let mut endpoint = endpoints.find_own(&endpoint).await?;
    if let Some(url) = change.url {
        endpoints.outbound.egress.check(&url).map_err(|refused| Problem::invalid("/url", refused.to_string()))?;
        endpoint.url = url;
    }
    if let Some(events) = change.events {
        endpoint.events = events.into_iter().map(EventView::kind).collect();
    }
    if change.description.is_some() {
        endpoint.description = described(change.description)?;
    }
    match change.enabled {
        Some(true) if endpoint.disabled.is_some() => (endpoint.disabled, endpoint.failing_since) = (None, None),
        Some(false) if endpoint.disabled.is_none() => {
            let reason = format!("{} disabled it", endpoints.caller.name);
            endpoint.disabled = Some(Disabled { at: endpoints.outbound.clock.now(), reason });
        }
        Some(_) | None => {}
    }
    endpoints.save(&endpoint).await?;
    endpoints.outbound.wake.wake();
    Ok(Json(EndpointView::of(endpoint)))
}
