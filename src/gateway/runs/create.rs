//! `POST /v1/runs`

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::asked::{Asked, Quoting};
use super::events::FrameDescription;
use super::input::NewInput;
use super::media_url::MediaHosts;
use super::view::RunView;
use crate::core::id::{AgentName, Principal, RunId, ServerId, SessionId};
use crate::core::pattern::NamePattern;
use crate::core::run::TighterLimits;
use crate::core::tool::{ExternalTool, ToolFilter};
use crate::gateway::access::{Caller, Scope};
use crate::gateway::body::Body;
use crate::gateway::idempotency::RunToBe;
use crate::gateway::named;
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::state::Gateway;
use crate::runner::Request;

/// How many tools a request may bring: each has schemas to be compiled, and no model is offered more.
const MOST_TOOLS: usize = 1000;

/// A run to be started.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewRun)]
pub(in crate::gateway) struct NewRun {
    /// The agent; the only one, or `assistant`, unless it is named.
    #[schema(value_type = Option<String>, example = "support")]
    agent: Option<AgentName>,
    /// What the run is to do: the user's message, or the conversation up to it.
    #[schema(example = "Refund order 77")]
    input: NewInput,
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
    #[serde(default)]
    #[schema(value_type = super::limits::LimitsDescription)]
    limits: TighterLimits,
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
    params(
        ("Prefer" = Option<String>, Header, description = "`wait=SECONDS`: how long to wait for the run to rest; `respond-async`: not at all"),
        Quoting,
    ),
    responses(
        (status = 201, description = "The run rests: it is over, or owed something; or what it does until then", content((RunView = "application/json"), (FrameDescription = "text/event-stream"))),
        (status = 202, description = "The run goes on", body = RunView),
        (status = "default", description = "The request was refused", body = ProblemView, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn create(
    State(gateway): State<Gateway>,
    caller: Caller,
    asked: Asked,
    RunToBe(id): RunToBe,
    Body(new): Body<NewRun>,
) -> Result<Response, Problem> {
    caller.require(Scope::RunsWrite)?;
    let id = id.unwrap_or_else(|| gateway.runner_of(&caller).fresh_id());
    create_with_id(&gateway, &caller, asked, new, id).await
}

/// Starts a run under an id that was made before, so that whoever noted it down can find the run whatever becomes of the
/// request.
pub(in crate::gateway) async fn create_with_id(
    gateway: &Gateway,
    caller: &Caller,
    asked: Asked,
    new: NewRun,
    id: RunId,
) -> Result<Response, Problem> {
    let runner = gateway.runner_of(caller);
    let agent = new.agent.clone().map_or_else(|| runner.usual_agent(), Ok)?;
    let request =
        Request { trace: asked.trace.clone(), id: Some(id), ..new.request(agent, gateway.settings().media_hosts)? };
    let execution = runner.start(request).await?;
    let run = runner.run(execution.run.as_str()).await?;
    asked.answer(gateway, run, execution, StatusCode::CREATED).await
}

impl NewRun {
    fn request(self, agent: AgentName, hosts: MediaHosts) -> Result<Request, Problem> {
        named::fit("/session_id", self.session_id.as_ref().map(SessionId::as_str))?;
        named::fit("/principal", self.principal.as_ref().map(Principal::as_str))?;
        if self.external_tools.len() > MOST_TOOLS {
            return Err(Problem::invalid("/external_tools", format!("at most {MOST_TOOLS} tools")));
        }
        let (history, input) = self.input.messages(hosts)?;
        Ok(Request {
            input,
            history,
            session: self.session_id,
            principal: self.principal,
            external_tools: self.external_tools,
            servers: self.servers,
            tools: self.tools.filter()?,
            output_schema: self.output_schema,
            limits: self.limits,
            metadata: self.metadata,
            ..Request::new(agent, "")
        })
    }
}

impl NewFilter {
    /// A pattern that cannot be read would let nothing through, and nobody would hear why.
    fn filter(self) -> Result<ToolFilter, Problem> {
        for (list, patterns) in [("allow", &self.allow), ("deny", &self.deny)] {
            for (index, pattern) in patterns.iter().enumerate() {
                pattern.fits("").map_err(|why| {
                    Problem::invalid(format!("/tools/{list}/{index}"), format!("this pattern cannot be read: {why}"))
                })?;
            }
        }
        Ok(ToolFilter { allow: self.allow, deny: self.deny })
    }
}
