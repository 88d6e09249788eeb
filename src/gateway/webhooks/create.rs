//! `POST /v1/webhook-endpoints`

use std::collections::BTreeSet;

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
use crate::gateway::access::{Caller, Scope};
use crate::gateway::body::Body;
use crate::gateway::idempotency::Confidential;
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::state::Gateway;
use crate::ports::{EndpointSecrets, WebhookEndpoint, WebhookKind, WebhookSecret};

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
/// It hears of what happens from now on. The secret is in this answer and in no other. A URL has one endpoint: the same request
/// again is answered with the endpoint that there is, without its secret, and one that asks for something else is a `conflict`.
#[utoipa::path(
    post, path = "/v1/webhook-endpoints", tag = "webhooks", operation_id = "createWebhookEndpoint",
    request_body = NewEndpoint,
    responses(
        (status = 200, description = "The endpoint that this URL has already, without its secret", body = EndpointView),
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
    let wanted = Wanted {
        events: new.events.into_iter().map(EventView::kind).collect(),
        description: described(new.description)?,
        secret: new.secret.is_some().then(|| secret(new.secret.as_deref())).transpose()?,
    };
    // Of two requests that come together, the second one finds the endpoint of the first.
    let _alone = endpoints.outbound.creating.lock().await;
    let all = endpoints.all().await?;
    if let Some(there) = all.iter().find(|endpoint| endpoint.url == new.url) {
        wanted.must_fit(there)?;
        let location = location(&gateway, &there.id);
        return Ok((StatusCode::OK, [(LOCATION, location)], Json(EndpointView::of(there.clone()))).into_response());
    }
    if all.len() >= MOST {
        let detail = format!("there are {MOST} webhook endpoints already; remove one first");
        return Err(Problem::lasting_conflict(detail));
    }
    let Wanted { events, description, secret: brought } = wanted;
    let secret = brought.map_or_else(|| secret(None), Ok)?;
    let endpoint = WebhookEndpoint {
        id: EndpointId::from(format!("we_{}", Uuid::now_v7().simple())),
        tenant: endpoints.caller.tenant.clone(),
        url: new.url,
        events,
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
    let headers = [(LOCATION, location(&gateway, view.id())), (CACHE_CONTROL, "no-store".to_owned())];
    Ok((StatusCode::CREATED, Confidential, headers, Json(view)).into_response())
}

/// The settings that a request asks for.
struct Wanted {
    events: BTreeSet<WebhookKind>,
    description: Option<String>,
    /// The secret that the request brings.
    secret: Option<WebhookSecret>,
}

impl Wanted {
    /// Refuses another endpoint for a URL that has one with other settings.
    fn must_fit(&self, there: &WebhookEndpoint) -> Result<(), Problem> {
        let has_other_secret = self.secret.as_ref().is_some_and(|secret| *secret != there.secrets.current);
        let has_other_description = self.description.is_some() && self.description != there.description;
        if there.events == self.events && !has_other_secret && !has_other_description {
            return Ok(());
        }
        let detail = format!(
            "`{}` posts to this URL already, with other settings; change it with PATCH, rotate its secret, or remove it",
            there.id
        );
        Err(Problem::lasting_conflict(detail))
    }
}

fn location(gateway: &Gateway, endpoint: &EndpointId) -> String {
    format!("{}/v1/webhook-endpoints/{endpoint}", gateway.settings().public_url)
}
