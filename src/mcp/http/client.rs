//! Pooled HTTP client of the transport. It keeps connections open between calls, which the SDK's own client does not.

use std::collections::HashMap;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use reqwest::{Client, StatusCode, redirect};
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::egress::Reach;

/// The time limit for connecting. A call that fails here was certainly not sent.
const DIAL: Duration = Duration::from_secs(10);
const MAX_REDIRECTS: usize = 10;
/// How long an idle connection is kept. Node and uvicorn close theirs after five seconds, and a request that crosses
/// the closing is lost with an unknown outcome.
const IDLE: Duration = Duration::from_secs(4);

/// The headers of a request.
pub(super) type Headers = HashMap<HeaderName, HeaderValue>;

/// A failed request.
pub(super) type Failure = StreamableHttpError<reqwest::Error>;

/// A client with a connection pool, for a server within this reach.
pub(super) fn pooled(reach: &Reach) -> Result<Client, reqwest::Error> {
    let client =
        Client::builder().tcp_nodelay(true).connect_timeout(DIAL).pool_idle_timeout(IDLE).redirect(within_the_origin());
    match reach.resolver() {
        Some(guard) => client.dns_resolver(guard).build(),
        None => client.build(),
    }
}

/// Only redirects that keep the body and stay at the origin are followed: any other would lose the message, or send
/// the configured headers to another server. The admitted origin stays the origin, and its name is checked on each
/// resolution, so a redirect cannot lead where the first request could not.
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
