//! `POST /v1/webhook-endpoints/{endpoint}/test`

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Map, json};
use uuid::Uuid;

use super::endpoint::Endpoints;
use super::notifications;
use super::view::DeliveryView;
use crate::core::id::MessageId;
use crate::gateway::access::Authenticated;
use crate::gateway::body::Path;
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::state::Gateway;
use crate::ports::{DeliveryState, WebhookDelivery, WebhookKind};
use crate::service::Scope;

/// Send a test webhook
///
/// The message has the `type` `webhook.test`. The endpoint's deliveries show its outcome.
#[utoipa::path(
    post, path = "/v1/webhook-endpoints/{endpoint}/test", tag = "webhooks", operation_id = "testWebhookEndpoint",
    params(("endpoint" = String, Path, description = "The endpoint")),
    responses(
        (status = 202, description = "The delivery, which is on its way", body = DeliveryView),
        (status = "default", description = "The request was refused", body = ProblemView, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn test(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Path(endpoint): Path<String>,
) -> Result<(StatusCode, Json<DeliveryView>), Problem> {
    caller.require(Scope::Webhooks)?;
    let endpoints = Endpoints::of(&gateway, caller)?;
    let endpoint = endpoints.find(&endpoint).await?;
    let now = endpoints.outbound.clock.now();
    let data = Map::from_iter([("endpoint_id".to_owned(), json!(endpoint.id))]);
    let delivery = WebhookDelivery {
        id: MessageId::from(format!("msg_{}", Uuid::now_v7().simple())),
        endpoint: endpoint.id.clone(),
        kind: WebhookKind::Test,
        run: None,
        body: notifications::body(WebhookKind::Test, now, &data),
        created_at: now,
        state: DeliveryState::Waiting { due_at: now },
        tries: 0,
        attempts: Vec::new(),
    };
    Ok((StatusCode::ACCEPTED, Json(endpoints.send_at_once(&endpoint, delivery).await?)))
}
