//! `/v1/stream-tickets`: tickets that open one event stream, for clients that cannot send headers.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};
use toolgate_core::error::ErrorCode;
use toolgate_core::id::{RunId, SessionId};
use toolgate_core::timestamp::millis;
use toolgate_ports::TicketedStream;
use toolgate_service::{Scope, mint_ticket};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::Authenticated;
use crate::body::Body;
use crate::idempotency::Repeatable;
use crate::problem::Problem;
use crate::state::Gateway;

const DEFAULT_LIFETIME: u64 = 60;
const LONGEST_LIFETIME: u64 = 3600;

pub(super) fn routes() -> OpenApiRouter<Gateway> {
    OpenApiRouter::new().routes(routes!(create))
}

/// A ticket to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewStreamTicket {
    /// The stream that the ticket opens.
    stream: StreamKind,
    /// The run, for the stream of a run.
    #[schema(value_type = Option<String>)]
    run_id: Option<RunId>,
    /// The session, for the stream of a session.
    #[schema(value_type = Option<String>)]
    session_id: Option<SessionId>,
    /// How long the ticket opens the stream, in seconds. Default: 60. A stream that is open stays open.
    #[schema(minimum = 1, maximum = 3600)]
    expires_in_s: Option<u64>,
}

/// A kind of stream.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum StreamKind {
    /// `GET /v1/runs/{run}/events`.
    Run,
    /// `GET /v1/events` with the `session_id`.
    Session,
    /// `GET /v1/events`.
    Events,
    /// `GET /v1/approvals/events`.
    Approvals,
}

/// A ticket.
#[derive(Serialize, ToSchema)]
#[schema(as = StreamTicket)]
struct TicketView {
    /// Always `stream_ticket`.
    object: &'static str,
    /// The ticket, for the query parameter `ticket`.
    ticket: String,
    /// The address of the stream, with the ticket.
    url: String,
    /// When the ticket stops opening the stream.
    #[schema(value_type = String, format = DateTime)]
    #[serde(serialize_with = "millis")]
    expires_at: Timestamp,
}

/// Create a stream ticket
///
/// Returns a ticket that opens one event stream without a key, for a browser's `EventSource`: `GET` the `url`. It can be
/// used again until it expires, so that a client can reconnect. It allows no more than your credentials do, and a stream
/// that it opened ends when they become invalid. It needs the scope of the stream: `runs:read`, or `approvals:read` for
/// `approvals`. A repeat with the same `Idempotency-Key` returns another ticket.
#[utoipa::path(
    post, path = "/v1/stream-tickets", tag = "stream-tickets", operation_id = "createStreamTicket",
    request_body = NewStreamTicket,
    responses((status = 201, description = "The ticket", body = TicketView)),
)]
async fn create(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    Body(new): Body<NewStreamTicket>,
) -> Result<Response, Problem> {
    let seconds = new.expires_in_s.unwrap_or(DEFAULT_LIFETIME);
    if !(1..=LONGEST_LIFETIME).contains(&seconds) {
        return Err(Problem::invalid("/expires_in_s", format!("must be between 1 and {LONGEST_LIFETIME}")));
    }
    let stream = new.stream()?;
    caller.require(match stream {
        TicketedStream::Run(_) | TicketedStream::Session(_) | TicketedStream::Events => Scope::RunsRead,
        TicketedStream::Approvals => Scope::ApprovalsRead,
    })?;
    let runner = gateway.runner_of(&caller);
    if let TicketedStream::Run(run) = &stream {
        let found = runner.run(run.as_str()).await;
        found.map_err(|error| if error.code == ErrorCode::NotFound { error.of_field("/run_id") } else { error })?;
    }
    let is_anonymous = gateway.access().anonymous.as_ref().is_some_and(|anonymous| anonymous.tenant == caller.tenant);
    if !headers.contains_key(header::AUTHORIZATION) && !is_anonymous {
        let detail =
            "a ticket carries the `Authorization` header of the request that creates it, and this one has none";
        return Err(Problem::new(ErrorCode::Validation, detail));
    }
    let Some(tickets) = gateway.stream_tickets() else {
        return Err(Problem::new(ErrorCode::Unavailable, "this server has no stream tickets"));
    };
    let now = runner.now();
    let expires_at = now.checked_add(Duration::from_secs(seconds)).unwrap_or(Timestamp::MAX);
    let url = gateway.address_of_stream(&stream);
    let credentials = headers.get(header::AUTHORIZATION).map(|value| value.as_bytes());
    let no_randomness = |_| Problem::new(ErrorCode::Internal, "failed to read random bytes");
    let (secret, hash, ticket) = mint_ticket(stream, credentials, expires_at).map_err(no_randomness)?;
    tickets.put_ticket(&hash, &ticket, now).await?;
    let ticket = secret.expose_secret().to_owned();
    let separator = if url.contains('?') { '&' } else { '?' };
    let url = format!("{url}{separator}ticket={ticket}");
    let view = TicketView { object: "stream_ticket", ticket, url, expires_at };
    Ok((StatusCode::CREATED, Repeatable, Json(view)).into_response())
}

impl NewStreamTicket {
    fn stream(&self) -> Result<TicketedStream, Problem> {
        let needs = |member: &str| Problem::invalid(format!("/{member}"), "name it, for this stream and no other");
        match (self.stream, &self.run_id, &self.session_id) {
            (StreamKind::Run, Some(run), None) => Ok(TicketedStream::Run(run.clone())),
            (StreamKind::Session, None, Some(session)) => Ok(TicketedStream::Session(session.clone())),
            (StreamKind::Events, None, None) => Ok(TicketedStream::Events),
            (StreamKind::Approvals, None, None) => Ok(TicketedStream::Approvals),
            (StreamKind::Run, None, _)
            | (StreamKind::Session | StreamKind::Events | StreamKind::Approvals, Some(_), _) => Err(needs("run_id")),
            (StreamKind::Session, None, None)
            | (StreamKind::Run | StreamKind::Events | StreamKind::Approvals, _, Some(_)) => Err(needs("session_id")),
        }
    }
}
