//! The HTTP client under the transport. It keeps connections open between calls, which the SDK's own does not.

use std::time::Duration;

use reqwest::{Client, StatusCode, redirect};

/// How long dialling may take. A call that fails here was certainly not sent.
const DIAL: Duration = Duration::from_secs(10);
const MAX_REDIRECTS: usize = 10;

/// A client with a pool.
pub(super) fn pooled() -> Result<Client, reqwest::Error> {
    Client::builder().tcp_nodelay(true).connect_timeout(DIAL).redirect(within_the_origin()).build()
}

/// Only redirects that keep the body and stay at the origin are followed: any other would lose the message, or hand the
/// configured headers to a stranger.
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
