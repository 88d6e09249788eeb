//! `/v1/webhook-endpoints`: endpoints and their secrets.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use toolgate_core::id::{EndpointId, RunId};
use toolgate_service::{EndpointChange, NewEndpoint, TenantWebhooks};
use utoipa::{IntoParams, ToSchema};

use super::view::{EndpointView, EventView};
use crate::access::Admitted;
use crate::body::{Body, Path, Query};
use crate::idempotency::Confidential;
use crate::pagination::{Page, PageResult, limit};
use crate::problem::Problem;
use crate::state::Gateway;

/// A webhook endpoint to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewWebhookEndpoint)]
pub(super) struct NewEndpointBody {
    /// The `https` URL that messages are posted to.
    #[schema(example = "https://example.com/hooks/toolgate")]
    url: String,
    /// The events that the endpoint receives. Default: all events, like an empty list.
    #[serde(default)]
    events: Vec<EventView>,
    /// A description for people.
    description: Option<String>,
    /// A signing secret of your own: `whsec_` and the Base64 of 24 to 64 random bytes. Default: a new secret.
    secret: Option<String>,
}

/// Create a webhook endpoint
///
/// The endpoint receives events from now on. The secret is returned only in this response. A URL has one endpoint:
/// repeating the request returns the existing endpoint, without its secret; a request with other settings is a
/// `conflict`.
#[utoipa::path(
    post, path = "/v1/webhook-endpoints", tag = "webhooks", operation_id = "createWebhookEndpoint",
    request_body = NewEndpointBody,
    responses(
        (status = 200, description = "The existing endpoint of this URL, without its secret", body = EndpointView),
        (status = 201, description = "The endpoint, with its secret", body = EndpointView),
    ),
)]
pub(super) async fn create(
    State(gateway): State<Gateway>,
    webhooks: TenantWebhooks,
    Body(new): Body<NewEndpointBody>,
) -> Result<Response, Problem> {
    let new = NewEndpoint {
        url: new.url,
        events: new.events.into_iter().map(EventView::kind).collect(),
        description: new.description,
        secret: new.secret,
    };
    let (endpoint, secret) = webhooks.create(new).await?;
    let location = location(&gateway, &endpoint.id);
    let view = EndpointView::new(endpoint);
    let Some(secret) = secret else { return Ok((StatusCode::OK, [(LOCATION, location)], Json(view)).into_response()) };
    let headers = [(LOCATION, location)];
    Ok((StatusCode::CREATED, Confidential, headers, Json(view.showing(&secret))).into_response())
}

fn location(gateway: &Gateway, endpoint: &EndpointId) -> String {
    format!("{}/v1/webhook-endpoints/{endpoint}", gateway.settings().public_url)
}

/// The page of endpoints.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListParams {
    /// The webhook of this run, in place of the endpoints of all runs.
    #[param(value_type = Option<String>)]
    run_id: Option<RunId>,
    /// The number of endpoints to return: 1 to 100. Default: 20.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
    /// A cursor: endpoints after this one. Pass the `last_id` of the previous page.
    after: Option<String>,
}

/// List webhook endpoints
///
/// Returns the webhook endpoints of your tenant, oldest first: those of all runs, or the webhook of one run.
#[utoipa::path(
    get, path = "/v1/webhook-endpoints", tag = "webhooks", operation_id = "listWebhookEndpoints", params(ListParams),
    responses((status = 200, description = "A page of endpoints, without their secrets", body = Page<EndpointView>)),
)]
pub(super) async fn list(
    Query(which): Query<ListParams>,
    webhooks: Admitted<TenantWebhooks>,
) -> PageResult<EndpointView> {
    let limit = limit(which.limit)?;
    if let Some(after) = &which.after {
        webhooks.find(after).await.map_err(|missing| missing.of_parameter("after"))?;
    }
    let found = webhooks.page(which.run_id, which.after.map(EndpointId::from), limit + 1).await?;
    Ok(Json(Page::new(found, limit, |endpoint| endpoint.id.to_string(), EndpointView::new)))
}

/// Retrieve a webhook endpoint
#[utoipa::path(
    get, path = "/v1/webhook-endpoints/{endpoint}", tag = "webhooks", operation_id = "readWebhookEndpoint",
    responses((status = 200, description = "The endpoint, without its secret", body = EndpointView)),
)]
pub(super) async fn read(
    webhooks: TenantWebhooks,
    Path(endpoint): Path<String>,
) -> Result<Json<EndpointView>, Problem> {
    let found = webhooks.find(&endpoint).await?;
    Ok(Json(EndpointView::new(found)))
}

/// Delete a webhook endpoint
///
/// Deletes the endpoint and the log of its deliveries. No more messages are sent to it.
#[utoipa::path(
    delete, path = "/v1/webhook-endpoints/{endpoint}", tag = "webhooks", operation_id = "removeWebhookEndpoint",
    responses((status = 204, description = "The endpoint is deleted")),
)]
pub(super) async fn remove(webhooks: TenantWebhooks, Path(endpoint): Path<String>) -> Result<StatusCode, Problem> {
    webhooks.remove(&endpoint).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Changes to an endpoint. Fields that are left out do not change.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = WebhookEndpointChange)]
pub(super) struct EndpointChangeBody {
    /// The URL that messages are posted to, including waiting ones.
    url: Option<String>,
    /// The events that the endpoint receives; an empty list means all.
    events: Option<Vec<EventView>>,
    /// A description for people; an empty text removes it.
    description: Option<String>,
    /// Whether messages are sent. Messages that wait while the endpoint is disabled are sent when it is enabled again;
    /// events that happen meanwhile are not sent.
    enabled: Option<bool>,
}

/// Update a webhook endpoint
#[utoipa::path(
    patch, path = "/v1/webhook-endpoints/{endpoint}", tag = "webhooks", operation_id = "changeWebhookEndpoint",
    request_body(content((EndpointChangeBody = "application/json"), (EndpointChangeBody = "application/merge-patch+json"))),
    responses((status = 200, description = "The endpoint as it is now", body = EndpointView)),
)]
pub(super) async fn change(
    webhooks: TenantWebhooks,
    Path(endpoint): Path<String>,
    Body(change): Body<EndpointChangeBody>,
) -> Result<Json<EndpointView>, Problem> {
    let change = EndpointChange {
        url: change.url,
        events: change.events.map(|events| events.into_iter().map(EventView::kind).collect()),
        description: change.description,
        enabled: change.enabled,
    };
    let changed = webhooks.change(&endpoint, change).await?;
    Ok(Json(EndpointView::new(changed)))
}

/// The new secret.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = WebhookRotation)]
pub(super) struct Rotation {
    /// A signing secret of your own: `whsec_` and the Base64 of 24 to 64 random bytes. Default: a new secret.
    secret: Option<String>,
}

/// Rotate the secret of a webhook endpoint
///
/// For 24 hours, messages are also signed with the previous secret, even if the secret is rotated again meanwhile. The
/// new secret is returned only in this response.
#[utoipa::path(
    post, path = "/v1/webhook-endpoints/{endpoint}/rotate", tag = "webhooks", operation_id = "rotateWebhookSecret",
    request_body = Rotation,
    responses((status = 200, description = "The endpoint, with its new secret", body = EndpointView)),
)]
pub(super) async fn rotate(
    webhooks: TenantWebhooks,
    Path(endpoint): Path<String>,
    Body(rotation): Body<Rotation>,
) -> Result<Response, Problem> {
    let (endpoint, secret) = webhooks.rotate(&endpoint, rotation.secret.as_deref()).await?;
    let view = EndpointView::new(endpoint).showing(&secret);
    Ok((Confidential, Json(view)).into_response())
}
