//! Limits per caller: requests per minute, concurrent requests, concurrent streams. Open streams have a count of their
//! own because they last long and cost little. Failed authentications are counted by address.

mod concurrency;
mod layer;
mod rate_limit;
mod reads;
mod refusal;
mod uploads;

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use axum::extract::Request;
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::Response;

use self::concurrency::{ConcurrencyLimiter, Kind, Who};
pub(crate) use self::layer::limit_caller;
pub use self::rate_limit::Rate;
use self::rate_limit::Rates;
use self::reads::Reads;
pub(crate) use self::reads::{Admitted, StreamPermit};
use self::refusal::limited;
use self::uploads::Uploads;
use toolgate_core::error::ErrorCode;
use toolgate_core::id::Tenant;
use toolgate_runner::{Admission, Permit};

use crate::guarded_body::holding;
use crate::negotiation::{Form, is_stream};
use crate::problem::Problem;

/// Limits of one caller. `None` means no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub requests: Option<Rate>,
    pub concurrent_requests: Option<usize>,
    /// Concurrent event streams.
    pub concurrent_streams: Option<usize>,
    /// Concurrent reads of lists and runs, including those that wait in the queue.
    pub concurrent_reads: Option<usize>,
    /// The rate of failed authentications from one address; beyond it the answer is 429.
    pub failures: Option<Rate>,
}

/// The rate and concurrency limits of a gateway.
pub(crate) struct Limiter {
    requests: Option<Rates<Who>>,
    failures: Option<Rates<IpAddr>>,
    concurrency: ConcurrencyLimiter,
    reads: Reads,
    uploads: Uploads,
}

impl Limiter {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            requests: limits.requests.map(Rates::new),
            failures: limits.failures.map(Rates::new),
            concurrency: ConcurrencyLimiter::new(
                limits.concurrent_requests,
                limits.concurrent_streams,
                limits.concurrent_reads,
            ),
            reads: Reads::new(),
            uploads: Uploads::new(),
        }
    }

    /// The queue in which reads take turns.
    pub(crate) fn turns(&self) -> Arc<Admission> {
        self.reads.turns()
    }

    /// Waits for a permit to receive an upload, which is in memory until the permit is dropped.
    pub(super) async fn upload(&self, tenant: Tenant) -> Result<Permit, Problem> {
        self.uploads.permit(tenant).await
    }

    /// Handles a request, which holds a permit while it is worked on; a stream holds one of its own for as long as it
    /// is open. The error says which kind of permit is exhausted.
    async fn with_permit(&self, who: &Who, request: Request, next: Next) -> Result<Response, &'static str> {
        let take_stream =
            || self.concurrency.take(who, Kind::Stream).ok_or("too many open streams with these credentials");
        let permit =
            self.concurrency.take(who, Kind::Request).ok_or("too many concurrent requests with these credentials")?;
        // Taken beforehand, so that no work starts for a stream that is then refused.
        let reserved = wants_stream(request.headers()).then(take_stream).transpose()?;
        let response = next.run(request).await;
        drop(permit);
        if !is_stream(response.headers()) {
            return Ok(response);
        }
        let stream = reserved.map_or_else(take_stream, Ok)?;
        Ok(holding(response, stream))
    }

    /// The answer to failed authentication, counted by address. Other requests from the same address are still
    /// accepted, because many people may share one.
    pub(super) fn failed(&self, address: Option<IpAddr>, problem: Problem) -> Problem {
        let (Some(failures), Some(address)) = (&self.failures, address) else { return problem };
        if problem.code() != ErrorCode::Unauthorized {
            return problem;
        }
        match failures.check(&network(address)) {
            Ok(_) => problem,
            Err(wait) => limited("too many failed authentications from this address", wait),
        }
    }
}

/// Whether the client wants a stream from an endpoint that can also answer without one.
fn wants_stream(headers: &HeaderMap) -> bool {
    matches!(Form::wanted(headers, &[Form::Json, Form::Stream]), Ok(Form::Stream))
}

/// The key to count an address by: an IPv6 address is counted with its network of 64 bits, which is one subscriber's.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_address_is_counted_with_its_network() {
        let of = |text: &str| network(text.parse().unwrap()).to_string();
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(of("::ffff:10.0.0.1"), "10.0.0.1");
        assert_eq!(of("10.0.0.1"), "10.0.0.1");
    }
}
