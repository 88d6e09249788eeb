//! `GET /v1/webhook-endpoints`

use axum::Json;
use axum::extract::State;

use super::endpoint::Endpoints;
use super::view::EndpointView;
use crate::gateway::access::{Caller, ReadPermit, Scope};
use crate::gateway::body::Query;
use crate::gateway::page::{Page, Paging, behind, limit};
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::state::Gateway;

/// List webhook endpoints, oldest first
#[utoipa::path(
    get, path = "/v1/webhook-endpoints", tag = "webhooks", operation_id = "listWebhookEndpoints", params(Paging),
    responses(
        (status = 200, description = "A page of endpoints, without their secrets", body = Page<EndpointView>),
        (status = "default", description = "The request was refused", body = ProblemView, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    Query(which): Query<Paging>,
    _permit: ReadPermit,
) -> Result<Json<Page<EndpointView>>, Problem> {
    caller.require(Scope::Webhooks)?;
    let limit = limit(which.limit)?;
    let all = Endpoints::of(&gateway, caller)?.all().await?;
    let found = behind(all, which.after.as_deref(), "webhook endpoint", |endpoint| endpoint.id.as_str())?;
    Ok(Json(Page::of(found, limit, |endpoint| endpoint.id.to_string(), EndpointView::of)))
}
