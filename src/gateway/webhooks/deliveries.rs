//! Deliveries of a webhook endpoint: lists them, sends one again, sends a test.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use toolgate_core::id::MessageId;
use toolgate_service::{Scope, TenantWebhooks};
use utoipa::IntoParams;

use super::view::DeliveryView;
use crate::access::{Authenticated, ReadPermit};
use crate::body::{Path, Query};
use crate::pagination::{Page, limit};
use crate::problem::Problem;
use crate::state::Gateway;

/// The page of deliveries.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListParams {
    /// The number of deliveries to return: 1 to 100. Default: 20.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
    /// A cursor: deliveries after this one. Pass the `last_id` of the previous page.
    #[param(value_type = Option<String>)]
    after: Option<MessageId>,
}

/// List the deliveries of a webhook endpoint
///
/// Returns deliveries, newest first. They are kept for 30 days.
#[utoipa::path(
    get, path = "/v1/webhook-endpoints/{endpoint}/deliveries", tag = "webhooks", operation_id = "listWebhookDeliveries",
    params(("endpoint" = String, Path, description = "The endpoint"), ListParams),
    responses(
        (status = 200, description = "A page of deliveries", body = Page<DeliveryView>),
    ),
)]
pub(super) async fn deliveries(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Path(endpoint): Path<String>,
    Query(which): Query<ListParams>,
    _permit: ReadPermit,
) -> Result<Json<Page<DeliveryView>>, Problem> {
    caller.require(Scope::Webhooks)?;
    let limit = limit(which.limit)?;
    let endpoints = TenantWebhooks::new(gateway.service(), caller)?;
    let found = endpoints.deliveries(&endpoint, which.after, limit + 1).await?;
    Ok(Json(Page::new(found, limit, |delivery| delivery.id.to_string(), DeliveryView::new)))
}

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
    let sent = TenantWebhooks::new(gateway.service(), caller)?.redeliver(&endpoint, &delivery).await?;
    Ok((StatusCode::ACCEPTED, Json(DeliveryView::new(sent))))
}

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
    let sent = TenantWebhooks::new(gateway.service(), caller)?.test(&endpoint).await?;
    Ok((StatusCode::ACCEPTED, Json(DeliveryView::new(sent))))
}
