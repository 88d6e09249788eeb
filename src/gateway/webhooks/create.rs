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
use crate::core::id::EndpointId;
use crate::gateway::access::Authenticated;
use crate::gateway::body::Body;
use crate::gateway::idempotency::Confidential;
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::state::Gateway;
use crate::ports::{EndpointSecrets, WebhookEndpoint, WebhookSecret};
use crate::service::{Scope, ServiceError};

/// A webhook endpoint to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewWebhookEndpoint)]
pub(super) struct NewEndpoint {
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
    request_body = NewEndpoint,
    responses(
        (status = 200, description = "The existing endpoint of this URL, without its secret", body = EndpointView),
        (status = 201, description = "The endpoint, with its secret", body = EndpointView),
        (status = "default", description = "The request was refused", body = ProblemView, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn create(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Body(new): Body<NewEndpoint>,
) -> Result<Response, Problem> {
    caller.require(Scope::Webhooks)?;
    let endpoints = Endpoints::of(&gateway, caller)?;
    endpoints.outbound.egress.check(&new.url).map_err(|refused| Problem::invalid("/url", refused.to_string()))?;
    let description = described(new.description)?;
    let brought = new.secret.is_some().then(|| secret(new.secret.as_deref())).transpose()?;
    let fresh = brought.clone().map_or_else(|| secret(None), Ok)?;
    let endpoint = WebhookEndpoint {
        id: EndpointId::from(format!("we_{}", Uuid::now_v7().simple())),
        tenant: endpoints.caller.tenant.clone(),
        url: new.url,
        events: new.events.into_iter().map(EventView::kind).collect(),
        description,
        secrets: EndpointSecrets { current: fresh.clone(), previous: Vec::new() },
        created_at: endpoints.outbound.clock.now(),
        configured: false,
        revision: 0,
        failing_since: None,
        disabled: None,
    };
    if let Some(there) = endpoints.add(&endpoint).await? {
        must_fit(&there, &endpoint, brought.as_ref())?;
        let location = location(&gateway, &there.id);
        return Ok((StatusCode::OK, [(LOCATION, location)], Json(EndpointView::of(there))).into_response());
    }
    let view = EndpointView::of(endpoint).showing(&fresh);
    let headers = [(LOCATION, location(&gateway, view.id())), (CACHE_CONTROL, "no-store".to_owned())];
    Ok((StatusCode::CREATED, Confidential, headers, Json(view)).into_response())
}

/// Refuses another endpoint for a URL that has one with other settings. Settings that the request leaves out are not
/// compared.
fn must_fit(there: &WebhookEndpoint, wanted: &WebhookEndpoint, brought: Option<&WebhookSecret>) -> Result<(), Problem> {
    let has_other_secret = brought.is_some_and(|secret| *secret != there.secrets.current);
    let has_other_description = wanted.description.is_some() && wanted.description != there.description;
    if there.events == wanted.events && !has_other_secret && !has_other_description {
        return Ok(());
    }
    let detail = format!(
        "`{}` already posts to this URL, with other settings; update it with PATCH, rotate its secret, or delete it",
        there.id
    );
    Err(ServiceError::lasting_conflict(detail).into())
}

fn location(gateway: &Gateway, endpoint: &EndpointId) -> String {
    format!("{}/v1/webhook-endpoints/{endpoint}", gateway.settings().public_url)
}
