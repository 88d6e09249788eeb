//! `PATCH /v1/webhook-endpoints/{endpoint}`

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use toolgate_service::{EndpointChange, Scope, WebhookEndpoints};
use utoipa::ToSchema;

use super::view::{EndpointView, EventView};
use crate::access::Authenticated;
use crate::body::{Body, Path};
use crate::problem::Problem;
use crate::state::Gateway;

/// Changes to an endpoint. Fields that are left out do not change.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = WebhookEndpointChange)]
pub(super) struct EndpointChangeBody {
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
    request_body = EndpointChangeBody, params(("endpoint" = String, Path, description = "The endpoint")),
    responses(
        (status = 200, description = "The endpoint as it is now", body = EndpointView),
    ),
)]
pub(super) async fn change(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Path(endpoint): Path<String>,
    Body(change): Body<EndpointChangeBody>,
) -> Result<Json<EndpointView>, Problem> {
    caller.require(Scope::Webhooks)?;
    let change = EndpointChange {
        url: change.url,
        events: change.events.map(|events| events.into_iter().map(EventView::kind).collect()),
        description: change.description,
        enabled: change.enabled,
    };
    let changed = WebhookEndpoints::of(gateway.service(), caller)?.change(&endpoint, change).await?;
    Ok(Json(EndpointView::of(changed)))
}
