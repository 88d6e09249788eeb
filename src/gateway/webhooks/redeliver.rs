//! `POST /v1/webhook-endpoints/{endpoint}/deliveries/{delivery}/redeliver`

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use toolgate_service::{Scope, WebhookEndpoints};

use super::view::DeliveryView;
use crate::access::Authenticated;
use crate::body::Path;
use crate::problem::Problem;
use crate::state::Gateway;

/// Redeliver a webhook
///
/// Sends the message again at once, with the same id and body, and with as many retries as a new one.
#[utoipa::path(
    post, path = "/v1/webhook-endpoints/{endpoint}/deliveries/{delivery}/redeliver", tag = "webhooks",
    operation_id = "redeliverWebhook",
    params(("endpoint" = String, Path, description = "The endpoint"), ("delivery" = String, Path, description = "The delivery")),
    responses(
        (status = 202, description = "The delivery, which is on its way", body = DeliveryView),
    ),
)]
pub(super) async fn redeliver(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Path((endpoint, delivery)): Path<(String, String)>,
) -> Result<(StatusCode, Json<DeliveryView>), Problem> {
    caller.require(Scope::Webhooks)?;
    let sent = WebhookEndpoints::of(gateway.service(), caller)?.redeliver(&endpoint, &delivery).await?;
    Ok((StatusCode::ACCEPTED, Json(DeliveryView::of(sent))))
}
