//! Permits as parameters of handlers.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::reads::{ReadPermit, StreamPermit};
use crate::gateway::access::caller::Caller;
use crate::gateway::problem::Problem;
use crate::gateway::state::Gateway;

impl FromRequestParts<Gateway> for ReadPermit {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, Problem> {
        let Caller { tenant, name, .. } = Caller::from_request_parts(parts, gateway).await?;
        let limiter = &gateway.access().limiter;
        limiter.reads.permit(&limiter.limiter, &(tenant, name)).await
    }
}

impl FromRequestParts<Gateway> for StreamPermit {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, gateway).await?;
        Ok(gateway.access().limiter.reads.stream_permit(caller.tenant).await)
    }
}
