//! What is recorded of requests to the gateway.

use std::sync::Arc;
use std::time::Duration;

use super::instruments::Instruments;
use super::measurement::Measurement;
use super::names::{self, Metric};

/// Records requests.
#[derive(Clone)]
pub struct HttpMeter(pub(super) Arc<Instruments>);

/// A request that was answered. Nothing of it may be of the client's choice.
#[derive(Clone, Copy, Debug)]
pub struct HttpAnswer<'a> {
    /// One of the known methods.
    pub method: &'static str,
    /// The template of its path.
    pub route: &'a str,
    /// The status.
    pub status: u16,
    /// From its head to the head of the answer.
    pub took: Duration,
}

impl HttpMeter {
    /// One more.
    pub fn answered(&self, answer: &HttpAnswer<'_>) {
        let measurement = Measurement::of(Metric::HttpDuration, answer.took.as_secs_f64())
            .fixed(names::HTTP_METHOD, answer.method)
            .name(names::HTTP_ROUTE, answer.route)
            .name(names::HTTP_STATUS, &answer.status.to_string());
        self.0.record(&measurement);
    }
}
