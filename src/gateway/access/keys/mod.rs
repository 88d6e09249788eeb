//! API keys: `tg_` and 256 random bits, shown once and stored as a hash.
//!
//! A key belongs to one tenant and has the scopes it was given. `/v1/keys` manages the keys of the caller's tenant;
//! `toolgate keys create` creates keys of any tenant where the store is.

mod authenticator;
mod create;
mod list;
mod read;
mod revoke;
mod secret;
mod view;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use authenticator::ApiKeyAuthenticator;
pub use secret::{NewKey, mint};

use crate::core::error::ErrorCode;
use crate::gateway::problem::Problem;
use crate::gateway::state::Gateway;

pub(in crate::gateway) fn routes() -> OpenApiRouter<Gateway> {
    OpenApiRouter::new().routes(routes!(create::create, list::list)).routes(routes!(read::read, revoke::revoke))
}

/// The API keys of this gateway.
fn keys(gateway: &Gateway) -> Result<&ApiKeyAuthenticator, Problem> {
    let keys = gateway.access().keys.as_deref();
    keys.ok_or_else(|| Problem::new(ErrorCode::Forbidden, "this server does not use API keys of its own"))
}
