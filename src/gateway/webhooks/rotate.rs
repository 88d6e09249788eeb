//! `POST /v1/webhook-endpoints/{endpoint}/rotate`

use axum::Json;
use axum::extract::State;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use toolgate_service::{Scope, WebhookEndpoints};
use utoipa::ToSchema;

use super::view::EndpointView;
use crate::access::Authenticated;
use crate::body::{Body, Path};
use crate::idempotency::Confidential;
use crate::problem::Problem;
use crate::state::Gateway;

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
    request_body = Rotation, params(("endpoint" = String, Path, description = "The endpoint")),
    responses(
        (status = 200, description = "The endpoint, with its new secret", body = EndpointView),
    ),
)]
pub(super) async fn rotate(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Path(endpoint): Path<String>,
    Body(rotation): Body<Rotation>,
) -> Result<Response, Problem> {
    caller.require(Scope::Webhooks)?;
    let endpoints = WebhookEndpoints::of(gateway.service(), caller)?;
    let (endpoint, secret) = endpoints.rotate(&endpoint, rotation.secret.as_deref()).await?;
    let view = EndpointView::of(endpoint).showing(&secret);
    Ok((Confidential, [(CACHE_CONTROL, "no-store")], Json(view)).into_response())
}
