//! `GET` and `DELETE /v1/webhook-endpoints/{endpoint}`

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use toolgate_service::{Scope, WebhookEndpoints};

use super::view::EndpointView;
use crate::access::Authenticated;
use crate::body::Path;
use crate::problem::Problem;
use crate::state::Gateway;

/// Retrieve a webhook endpoint
#[utoipa::path(
    get, path = "/v1/webhook-endpoints/{endpoint}", tag = "webhooks", operation_id = "readWebhookEndpoint",
    params(("endpoint" = String, Path, description = "The endpoint")),
    responses(
        (status = 200, description = "The endpoint, without its secret", body = EndpointView),
    ),
)]
pub(super) async fn read(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Path(endpoint): Path<String>,
) -> Result<Json<EndpointView>, Problem> {
    caller.require(Scope::Webhooks)?;
    let found = WebhookEndpoints::of(gateway.service(), caller)?.find(&endpoint).await?;
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
    ),
)]
pub(super) async fn remove(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Path(endpoint): Path<String>,
) -> Result<StatusCode, Problem> {
    caller.require(Scope::Webhooks)?;
    WebhookEndpoints::of(gateway.service(), caller)?.remove(&endpoint).await?;
    Ok(StatusCode::NO_CONTENT)
}
