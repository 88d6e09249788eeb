//! `POST /v1/webhook-endpoints`

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, LOCATION};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::endpoint::{Endpoints, described, secret};
use super::view::{EndpointView, EventView};
use crate::core::error::ErrorCode;
use crate::core::id::EndpointId;
use crate::gateway::access::{Caller, Scope};
use crate::gateway::body::Body;
use crate::gateway::idempotency::Confidential;
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::state::Gateway;
use crate::ports::{EndpointSecrets, WebhookEndpoint};

/// How many endpoints a tenant may have: each makes a message of everything it hears of.
const MOST: usize = 100;

/// An endpoint to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewWebhookEndpoint)]
pub(super) struct NewEndpoint {
    /// Where messages are posted: an `https` address.
    #[schema(example = "https://example.com/hooks/toolgate")]
    url: String,
    /// What it hears of; nothing, or an empty list, means everything.
    #[serde(default)]
    events: Vec<EventView>,
    /// What people say about it.
    description: Option<String>,
    /// `whsec_` and the Base64 of 24 to 64 random bytes, if you want to bring your own.
    secret: Option<String>,
}

/// Add a webhook endpoint
///
/// It hears of what happens from now on. The secret is in this answer and in no other.
#[utoipa::path(
    post, path = "/v1/webhook-endpoints", tag = "webhooks", operation_id = "createWebhookEndpoint",
    request_body = NewEndpoint,
    responses(
        (status = 201, description = "The endpoint, with its secret", body = EndpointView),
        (status = "default", description = "The request was refused", body = ProblemView, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn create(
    State(gateway): State<Gateway>,
    caller: Caller,
    Body(new): Body<NewEndpoint>,
) -> Result<Response, Problem> {
    caller.require(Scope::Webhooks)?;
    let endpoints = Endpoints::of(&gateway, caller)?;
    endpoints.outbound.egress.check(&new.url).map_err(|refused| Problem::invalid("/url", refused.to_string()))?;
    let description = described(new.description)?;
    let secret = secret(new.secret.as_deref())?;
    if endpoints.all().await?.len() >= MOST {
        let detail = format!("there are {MOST} webhook endpoints already; remove one first");
        return Err(Problem::new(ErrorCode::Conflict, detail));
    }
    let endpoint = WebhookEndpoint {
        id: EndpointId::from(format!("we_{}", Uuid::now_v7().simple())),
        tenant: endpoints.caller.tenant.clone(),
        url: new.url,
        events: new.events.into_iter().map(EventView::kind).collect(),
        description,
        secrets: EndpointSecrets { current: secret.clone(), previous: Vec::new() },
        created_at: endpoints.outbound.clock.now(),
        configured: false,
        revision: 0,
        failing_since: None,
        disabled: None,
    };
    endpoints.save(&endpoint).await?;
    let view = EndpointView::of(endpoint).showing(&secret);
    let location = format!("{}/v1/webhook-endpoints/{}", gateway.settings().public_url, view.id());
    let headers = [(LOCATION, location), (CACHE_CONTROL, "no-store".to_owned())];
    Ok((StatusCode::CREATED, Confidential, headers, Json(view)).into_response())
}
