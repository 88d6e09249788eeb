//! Deliveries of a webhook endpoint: lists them, sends one again, sends a test.

use axum::Json;
use axum::http::StatusCode;
use serde::Deserialize;
use toolgate_core::id::MessageId;
use toolgate_service::TenantWebhooks;
use utoipa::IntoParams;

use super::view::DeliveryView;
use crate::access::Admitted;
use crate::body::{Path, Query};
use crate::pagination::{Page, PageResult, limit};
use crate::problem::Problem;

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
    params(ListParams),
    responses((status = 200, description = "A page of deliveries", body = Page<DeliveryView>)),
)]
pub(super) async fn deliveries(
    Path(endpoint): Path<String>,
    Query(which): Query<ListParams>,
    webhooks: Admitted<TenantWebhooks>,
) -> PageResult<DeliveryView> {
    let limit = limit(which.limit)?;
    let found = webhooks.deliveries(&endpoint, which.after, limit + 1).await?;
    Ok(Json(Page::new(found, limit, |delivery| delivery.id.to_string(), DeliveryView::new)))
}

/// Redeliver a webhook
///
/// Sends the message again at once, with the same id and body, and with as many retries as a new one.
#[utoipa::path(
    post, path = "/v1/webhook-endpoints/{endpoint}/deliveries/{delivery}/redeliver", tag = "webhooks",
    operation_id = "redeliverWebhook",
    responses((status = 202, description = "The delivery, which is on its way", body = DeliveryView)),
)]
pub(super) async fn redeliver(
    webhooks: TenantWebhooks,
    Path((endpoint, delivery)): Path<(String, String)>,
) -> Result<(StatusCode, Json<DeliveryView>), Problem> {
    let sent = webhooks.redeliver(&endpoint, &delivery).await?;
    Ok((StatusCode::ACCEPTED, Json(DeliveryView::new(sent))))
}

/// Send a test webhook
///
/// The message has the `type` `webhook.test`. The endpoint's deliveries show its outcome.
#[utoipa::path(
    post, path = "/v1/webhook-endpoints/{endpoint}/test", tag = "webhooks", operation_id = "testWebhookEndpoint",
    responses((status = 202, description = "The delivery, which is on its way", body = DeliveryView)),
)]
pub(super) async fn test(
    webhooks: TenantWebhooks,
    Path(endpoint): Path<String>,
) -> Result<(StatusCode, Json<DeliveryView>), Problem> {
    let sent = webhooks.test(&endpoint).await?;
    Ok((StatusCode::ACCEPTED, Json(DeliveryView::new(sent))))
}
