//! Metrics of HTTP requests to the gateway.

use std::sync::Arc;
use std::time::Duration;

use super::instruments::Instruments;
use super::measurement::Measurement;
use super::names::{self, Metric};

/// Records HTTP requests.
#[derive(Clone)]
pub struct HttpMeter(pub(super) Arc<Instruments>);

/// An answered request. No field may come from the client as it is.
#[derive(Clone, Copy, Debug)]
pub struct HttpAnswer<'a> {
    /// One of the known methods.
    pub method: &'static str,
    /// The template of its path.
    pub route: &'a str,
    /// The HTTP status code.
    pub status: u16,
    /// The time from the head of the request to the head of the response.
    pub took: Duration,
}

impl HttpMeter {
    /// Records an answered request.
    pub fn answered(&self, answer: &HttpAnswer<'_>) {
        let measurement = Measurement::of(Metric::HttpDuration, answer.took.as_secs_f64())
            .fixed(names::HTTP_METHOD, answer.method)
            .name(names::HTTP_ROUTE, answer.route)
            .name(names::HTTP_STATUS, &answer.status.to_string());
        self.0.record(&measurement);
    }
}
