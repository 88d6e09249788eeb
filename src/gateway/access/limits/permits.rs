//! Permits as parameters of handlers.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::reads::{ReadPermit, StreamPermit};
use crate::access::authenticate::Authenticated;
use crate::problem::Problem;
use crate::state::Gateway;

impl FromRequestParts<Gateway> for ReadPermit {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, Problem> {
        let Authenticated(caller) = Authenticated::from_request_parts(parts, gateway).await?;
        let limiter = &gateway.access().limiter;
        limiter.reads.permit(&limiter.concurrency, &(caller.tenant, caller.name)).await
    }
}

impl FromRequestParts<Gateway> for StreamPermit {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, Problem> {
        let Authenticated(caller) = Authenticated::from_request_parts(parts, gateway).await?;
        Ok(gateway.access().limiter.reads.stream_permit(caller.tenant).await)
    }
}
