//! `POST /v1/webhook-endpoints`

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, LOCATION};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use toolgate_core::id::EndpointId;
use toolgate_service::{NewEndpoint, Scope, WebhookEndpoints};
use utoipa::ToSchema;

use super::view::{EndpointView, EventView};
use crate::access::Authenticated;
use crate::body::Body;
use crate::idempotency::Confidential;
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
    Authenticated(caller): Authenticated,
    Body(new): Body<NewEndpointBody>,
) -> Result<Response, Problem> {
    caller.require(Scope::Webhooks)?;
    let new = NewEndpoint {
        url: new.url,
        events: new.events.into_iter().map(EventView::kind).collect(),
        description: new.description,
        secret: new.secret,
    };
    let (endpoint, secret) = WebhookEndpoints::of(gateway.service(), caller)?.create(new).await?;
    let location = location(&gateway, &endpoint.id);
    let view = EndpointView::of(endpoint);
    let Some(secret) = secret else { return Ok((StatusCode::OK, [(LOCATION, location)], Json(view)).into_response()) };
    let headers = [(LOCATION, location), (CACHE_CONTROL, "no-store".to_owned())];
    Ok((StatusCode::CREATED, Confidential, headers, Json(view.showing(&secret))).into_response())
}

fn location(gateway: &Gateway, endpoint: &EndpointId) -> String {
    format!("{}/v1/webhook-endpoints/{endpoint}", gateway.settings().public_url)
}
