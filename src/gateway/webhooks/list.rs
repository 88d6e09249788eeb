//! `GET /v1/webhook-endpoints`

use axum::Json;
use axum::extract::State;
use toolgate_core::id::EndpointId;
use toolgate_service::{Scope, WebhookEndpoints};

use super::view::EndpointView;
use crate::access::{Authenticated, ReadPermit};
use crate::body::Query;
use crate::pagination::{Page, Paging, limit};
use crate::problem::Problem;
use crate::state::Gateway;

/// List webhook endpoints
///
/// Returns the webhook endpoints of your tenant, oldest first.
#[utoipa::path(
    get, path = "/v1/webhook-endpoints", tag = "webhooks", operation_id = "listWebhookEndpoints", params(Paging),
    responses(
        (status = 200, description = "A page of endpoints, without their secrets", body = Page<EndpointView>),
    ),
)]
pub(super) async fn list(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Query(which): Query<Paging>,
    _permit: ReadPermit,
) -> Result<Json<Page<EndpointView>>, Problem> {
    caller.require(Scope::Webhooks)?;
    let limit = limit(which.limit)?;
    let endpoints = WebhookEndpoints::of(gateway.service(), caller)?;
    if let Some(after) = &which.after {
        endpoints.find(after).await.map_err(|missing| missing.of_parameter("after"))?;
    }
    let found = endpoints.page(which.after.map(EndpointId::from), limit + 1).await?;
    Ok(Json(Page::of(found, limit, |endpoint| endpoint.id.to_string(), EndpointView::of)))
}
