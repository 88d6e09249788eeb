//! `POST /v1/runs`

use axum::Json;
use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::view::RunView;
use super::wait::Patience;
use crate::core::id::{AgentName, Principal, ServerId, SessionId};
use crate::core::pattern::NamePattern;
use crate::core::run::Limits;
use crate::core::tool::{ExternalTool, ToolFilter};
use crate::gateway::access::{Caller, Scope};
use crate::gateway::answer::traced;
use crate::gateway::body::Body;
use crate::gateway::idempotency::RunToBe;
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::state::Gateway;
use crate::runner::Request;

/// A run to be started.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewRun)]
pub(super) struct NewRun {
    /// The agent; the only one, or `assistant`, unless it is named.
    #[schema(value_type = Option<String>, example = "support")]
    agent: Option<AgentName>,
    /// What the run is to do: the user's message.
    #[schema(example = "Refund order 77")]
    input: String,
    /// The conversation it belongs to; default: one of its own.
    #[schema(value_type = Option<String>)]
    session_id: Option<SessionId>,
    /// On whose behalf it acts, if the key does not say.
    #[schema(value_type = Option<String>)]
    principal: Option<Principal>,
    /// Tools that you run yourself. The model sees them as `ext_<name>`.
    #[serde(default)]
    #[schema(value_type = Vec<super::tools::ExternalToolView>)]
    external_tools: Vec<ExternalTool>,
    /// Only these of the agent's MCP servers.
    #[schema(value_type = Option<Vec<String>>)]
    servers: Option<Vec<ServerId>>,
    /// Which of the agent's tools may be used: narrows, never widens.
    #[serde(default)]
    tools: NewFilter,
    /// JSON Schema of the answer, instead of the agent's.
    #[schema(value_type = Option<Object>)]
    output_schema: Option<Value>,
    /// Limits tighter than the agent's.
    #[schema(value_type = Option<Object>)]
    limits: Option<Limits>,
    /// Your own facts about the run.
    #[serde(default)]
    #[schema(value_type = Object)]
    metadata: Map<String, Value>,
}

/// Patterns of tool names (`mcp_billing_*`).
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ToolFilter)]
struct NewFilter {
    /// Names the model may see; none means all.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    allow: Vec<NamePattern>,
    /// Names it may not see.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    deny: Vec<NamePattern>,
}

/// Start a run
#[utoipa::path(
    post, path = "/v1/runs", tag = "runs", operation_id = "createRun", request_body = NewRun,
    params(("Prefer" = Option<String>, Header, description = "`wait=SECONDS`: how long to wait for the run to rest; `respond-async`: not at all")),
    responses(
        (status = 201, description = "The run rests: it is over, or owed something", body = RunView),
        (status = 202, description = "The run goes on", body = RunView),
        (status = "default", description = "The request was refused", body = ProblemView, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn create(
    State(gateway): State<Gateway>,
    caller: Caller,
    headers: HeaderMap,
    RunToBe(id): RunToBe,
    Body(new): Body<NewRun>,
) -> Result<Response, Problem> {
    caller.require(Scope::RunsWrite)?;
    let patience = Patience::of(&headers, gateway.settings());
    let runner = gateway.runner_of(&caller);
    let agent = new.agent.clone().map_or_else(|| runner.usual_agent(), Ok)?;
    let request = Request { id, trace: traced(&headers), ..new.request(agent) };
    let execution = runner.start(request).await?;
    let id = execution.run.clone();
    let rests = patience.wait(execution).await?;
    let found = runner.run(id.as_str()).await?;
    let view = RunView::of(&found.row, &found.load().await?);
    let location = format!("{}/v1/runs/{id}", gateway.settings().public_url);
    let status = if rests { StatusCode::CREATED } else { StatusCode::ACCEPTED };
    Ok((status, [(LOCATION, location)], Json(view)).into_response())
}

impl NewRun {
    fn request(self, agent: AgentName) -> Request {
        Request {
            session: self.session_id,
            principal: self.principal,
            external_tools: self.external_tools,
            servers: self.servers,
            tools: ToolFilter { allow: self.tools.allow, deny: self.tools.deny },
            output_schema: self.output_schema,
            limits: self.limits,
            metadata: self.metadata,
            ..Request::new(agent, self.input)
        }
    }
}
