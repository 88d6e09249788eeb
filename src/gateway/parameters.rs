//! Parameters of handlers: the runner and the webhook endpoints, limited to the tenant of a caller that has the scope of
//! the route.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use toolgate_service::{TenantRunner, TenantWebhooks};

use super::access::Authorized;
use super::problem::Problem;
use super::state::Gateway;

impl FromRequestParts<Gateway> for TenantRunner {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, Problem> {
        let Authorized(caller) = Authorized::from_request_parts(parts, gateway).await?;
        Ok(gateway.runner_of(&caller))
    }
}

impl FromRequestParts<Gateway> for TenantWebhooks {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, Problem> {
        let Authorized(caller) = Authorized::from_request_parts(parts, gateway).await?;
        Ok(Self::new(gateway.service(), caller)?)
    }
}
