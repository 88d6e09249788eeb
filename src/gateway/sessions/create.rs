//! `POST /v1/sessions`

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use serde_json::{Map, Value};
use toolgate_core::id::{AgentName, Principal, SessionId, Tenant};
use toolgate_ports::{SessionLimits, SessionSettings};
use toolgate_runner::NewSession;
use toolgate_service::Scope;
use utoipa::ToSchema;

use super::view::{SessionLimitsView, SessionView, tagged};
use crate::access::Authenticated;
use crate::body::Body;
use crate::idempotency::QuotedSession;
use crate::problem::Problem;
use crate::state::Gateway;

/// A session to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewSession)]
pub(super) struct NewSessionBody {
    /// The session's id: 1 to 256 bytes. Default: a new one.
    #[schema(value_type = Option<String>, example = "chat-77")]
    id: Option<SessionId>,
    /// The agent of its runs. Default: the only agent, or `assistant`.
    #[schema(value_type = Option<String>, example = "support")]
    agent: Option<AgentName>,
    /// The principal on whose behalf its runs act, if the key has none.
    #[schema(value_type = Option<String>)]
    principal: Option<Principal>,
    /// A title of at most 256 bytes. Default: the beginning of the first message.
    title: Option<String>,
    /// Your own data about the session, of at most 16 KiB.
    #[serde(default)]
    #[schema(value_type = Object)]
    metadata: Map<String, Value>,
    /// Limits of its runs together. Default: none.
    #[serde(default)]
    #[schema(value_type = SessionLimitsView)]
    limits: SessionLimits,
    /// Seconds without use after which the next run does not continue the conversation. Default: the agent's setting.
    #[schema(example = 86400)]
    expire_after_s: Option<u64>,
    /// The permission mode of its runs: one of the agent's `modes`, or the name of its policy. Default: the agent's policy.
    #[schema(example = "plan")]
    mode: Option<String>,
}

/// Create a session
///
/// Creates a session without a run. A run that names an unknown session creates it too, so this request is only needed
/// for a title, metadata, limits, a permission mode, a time of expiry, or an id of toolgate's.
#[utoipa::path(
    post, path = "/v1/sessions", tag = "sessions", operation_id = "createSession", request_body = NewSessionBody,
    responses(
        (status = 201, description = "The session", body = SessionView),
    ),
)]
pub(super) async fn create(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Body(new): Body<NewSessionBody>,
) -> Result<Response, Problem> {
    caller.require(Scope::RunsWrite)?;
    let runner = gateway.runner_of(&caller);
    let new = NewSession {
        id: new.id,
        tenant: Tenant::default(),
        agent: new.agent.map_or_else(|| runner.default_agent(), Ok)?,
        principal: new.principal,
        title: new.title,
        settings: SessionSettings {
            metadata: new.metadata,
            limits: new.limits,
            expire_after_s: new.expire_after_s,
            mode: new.mode,
        },
        by: None,
    };
    let row = runner.create_session(new).await?.row;
    let location = gateway.address_of_session(&row.id);
    let quoted = QuotedSession(row.id.clone());
    Ok((StatusCode::CREATED, quoted, [(LOCATION, location)], tagged(&runner, row)).into_response())
}
