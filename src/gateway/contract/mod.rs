//! What the gateway promises: its OpenAPI description, made from the handlers and views themselves, a page that shows it,
//! and the pages that problems point to. Nobody has to be let in to read it.

mod pages;
mod reader;
mod refusals;
mod wire;

use axum::Router;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use utoipa::Modify;
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};

use super::problem::ProblemView;
use super::state::{Gateway, api};

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "toolgate",
        description = "Runs of agents: start them, give them what they are owed, watch them.\n\n\
            A run that waits for you is `pending`, and `pending[]` names what it is owed: results of tools that you run \
            yourself, decisions, answers. Give them with *resume*; hours may pass in between.\n\n\
            Fields that are not known are refused in requests; pass over those that you do not know in answers, for there \
            will be more. Whatever is refused is a problem (RFC 9457) with a stable `code`, and its `type` leads to a page \
            about it.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    components(schemas(ProblemView)),
    modifiers(&Keys),
    security(("key" = [])),
    tags(
        (name = "runs", description = "Start runs, give them what they are owed, watch and stop them"),
        (name = "approvals", description = "What waits for a decision, and approvals that stand"),
        (name = "tools", description = "What agents are offered, and the servers it comes from"),
        (name = "webhooks", description = "Where the gateway tells what happened"),
        (name = "keys", description = "Who is let in"),
    ),
)]
struct Head;

/// How one is let in.
struct Keys;

impl Modify for Keys {
    fn modify(&self, description: &mut OpenApi) {
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("A key from `toolgate keys create`, or a token of your identity provider"))
            .build();
        description.components.get_or_insert_default().add_security_scheme("key", SecurityScheme::Http(bearer));
    }
}

/// What stands before the paths.
pub(super) fn head() -> OpenApi {
    Head::openapi()
}

/// The description of everything.
pub fn description() -> OpenApi {
    complete(api().into_openapi())
}

fn complete(mut description: OpenApi) -> OpenApi {
    refusals::spell_out(&mut description);
    wire::describe(&mut description);
    description
}

/// The description, for programs and for people.
pub(super) fn routes(api: OpenApi) -> Router<Gateway> {
    let description = Bytes::from(complete(api).to_json().unwrap_or_default());
    Router::new()
        .route("/openapi.json", get(|| async move { ([(CONTENT_TYPE, "application/json")], description) }))
        .route("/docs", get(reader::page))
        .route("/docs/reader.js", get(reader::script))
        .route("/errors", get(pages::index))
        .route("/errors/{code}", get(pages::page))
}
