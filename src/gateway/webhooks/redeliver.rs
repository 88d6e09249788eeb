//! `POST /v1/webhook-endpoints/{endpoint}/deliveries/{delivery}/redeliver`

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use super::endpoint::Endpoints;
use super::view::DeliveryView;
use crate::gateway::access::Authenticated;
use crate::gateway::body::Path;
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::state::Gateway;
use crate::ports::DeliveryFilter;
use crate::service::Scope;

/// Redeliver a webhook
///
/// Sends the message again at once, with the same id and body, and with as many retries as a new one.
#[utoipa::path(
    post, path = "/v1/webhook-endpoints/{endpoint}/deliveries/{delivery}/redeliver", tag = "webhooks",
    operation_id = "redeliverWebhook",
    params(("endpoint" = String, Path, description = "The endpoint"), ("delivery" = String, Path, description = "The delivery")),
    responses(
        (status = 202, description = "The delivery, which is on its way", body = DeliveryView),
        (status = "default", description = "The request was refused", body = ProblemView, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn redeliver(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Path((endpoint, delivery)): Path<(String, String)>,
) -> Result<(StatusCode, Json<DeliveryView>), Problem> {
    caller.require(Scope::Webhooks)?;
    let endpoints = Endpoints::of(&gateway, caller)?;
    let endpoint = endpoints.find(&endpoint).await?;
    let (endpoint_id, id) = (endpoint.id.clone(), Some(delivery.as_str().into()));
    let filter = DeliveryFilter { endpoint: endpoint_id, id, after: None, limit: 1 };
    let found = endpoints.outbound.store.deliveries(&filter).await?.pop();
    let found = found.ok_or_else(|| Problem::not_found("delivery", &delivery))?;
    Ok((StatusCode::ACCEPTED, Json(endpoints.send_at_once(&endpoint, found).await?)))
}
