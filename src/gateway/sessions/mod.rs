//! `/v1/sessions`: conversations of successive runs.

pub(super) mod view;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{ETAG, LOCATION};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use serde_json::{Map, Value};
use toolgate_core::id::{AgentName, Principal, SessionId, Tenant};
use toolgate_ports::{SessionFilter, SessionLimits, SessionSettings};
use toolgate_runner::{MemberChange, NewSession, SessionChange, SessionLimitsChange, SessionMessage};
use toolgate_service::{Scope, TenantRunner};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::Admitted;
use crate::body::{Body, Path, Query};
use crate::etag::{IfMatch, IfNoneMatch};
use crate::idempotency::{PlannedRunId, QuotedSession};
use crate::pagination::{Page, PageResult, limit, unknown_cursor};
use crate::problem::Problem;
use crate::runs::create::{NewRun, start_run};
use crate::runs::messages::{MessageListParams, MessageView};
use crate::runs::response_mode::{ResponsePreference, RestedRun, RunningRun};
use crate::state::Gateway;
use view::{SessionLimitsView, SessionView, tag, tagged};

pub(super) fn routes() -> OpenApiRouter<Gateway> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(read, change, delete))
        .routes(routes!(messages))
        .routes(routes!(start))
        .routes(routes!(compact))
}

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
    #[schema(value_type = Option<u64>, maximum = 4294967295u64, example = 86400)]
    expire_after_s: Option<u32>,
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
    responses((status = 201, description = "The session", body = SessionView)),
)]
async fn create(
    State(gateway): State<Gateway>,
    runner: TenantRunner,
    Body(new): Body<NewSessionBody>,
) -> Result<Response, Problem> {
    let new = NewSession {
        id: new.id,
        tenant: Tenant::default(),
        agent: new.agent.map_or_else(|| runner.default_agent(), Ok)?,
        principal: new.principal,
        title: new.title,
        settings: SessionSettings {
            metadata: new.metadata,
            limits: new.limits,
            expire_after_s: new.expire_after_s.map(u64::from),
            mode: new.mode,
        },
        by: None,
    };
    let row = runner.create_session(new).await?.row;
    let location = gateway.address_of_session(&row.id);
    let quoted = QuotedSession(row.id.clone());
    Ok((StatusCode::CREATED, quoted, [(LOCATION, location)], tagged(&runner, row)).into_response())
}

/// Filters of the list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListParams {
    /// Only sessions of this agent.
    #[param(value_type = Option<String>)]
    agent: Option<AgentName>,
    /// Only sessions of this principal.
    #[param(value_type = Option<String>)]
    principal: Option<Principal>,
    /// The number of sessions to return: 1 to 100. Default: 20.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
    /// A cursor: sessions after this one. Pass the `last_id` of the previous page.
    after: Option<String>,
}

/// List sessions
///
/// Returns sessions, newest first by creation time. A run that no other run continued, and that was started without
/// `session_id`, is in no session.
#[utoipa::path(
    get, path = "/v1/sessions", tag = "sessions", operation_id = "listSessions", params(ListParams),
    responses((status = 200, description = "A page of sessions", body = Page<SessionView>)),
)]
async fn list(Query(which): Query<ListParams>, runner: Admitted<TenantRunner>) -> PageResult<SessionView> {
    let limit = limit(which.limit)?;
    let before = match &which.after {
        Some(after) => Some(runner.session_row(after).await?.ok_or_else(|| unknown_cursor("session", after))?),
        None => None,
    };
    let before = before.map(|row| (row.created_at, row.id));
    let ListParams { agent, principal, .. } = which;
    let filter = SessionFilter { agent, principal, before, limit: limit + 1, ..SessionFilter::default() };
    let rows = runner.sessions(filter).await?;
    Ok(Json(Page::new(rows, limit, |row| row.id.to_string(), |row| SessionView::new(&runner, row))))
}

/// Retrieve a session
#[utoipa::path(
    get, path = "/v1/sessions/{session}", tag = "sessions", operation_id = "readSession",
    params(IfNoneMatch),
    responses(
        (status = 200, description = "The session", body = SessionView),
        (status = 304, description = "Neither the session nor its latest run has changed"),
    ),
)]
async fn read(
    if_none_match: IfNoneMatch,
    Path(session): Path<String>,
    runner: Admitted<TenantRunner>,
) -> Result<Response, Problem> {
    let row = runner.session(&session).await?.row;
    Ok(if_none_match.tagged(tag(row.version, row.head.as_ref()), SessionView::new(&runner, row)))
}

/// A merge patch of a session (RFC 7396). Fields that are left out do not change.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SessionChange)]
pub(super) struct SessionChangeBody {
    /// The title; `null` removes it, and the next message gives a new one.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    title: MemberChange<String>,
    /// Members to change; `null` as a member removes it, and `null` in place of the object removes all.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    metadata: MemberChange<Map<String, Value>>,
    /// Limits to change, which hold from the next run on; `null` as a member removes it, and `null` in place of the object
    /// removes all.
    #[serde(default)]
    #[schema(value_type = Option<SessionLimitsView>)]
    limits: MemberChange<SessionLimitsChange>,
    /// Seconds without use after which the next run does not continue the conversation; `null` for the agent's setting.
    #[serde(default)]
    #[schema(value_type = Option<u64>, maximum = 4294967295u64)]
    expire_after_s: MemberChange<u32>,
    /// The permission mode of the next runs; `null` for the agent's policy.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    mode: MemberChange<String>,
}

/// Update a session
#[utoipa::path(
    patch, path = "/v1/sessions/{session}", tag = "sessions", operation_id = "changeSession",
    request_body(content((SessionChangeBody = "application/json"), (SessionChangeBody = "application/merge-patch+json"))),
    params(IfMatch),
    responses(
        (status = 200, description = "The session as it is now", body = SessionView),
        (status = 204, description = "The session is changed; these credentials lack the scope `runs:read`"),
    ),
)]
async fn change(
    runner: TenantRunner,
    if_match: IfMatch,
    Path(session): Path<String>,
    Body(change): Body<SessionChangeBody>,
) -> Result<Response, Problem> {
    let session = runner.session(&session).await?;
    let seen = if_match.of_session(&session.row)?;
    let SessionChangeBody { title, metadata, limits, expire_after_s, mode } = change;
    let expire_after_s = expire_after_s.map(u64::from);
    let change = SessionChange { title, metadata, limits, expire_after_s, mode };
    let row = session.change(change, seen).await?.row;
    // The response has all of the session, not only what was changed.
    Ok(match runner.caller().scopes.contains(Scope::RunsRead) {
        true => tagged(&runner, row).into_response(),
        false => (StatusCode::NO_CONTENT, [(ETAG, tag(row.version, row.head.as_ref()))]).into_response(),
    })
}

/// Delete a session
///
/// Deletes the session and the data of its runs permanently, and revokes its grants. Its id remains known: retrieving it
/// returns `gone`, and no other session takes it. Cancel its live run first. Repeat a request that failed halfway.
#[utoipa::path(
    delete, path = "/v1/sessions/{session}", tag = "sessions", operation_id = "deleteSession",
    params(IfMatch),
    responses((status = 204, description = "The session is deleted, now or by an earlier request")),
)]
async fn delete(runner: TenantRunner, if_match: IfMatch, Path(session): Path<String>) -> Result<StatusCode, Problem> {
    let session = runner.session_even_if_deleted(&session).await?;
    let seen = match session.row.deleted_at {
        // A repeat only finishes the deletion.
        Some(_) => None,
        None => if_match.of_session(&session.row)?,
    };
    session.delete(seen).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// List the messages of a session
///
/// Returns the conversation, oldest first. An ended run adds its messages up to its last answered turn, as the next run
/// reads them; a live run adds its messages so far, with the calls of its current turn.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/messages", tag = "sessions", operation_id = "listSessionMessages",
    params(MessageListParams),
    responses((status = 200, description = "A page of messages", body = Page<MessageView>)),
)]
async fn messages(
    Path(session): Path<String>,
    Query(which): Query<MessageListParams>,
    runner: Admitted<TenantRunner>,
) -> PageResult<MessageView> {
    let limit = limit(which.limit)?;
    let messages = runner.session(&session).await?.messages(which.from(), limit + 1).await?;
    let found = (which.from()..).zip(messages).collect();
    let view = |(index, SessionMessage { run, message })| MessageView::new(&run, index, &message);
    Ok(Json(Page::new(found, limit, |(index, _)| index.to_string(), view)))
}

/// Start a run in a session
///
/// As *start a run*, in a session that exists. Agent and principal are those of the session by default.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/runs", tag = "sessions", operation_id = "createSessionRun", request_body = NewRun,
    params(IfMatch, ResponsePreference),
    responses((status = 201, response = inline(RestedRun)), (status = 202, response = inline(RunningRun))),
)]
async fn start(
    runner: TenantRunner,
    if_match: IfMatch,
    Path(session): Path<String>,
    preference: ResponsePreference,
    PlannedRunId(id): PlannedRunId,
    Body(new): Body<NewRun>,
) -> Result<Response, Problem> {
    let session = runner.session(&session).await?;
    let seen = if_match.of_session(&session.row)?;
    start_run(&runner, preference, id, new.in_session(&session)?, seen).await
}

/// A compaction of a session.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Compaction)]
pub(super) struct NewCompaction {
    /// The most tokens at the end of the conversation that stay as they are. Default: `keep_tokens` of the agent.
    keep_tokens: Option<u64>,
}

/// Compact a session
///
/// Starts a run that only replaces the beginning of the conversation with a summary, which a model writes. Its output is
/// the summary; it is empty if there is nothing to replace. Later runs of the session read the summary in place of the
/// replaced messages. The messages of the session do not change.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/compact", tag = "sessions", operation_id = "compactSession", request_body = NewCompaction,
    params(IfMatch, ResponsePreference),
    responses((status = 201, response = inline(RestedRun)), (status = 202, response = inline(RunningRun))),
)]
async fn compact(
    runner: TenantRunner,
    if_match: IfMatch,
    Path(session): Path<String>,
    preference: ResponsePreference,
    PlannedRunId(id): PlannedRunId,
    Body(NewCompaction { keep_tokens }): Body<NewCompaction>,
) -> Result<Response, Problem> {
    if preference.quotes() {
        runner.caller().require(Scope::RunsRead)?;
    }
    let session = runner.session(&session).await?;
    let seen = if_match.of_session(&session.row)?;
    let execution = session.compact(seen, keep_tokens, id, preference.trace.clone()).await?;
    let run = runner.run(execution.run.as_str()).await?;
    preference.answer(run, execution, StatusCode::CREATED).await
}
