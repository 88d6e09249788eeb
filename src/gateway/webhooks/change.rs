//! `PATCH /v1/webhook-endpoints/{endpoint}`

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::ToSchema;

use super::endpoint::{Endpoints, described};
use super::view::{EndpointView, EventView};
use crate::gateway::access::{Caller, Scope};
use crate::gateway::body::{Body, Path};
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::state::Gateway;
use crate::ports::Disabled;

/// What is to be different. What is left out stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = WebhookEndpointChange)]
pub(super) struct Change {
    /// Where messages are posted, those that wait included.
    url: Option<String>,
    /// What it hears of; an empty list means everything.
    events: Option<Vec<EventView>>,
    /// What people say about it; an empty text takes it away.
    description: Option<String>,
    /// Whether anything is sent there. What waited while it was off is sent when it is on again; what others were told of
    /// meanwhile is not.
    enabled: Option<bool>,
}

/// Change a webhook endpoint
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
    caller: Caller,
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
            let reason = format!("{} switched it off", endpoints.caller.name);
            endpoint.disabled = Some(Disabled { at: endpoints.outbound.clock.now(), reason });
        }
        Some(_) | None => {}
    }
    endpoints.save(&endpoint).await?;
    endpoints.outbound.wake.wake();
    Ok(Json(EndpointView::of(endpoint)))
}
