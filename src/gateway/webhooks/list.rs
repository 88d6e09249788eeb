//! `GET /v1/webhook-endpoints`

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use super::endpoint::Endpoints;
use super::view::EndpointView;
use crate::gateway::access::{Caller, Scope};
use crate::gateway::body::Query;
use crate::gateway::page::{Page, limit};
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::state::Gateway;

/// Which endpoints.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// How many: 1 to 100, and 20 unless something else is said.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
    /// Those that come after this one: `last_id` of the page before.
    after: Option<String>,
}

/// List webhook endpoints, oldest first
#[utoipa::path(
    get, path = "/v1/webhook-endpoints", tag = "webhooks", operation_id = "listWebhookEndpoints", params(Which),
    responses(
        (status = 200, description = "A page of endpoints, without their secrets", body = Page<EndpointView>),
        (status = "default", description = "The request was refused", body = ProblemView, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    Query(which): Query<Which>,
) -> Result<Json<Page<EndpointView>>, Problem> {
    caller.require(Scope::Webhooks)?;
    let limit = limit(which.limit)?;
    let mut found = Endpoints::of(&gateway, caller)?.all().await?;
    if let Some(after) = &which.after {
        let last = found.iter().position(|endpoint| endpoint.id.as_str() == after);
        let last = last.ok_or_else(|| Problem::not_found("webhook endpoint", after).of_parameter("after"))?;
        found.drain(..=last);
    }
    Ok(Json(Page::of(found, limit, |endpoint| endpoint.id.to_string(), EndpointView::of)))
}
