//! Request metrics.

use std::time::Duration;

/// A recorder of answered HTTP requests. Must return at once and must not fail.
pub trait RequestMeter: Send + Sync {
    /// Records an answered request.
    fn answered(&self, request: &AnsweredRequest<'_>);
}

/// An answered HTTP request. No field may come from the client as it is.
#[derive(Clone, Copy, Debug)]
pub struct AnsweredRequest<'a> {
    /// One of the known methods.
    pub method: &'static str,
    /// The template of its path.
    pub route: &'a str,
    /// The HTTP status code.
    pub status: u16,
    /// The time from the head of the request to the head of the response.
    pub duration: Duration,
}
