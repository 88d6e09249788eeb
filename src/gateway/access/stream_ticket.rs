//! Stream tickets in URLs: `?ticket=` opens one event stream, for a client that cannot send headers, such as a browser's
//! `EventSource`. The layer replaces the ticket with the credentials of its creator before the request is authenticated. So
//! everything behind it handles the request as one of the creator, and never meets the ticket.

use axum::extract::{MatchedPath, OriginalUri, Query, Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Method, Uri};
use axum::middleware::Next;
use axum::response::Response;
use serde::Deserialize;
use toolgate_core::error::ErrorCode;
use toolgate_core::id::SessionId;
use toolgate_ports::{KeyHash, TicketedStream};
use toolgate_service::unseal_ticket;

use super::authenticate::address;
use crate::problem::Problem;
use crate::state::Gateway;

const PARAMETER: &str = "ticket=";

/// Replaces the ticket of a request, if it has one, with the credentials of its creator.
pub(crate) async fn redeem_ticket(
    State(gateway): State<Gateway>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    if !parameters(request.uri()).any(|parameter| parameter.starts_with(PARAMETER)) {
        return Ok(next.run(request).await);
    }
    let (mut parts, body) = request.into_parts();
    if parts.headers.contains_key(AUTHORIZATION) {
        let detail = "send either `Authorization` or a ticket, not both";
        return Err(Problem::new(ErrorCode::InvalidRequest, detail));
    }
    let route = parts.extensions.get::<MatchedPath>().map(MatchedPath::as_str);
    let opened = (parts.method == Method::GET).then(|| OpenedStream::new(route?, &parts.uri)).flatten();
    let credentials = redeemed(&gateway, &parts.uri, opened).await;
    let credentials = credentials.map_err(|problem| gateway.access().limiter.failed(address(&parts), problem))?;
    if let Some(credentials) = credentials {
        parts.headers.insert(AUTHORIZATION, credentials);
    }
    parts.uri = without_ticket(&parts.uri);
    if let Some(OriginalUri(original)) = parts.extensions.get_mut() {
        *original = without_ticket(original);
    }
    Ok(next.run(Request::from_parts(parts, body)).await)
}

/// The credentials of the ticket's creator, if the ticket is valid for the stream.
async fn redeemed(gateway: &Gateway, uri: &Uri, opened: Option<OpenedStream>) -> Result<Option<HeaderValue>, Problem> {
    let mut secrets = parameters(uri).filter_map(|parameter| parameter.strip_prefix(PARAMETER));
    let (Some(secret), None, Some(opened)) = (secrets.next(), secrets.next(), opened) else { return Err(refused()) };
    let Some(tickets) = gateway.stream_tickets() else { return Err(refused()) };
    let ticket = tickets.ticket(&KeyHash::for_secret(secret)).await?.ok_or_else(refused)?;
    if ticket.expires_at <= gateway.service().runner().now() || !opened.is_opened_by(&ticket.stream) {
        return Err(refused());
    }
    let Some(credentials) = unseal_ticket(secret, &ticket).map_err(|_| refused())? else { return Ok(None) };
    let mut credentials = HeaderValue::from_bytes(&credentials).map_err(|_| refused())?;
    credentials.set_sensitive(true);
    Ok(Some(credentials))
}

/// The answer to a ticket that is unknown, has expired, or is of another stream. It does not say which.
fn refused() -> Problem {
    let detail = "this ticket has expired, or does not open this stream; create a new one";
    let challenge = HeaderValue::from_static(r#"Bearer realm="toolgate", error="invalid_token""#);
    Problem::new(ErrorCode::Unauthorized, detail).header(WWW_AUTHENTICATE, challenge)
}

/// The stream that a request opens.
enum OpenedStream {
    Run(String),
    Events { session: Option<SessionId> },
    Approvals,
}

/// The filters of a stream that a ticket can be limited to.
#[derive(Deserialize)]
struct TicketedFilters {
    session_id: Option<SessionId>,
}

impl OpenedStream {
    /// The stream of a route, which may be nested in another application's path; `None` if a ticket opens no such route.
    fn new(route: &str, uri: &Uri) -> Option<Self> {
        let (_, route) = route.rsplit_once("/v1/")?;
        Some(match route {
            "runs/{run}/events" => Self::Run(uri.path().strip_suffix("/events")?.rsplit_once('/')?.1.to_owned()),
            "events" => Self::Events { session: Query::<TicketedFilters>::try_from_uri(uri).ok()?.0.session_id },
            "approvals/events" => Self::Approvals,
            _ => return None,
        })
    }

    fn is_opened_by(&self, ticket: &TicketedStream) -> bool {
        match (self, ticket) {
            (Self::Run(opened), TicketedStream::Run(run)) => opened == run.as_str(),
            (Self::Events { session }, TicketedStream::Session(only)) => session.as_ref() == Some(only),
            (Self::Events { .. }, TicketedStream::Events) | (Self::Approvals, TicketedStream::Approvals) => true,
            (Self::Run(_) | Self::Events { .. } | Self::Approvals, _) => false,
        }
    }
}

/// The parameters of a query, as they are written.
fn parameters(uri: &Uri) -> impl Iterator<Item = &str> {
    uri.query().unwrap_or_default().split('&')
}

/// The address without the ticket.
fn without_ticket(uri: &Uri) -> Uri {
    let rest: Vec<&str> = parameters(uri).filter(|parameter| !parameter.starts_with(PARAMETER)).collect();
    let query = if rest.is_empty() { String::new() } else { format!("?{}", rest.join("&")) };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = format!("{}{query}", uri.path()).parse().ok();
    // A part of a valid address is valid.
    Uri::from_parts(parts).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ticket_is_removed_and_nothing_else() {
        for (address, rest) in [
            ("/v1/events?ticket=x", "/v1/events"),
            ("/v1/events?after=3&ticket=x&type=a%2Cb", "/v1/events?after=3&type=a%2Cb"),
            ("http://localhost/v1/events?ticket=x&ticket=y", "http://localhost/v1/events"),
            ("/v1/runs?metadata={%22ticket%22:9}", "/v1/runs?metadata={%22ticket%22:9}"),
        ] {
            assert_eq!(without_ticket(&address.parse().unwrap()).to_string(), rest);
        }
    }

    #[test]
    fn a_ticket_opens_exactly_one_stream() {
        let opened = |route: &str, address: &str| OpenedStream::new(route, &address.parse().unwrap());
        let run = opened("/api/v1/runs/{run}/events", "/api/v1/runs/run_1/events?ticket=x").unwrap();
        let session = opened("/v1/events", "/v1/events?session_id=chat%2F7&ticket=x").unwrap();
        let events = opened("/v1/events", "/v1/events").unwrap();
        let approvals = opened("/v1/approvals/events", "/v1/approvals/events").unwrap();
        assert!(opened("/v1/runs", "/v1/runs").is_none());
        assert!(opened("/v1/events", "/v1/events?session_id=a&session_id=b").is_none());
        let tickets = [
            TicketedStream::Run("run_1".into()),
            TicketedStream::Session("chat/7".into()),
            TicketedStream::Events,
            TicketedStream::Approvals,
            TicketedStream::Run("run_2".into()),
            TicketedStream::Session("chat".into()),
        ];
        let opens = |stream: &OpenedStream| tickets.each_ref().map(|ticket| stream.is_opened_by(ticket));
        assert_eq!(opens(&run), [true, false, false, false, false, false]);
        assert_eq!(opens(&session), [false, true, true, false, false, false]);
        assert_eq!(opens(&events), [false, false, true, false, false, false]);
        assert_eq!(opens(&approvals), [false, false, false, true, false, false]);
    }
}
