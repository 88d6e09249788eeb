//! OpenAPI description: generated from the handlers and views, served with a page that shows it and with the pages that
//! problems link to. All of them are public.

mod composition;
mod constants;
mod error_responses;
mod links;
mod operations;
mod page_names;
mod pages;
mod postprocess;
mod required_members;
mod response_headers;

use axum::Router;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use utoipa::Modify;
use utoipa::OpenApi as _;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{OpenApi, Paths};

use super::closed_sets::EventTypeView;
use super::problem::ProblemView;
use super::runs::events::MessageDescription;
use super::state::Gateway;
use super::webhooks::MessageView;

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "toolgate",
        description = "Start runs of agents, resume them, and follow their events.\n\n\
            A run that waits for you is `pending`, and `pending[]` lists the required actions: results of tools that \
            you run yourself, decisions, answers. Submit them with *resume*; a run can stay pending for hours.\n\n\
            Requests with unknown fields are refused. Ignore unknown fields in responses: later versions may add \
            some. Accept unknown values of enumerations whose description says that they are open, and ignore events \
            of unknown types. Every error is a problem (RFC 9457) with a stable `code`, and its `type` links to a page \
            about it.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    servers((url = "/", description = "The server that sends this description")),
    components(schemas(ProblemView, MessageDescription, MessageView, EventTypeView)),
    modifiers(&Keys),
    security(("key" = [])),
    tags(
        (name = "runs", description = "Start, resume, follow and cancel runs"),
        (name = "events", description = "Follow all runs"),
        (name = "stream-tickets", description = "Tickets that open event streams without a key"),
        (name = "sessions", description = "Conversations of successive runs"),
        (name = "files", description = "Files that runs read"),
        (name = "approvals", description = "Pending approvals, and grants"),
        (name = "tools", description = "Agents and models, their tools, and the MCP servers that provide tools"),
        (name = "webhooks", description = "Endpoints that receive webhooks"),
        (name = "webhook-messages", description = "Messages to webhook endpoints"),
        (name = "keys", description = "API keys"),
    ),
)]
struct Head;

/// The authentication schemes.
struct Keys;

impl Modify for Keys {
    fn modify(&self, description: &mut OpenApi) {
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("A key from `toolgate keys create`, or a token of your identity provider"))
            .build();
        let ticket = "A stream ticket (`POST /v1/stream-tickets`), for an `EventSource`, which sends no headers";
        let ticket = SecurityScheme::ApiKey(ApiKey::Query(ApiKeyValue::with_description("ticket", ticket)));
        let components = description.components.get_or_insert_default();
        components.add_security_scheme("key", SecurityScheme::Http(bearer));
        components.add_security_scheme("ticket", ticket);
    }
}

/// The document's head, without paths.
pub(super) fn head() -> OpenApi {
    Head::openapi()
}

/// Completes the document: webhooks, error responses, and corrections of what is generated.
pub(super) fn complete(mut description: OpenApi) -> OpenApi {
    description.webhooks = Some(Paths::builder().path("message", super::webhooks::described()).build());
    error_responses::add(&mut description);
    postprocess::describe(&mut description);
    response_headers::add(&mut description);
    links::add(&mut description);
    page_names::describe(&mut description);
    description.components.iter_mut().for_each(composition::describe);
    description.components.iter_mut().for_each(constants::describe);
    required_members::describe(&mut description);
    description
}

/// Serves the document to programs, and a page for people.
pub(super) fn routes(description: &OpenApi) -> Router<Gateway> {
    let description = Bytes::from(description.to_json().unwrap_or_default());
    Router::new()
        .route("/openapi.json", get(|| async move { ([(CONTENT_TYPE, "application/json")], description) }))
        .route("/docs", get(pages::reference))
        .route("/docs/reader.js", get(pages::reference_script))
        .route("/errors", get(pages::error_index))
        .route("/errors/{code}", get(pages::error_page))
}
