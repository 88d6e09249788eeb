//! Limit layer: counts each request of a caller, and reports the remaining quota.

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::rate_limit::{RateState, Rates};
use super::reads::{Admitted, StreamPermit};
use super::refusal::{PERMIT_PAUSE, limited};
use crate::access::authenticate::Authenticated;
use crate::problem::Problem;
use crate::state::Gateway;

/// Counts a request of a caller, or refuses it.
pub(crate) async fn limit_caller(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    request: Request,
    next: Next,
) -> Response {
    let limiter = &gateway.access().limiter;
    let who = (caller.tenant, caller.name);
    let left = match limiter.requests.as_ref().map(|requests| requests.check(&who)).transpose() {
        Ok(left) => left,
        Err(wait) => {
            let refused = limited("too many requests with these credentials", wait).into_response();
            return with_quota(refused, limiter.requests.as_ref().map(Rates::used_up));
        }
    };
    let response = match limiter.with_permit(&who, request, next).await {
        Ok(response) => response,
        Err(full) => limited(full, PERMIT_PAUSE).into_response(),
    };
    with_quota(response, left)
}

/// Adds the remaining quota to a response (draft-ietf-httpapi-ratelimit-headers).
fn with_quota(mut response: Response, left: Option<RateState>) -> Response {
    let Some(left) = left else { return response };
    for (name, value) in [("ratelimit-policy", left.policy()), ("ratelimit", left.header_value())] {
        if let Ok(value) = HeaderValue::from_str(&value) {
            // A refusal of a daily quota has a line of its own.
            response.headers_mut().append(HeaderName::from_static(name), value);
        }
    }
    response
}

impl<T: FromRequestParts<Gateway, Rejection = Problem> + Send> FromRequestParts<Gateway> for Admitted<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, Problem> {
        let Authenticated(caller) = Authenticated::from_request_parts(parts, gateway).await?;
        let source = T::from_request_parts(parts, gateway).await?;
        let limiter = &gateway.access().limiter;
        let permit = limiter.reads.permit(&limiter.concurrency, &(caller.tenant, caller.name)).await?;
        Ok(Self { source, _permit: permit })
    }
}

impl FromRequestParts<Gateway> for StreamPermit {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, Problem> {
        let Authenticated(caller) = Authenticated::from_request_parts(parts, gateway).await?;
        Ok(gateway.access().limiter.reads.stream_permit(caller.tenant).await)
    }
}
