//! `GET /v1/webhook-endpoints/{endpoint}/deliveries`

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use super::endpoint::Endpoints;
use super::view::DeliveryView;
use crate::core::id::MessageId;
use crate::gateway::access::{Caller, ReadPermit, Scope};
use crate::gateway::body::{Path, Query};
use crate::gateway::page::{Page, limit};
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::state::Gateway;
use crate::ports::DeliveryFilter;

/// Which deliveries.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// How many: 1 to 100, and 20 unless something else is said.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
    /// Those that come after this one: `last_id` of the page before.
    #[param(value_type = Option<String>)]
    after: Option<MessageId>,
}

/// List what was sent to a webhook endpoint, newest first
///
/// Kept for 30 days.
#[utoipa::path(
    get, path = "/v1/webhook-endpoints/{endpoint}/deliveries", tag = "webhooks", operation_id = "listWebhookDeliveries",
    params(("endpoint" = String, Path, description = "The endpoint"), Which),
    responses(
        (status = 200, description = "A page of deliveries", body = Page<DeliveryView>),
        (status = "default", description = "The request was refused", body = ProblemView, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn deliveries(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(endpoint): Path<String>,
    Query(which): Query<Which>,
    _permit: ReadPermit,
) -> Result<Json<Page<DeliveryView>>, Problem> {
    caller.require(Scope::Webhooks)?;
    let limit = limit(which.limit)?;
    let endpoints = Endpoints::of(&gateway, caller)?;
    let endpoint = endpoints.find(&endpoint).await?.id;
    let filter = DeliveryFilter { endpoint, id: None, after: which.after, limit: limit + 1 };
    let found = endpoints.outbound.store.deliveries(&filter).await?;
    Ok(Json(Page::of(found, limit, |delivery| delivery.id.to_string(), DeliveryView::of)))
}
