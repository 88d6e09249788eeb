//! CORS and origin checks of requests from browsers. A page of any site can send requests from the machine of the user who opens it,
//! and a name that resolves to the loopback address later (DNS rebinding) makes them look local. So a page's origin is
//! allowed where it is configured or is this server's own (its `/docs` page), and an anonymous listener answers to names of
//! this machine only, whatever the origin says.

use std::net::IpAddr;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, ETAG, HOST, IF_MATCH, IF_NONE_MATCH, LOCATION, ORIGIN, RETRY_AFTER,
};
use axum::http::{HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::Response;
use toolgate_core::error::ErrorCode;
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::client_trace::TRACE_RESPONSE;
use crate::problem::Problem;
use crate::state::Gateway;

/// How long a browser may cache a preflight response.
const PREFLIGHT: Duration = Duration::from_secs(600);

/// The origins and host names that the server accepts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins {
    /// The origins of allowed pages, such as `https://app.example.com`. Pages of this server itself are always allowed.
    pub allowed: Vec<String>,
    /// Host names of this server besides those of the loopback address; `None` if it accepts any.
    pub hosts: Option<Vec<String>>,
}

impl Origins {
    /// The CORS headers. They never allow credentials that a browser adds by itself.
    pub(crate) fn cors(&self) -> CorsLayer {
        let origins = self.allowed.iter().filter_map(|origin| HeaderValue::from_str(origin).ok());
        let named = HeaderName::from_static;
        CorsLayer::new()
            .allow_origin(AllowOrigin::list(origins))
            .allow_methods([Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
            .allow_headers([
                ACCEPT,
                AUTHORIZATION,
                CONTENT_TYPE,
                IF_MATCH,
                IF_NONE_MATCH,
                named("idempotency-key"),
                named("last-event-id"),
                named("prefer"),
                named("baggage"),
                named("traceparent"),
                named("tracestate"),
                named("x-request-id"),
            ])
            .expose_headers([
                ETAG,
                LOCATION,
                RETRY_AFTER,
                named("idempotent-replayed"),
                named("preference-applied"),
                named("ratelimit"),
                named("ratelimit-policy"),
                TRACE_RESPONSE,
                named("x-request-id"),
            ])
            .max_age(PREFLIGHT)
    }

    fn check(&self, request: &Request) -> Result<(), Problem> {
        if let Some(hosts) = &self.hosts {
            let host = host(request);
            let is_known = |name: &str| is_loopback(name) || hosts.iter().any(|known| known.eq_ignore_ascii_case(name));
            if !host.is_some_and(is_known) {
                let detail = "the name in `Host` is not a name of this server; use `localhost`, or add the name to \
                              `gateway.hosts`";
                return Err(Problem::new(ErrorCode::Forbidden, detail));
            }
        }
        if is_slipped_in(request) {
            let detail = "a page of another site sent this request without an `Origin` (`Sec-Fetch-Site`)";
            return Err(Problem::new(ErrorCode::Forbidden, detail));
        }
        for origin in request.headers().get_all(ORIGIN) {
            let is_listed = self.allowed.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes());
            if !is_listed && !is_own(request, origin) {
                let detail = "pages of this origin are not allowed; `gateway.cors.origins` lists those that are";
                return Err(Problem::new(ErrorCode::Forbidden, detail));
            }
        }
        Ok(())
    }
}

/// Refuses requests of pages of other origins, where the gateway has rules for browsers.
pub(crate) async fn check_origin(
    State(gateway): State<Gateway>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    if let Some(origins) = &gateway.access().origins {
        origins.check(&request)?;
    }
    Ok(next.run(request).await)
}

/// Whether a browser sends a request for a page of another site the way it fetches pictures: without `Origin`. The page
/// cannot read the response, but the request could start servers and hold streams open.
fn is_slipped_in(request: &Request) -> bool {
    let is_foreign = |site: &HeaderValue| site != "same-origin" && site != "none";
    let headers = request.headers();
    request.uri().path().starts_with("/v1/")
        && !headers.contains_key(ORIGIN)
        && headers.get_all("sec-fetch-site").iter().any(is_foreign)
}

/// Whether the request comes from a page of this server: its origin has the host and port that the request was sent to.
/// Where the browser itself says how the two relate (`Sec-Fetch-Site`), it has to say the same: it knows the scheme,
/// which a proxy that terminates TLS hides.
fn is_own(request: &Request, origin: &HeaderValue) -> bool {
    let authority_of_origin = || {
        let (scheme, authority) = origin.to_str().ok()?.split_once("://")?;
        let default_port = match scheme {
            "http" => ":80",
            "https" => ":443",
            _ => return None,
        };
        let asked = authority_asked(request)?;
        Some(authority.eq_ignore_ascii_case(asked.strip_suffix(default_port).unwrap_or(asked)))
    };
    let sites = request.headers().get_all("sec-fetch-site");
    sites.iter().all(|site| site == "same-origin") && authority_of_origin().unwrap_or(false)
}

/// The requested host name, without its port.
fn host(request: &Request) -> Option<&str> {
    without_port(authority_asked(request)?)
}

/// The host and port that a request was sent to. A request with two hosts has neither.
fn authority_asked(request: &Request) -> Option<&str> {
    let mut hosts = request.headers().get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(_), Some(_)) => None,
        (Some(host), None) => host.to_str().ok(),
        (None, _) => Some(request.uri().authority()?.as_str()),
    }
}

fn without_port(authority: &str) -> Option<&str> {
    if let Some(rest) = authority.strip_prefix('[') {
        return rest.split_once(']').map(|(address, _)| address);
    }
    Some(authority.rsplit_once(':').map_or(authority, |(name, _)| name)).filter(|name| !name.is_empty())
}

/// Whether a name can only mean this machine. An IPv4 address is compared as written: `127.1` is not interpreted.
fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unambiguous_names_mean_this_machine() {
        for own in ["localhost", "LOCALHOST:8484", "127.0.0.1", "127.0.0.1:8484", "127.9.9.9:1", "[::1]:8484", "[::1]"]
        {
            assert!(is_loopback(without_port(own).unwrap()), "{own}");
        }
        for foreign in [
            "evil.example",
            "localhost.evil.example:8484",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "[::2]:80",
            "0.0.0.0",
            "127.1",
            "localhost.",
        ] {
            assert!(!is_loopback(without_port(foreign).unwrap()), "{foreign}");
        }
        for none in ["", ":80", "[::1"] {
            assert_eq!(without_port(none), None, "{none}");
        }
    }
}
