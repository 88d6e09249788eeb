//! `POST /v1/webhook-endpoints/{endpoint}/test`

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use toolgate_service::{Scope, WebhookEndpoints};

use super::view::DeliveryView;
use crate::access::Authenticated;
use crate::body::Path;
use crate::problem::Problem;
use crate::state::Gateway;

/// Send a test webhook
///
/// The message has the `type` `webhook.test`. The endpoint's deliveries show its outcome.
#[utoipa::path(
    post, path = "/v1/webhook-endpoints/{endpoint}/test", tag = "webhooks", operation_id = "testWebhookEndpoint",
    params(("endpoint" = String, Path, description = "The endpoint")),
    responses(
        (status = 202, description = "The delivery, which is on its way", body = DeliveryView),
    ),
)]
pub(super) async fn test(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Path(endpoint): Path<String>,
) -> Result<(StatusCode, Json<DeliveryView>), Problem> {
    caller.require(Scope::Webhooks)?;
    let sent = WebhookEndpoints::of(gateway.service(), caller)?.test(&endpoint).await?;
    Ok((StatusCode::ACCEPTED, Json(DeliveryView::of(sent))))
}
