//! The HTTP client under the transport. It keeps connections open between calls, which the SDK's own does not.

use std::time::Duration;

use reqwest::{Client, StatusCode, redirect};

use super::egress::Reach;

/// How long dialling may take. A call that fails here was certainly not sent.
const DIAL: Duration = Duration::from_secs(10);
const MAX_REDIRECTS: usize = 10;
/// How long a connection is kept for the next request. Node and uvicorn close theirs after five seconds, and a request that
/// crosses the closing is lost with an unknown outcome.
const IDLE: Duration = Duration::from_secs(4);

/// A client with a pool, for a server that may be where `reach` says.
pub(super) fn pooled(reach: &Reach) -> Result<Client, reqwest::Error> {
    let client =
        Client::builder().tcp_nodelay(true).connect_timeout(DIAL).pool_idle_timeout(IDLE).redirect(within_the_origin());
    match reach.resolver() {
        Some(guard) => client.dns_resolver(guard).build(),
        None => client.build(),
    }
}

/// Only redirects that keep the body and stay at the origin are followed: any other would lose the message, or hand the
/// configured headers to a stranger. The origin that was let through stays the origin, and its name is judged whenever it
/// is resolved, so a redirect leads nowhere that the first request could not.
fn within_the_origin() -> redirect::Policy {
    redirect::Policy::custom(|attempt| {
        let keeps_body = matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        let first = attempt.previous().first();
        let same_origin = first.is_some_and(|first| first.origin() == attempt.url().origin());
        match keeps_body && same_origin && attempt.previous().len() <= MAX_REDIRECTS {
            true => attempt.follow(),
            false => attempt.stop(),
        }
    })
}
