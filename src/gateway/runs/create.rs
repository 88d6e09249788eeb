//! `POST /v1/runs`

use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value};
use toolgate_core::id::{AgentName, ModelName, Principal, RunId, ServerId, SessionId};
use toolgate_core::pattern::NamePattern;
use toolgate_core::run::{ModelOptions, TighterLimits};
use toolgate_core::tool::{ExternalTool, ToolChoice, ToolFilter};
use toolgate_runner::{Cause, Request};
use toolgate_service::{InputFiles, RunWebhook, TenantRunner, TenantSession};
use utoipa::ToSchema;

use super::input::NewInput;
use super::response_mode::{ResponsePreference, RestedRun, RunningRun};
use crate::body::Body;
use crate::idempotency::PlannedRunId;
use crate::problem::Problem;
use crate::webhooks::NewRunWebhook;

/// A run to start.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewRun)]
pub(crate) struct NewRun {
    /// The agent. Default: the only agent, or `assistant`.
    #[schema(value_type = Option<String>, example = "support")]
    agent: Option<AgentName>,
    /// The user's message, or the messages so far.
    #[schema(example = "Refund order 77")]
    input: NewInput,
    /// The session that the run continues: the model reads the messages of its earlier runs. An unknown id begins a
    /// session, and the id of a run without a session continues that run. Default: a conversation of its own. A session
    /// has one live run at a time; while there is one, the request fails with `conflict`.
    #[schema(example = "chat-77")]
    #[schema(value_type = Option<String>)]
    session_id: Option<SessionId>,
    /// The principal on whose behalf the run acts, if the key has none.
    #[schema(value_type = Option<String>)]
    principal: Option<Principal>,
    /// The name of the schedule that starts the run, for lists. toolgate itself has no schedules.
    #[schema(example = "nightly")]
    schedule: Option<String>,
    /// Tools that you run yourself. The model sees them as `ext_<name>`.
    #[serde(default)]
    #[schema(value_type = Vec<ExternalToolView>)]
    external_tools: Vec<ExternalTool>,
    /// The model, one of those that the agent allows: its own, its fallback models and its `models`. Default: its own.
    #[schema(value_type = Option<String>)]
    model: Option<ModelName>,
    /// Instructions that follow those of the agent in the system prompt, of at most 64 KiB, if the agent has
    /// `run_instructions`. Trusted text: do not insert what others wrote.
    instructions: Option<String>,
    /// The tools that the model may or must call while tools are available: `auto`, `required`, or the name of a tool as
    /// the model sees it. Default: the setting of the model.
    #[schema(value_type = Option<String>, example = "required")]
    tool_choice: Option<ToolChoice>,
    /// Whether the model may request several tools at once. Default: the setting of the model.
    parallel_tool_calls: Option<bool>,
    /// The sampling temperature. Default: the setting of the model.
    #[schema(minimum = 0, maximum = 2)]
    temperature: Option<f64>,
    /// The most tokens of a reply, at most the `max_tokens` of the model. Default: the setting of the model.
    #[schema(minimum = 1)]
    max_output_tokens: Option<u64>,
    /// The permission mode: one of the agent's `modes`, or the name of its policy. Default: that of the session, or the
    /// agent's policy.
    #[schema(example = "plan")]
    mode: Option<String>,
    /// The subset of the agent's MCP servers to use. Default: all of them.
    #[schema(value_type = Option<Vec<String>>)]
    servers: Option<Vec<ServerId>>,
    /// A filter of the agent's tools. It can only narrow the agent's own filter.
    #[serde(default)]
    tools: NewFilter,
    /// JSON Schema of the answer, in place of the agent's.
    #[schema(value_type = Option<Object>)]
    output_schema: Option<Value>,
    /// Limits of the run, which may only be tighter than the agent's.
    #[serde(default)]
    #[schema(value_type = toolgate_service::LimitsDescription)]
    limits: TighterLimits,
    /// Your own data about the run.
    #[serde(default)]
    #[schema(value_type = Object)]
    metadata: Map<String, Value>,
    /// A webhook of this run alone. Default: only the webhook endpoints of the tenant.
    webhook: Option<NewRunWebhook>,
}

/// Patterns of tool names (`mcp_billing_*`).
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ToolFilter)]
struct NewFilter {
    /// Names that the model may see; an empty list means all.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    allow: Vec<NamePattern>,
    /// Names that the model may not see.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    deny: Vec<NamePattern>,
}

/// Start a run
#[utoipa::path(
    post, path = "/v1/runs", tag = "runs", operation_id = "createRun", request_body = NewRun,
    params(ResponsePreference),
    responses((status = 201, response = inline(RestedRun)), (status = 202, response = inline(RunningRun))),
)]
pub(super) async fn create(
    runner: TenantRunner,
    preference: ResponsePreference,
    PlannedRunId(id): PlannedRunId,
    Body(new): Body<NewRun>,
) -> Result<Response, Problem> {
    start_run(&runner, preference, id, new, None).await
}

/// Starts a run, and responds as the client prefers. `seen` is the version that the run's session must have, where one is
/// given.
pub(crate) async fn start_run(
    runner: &TenantRunner,
    preference: ResponsePreference,
    id: Option<RunId>,
    mut new: NewRun,
    seen: Option<u64>,
) -> Result<Response, Problem> {
    // The idempotency layer generates and records the id before the run starts, so that a repeated request finds the run.
    let id = id.unwrap_or_else(|| runner.fresh_id());
    let agent = new.agent.clone().map_or_else(|| runner.default_agent(), Ok)?;
    let trace = preference.trace.clone();
    let webhook = new.webhook.take().map(RunWebhook::from);
    let request = Request { trace, id: Some(id.clone()), session_version: seen, ..new.request(agent, runner).await? };
    let execution = runner.with_webhook(&id, webhook, runner.start(request)).await?;
    let run = runner.run(execution.run.as_str()).await?;
    preference.answer(run, execution, StatusCode::CREATED).await
}

impl NewRun {
    /// The run as one of a session, with the session's agent and principal by default.
    pub(crate) fn in_session(self, session: &TenantSession) -> Result<Self, Problem> {
        if self.agent.is_none() {
            session.require_agent()?;
        }
        let session = &session.row;
        if self.session_id.as_ref().is_some_and(|named| *named != session.id) {
            return Err(Problem::invalid("/session_id", "the path names another session; leave out `session_id`"));
        }
        Ok(Self {
            agent: self.agent.or_else(|| Some(session.agent.clone())),
            session_id: Some(session.id.clone()),
            principal: self.principal.or_else(|| session.principal.clone()),
            ..self
        })
    }

    async fn request(self, agent: AgentName, runner: &TenantRunner) -> Result<Request, Problem> {
        let mut files = InputFiles::new(runner);
        let (history, input) = self.input.messages(&mut files).await?;
        Ok(Request {
            input,
            history,
            files: files.handles,
            session: self.session_id,
            principal: self.principal,
            external_tools: self.external_tools,
            model: self.model,
            model_options: ModelOptions {
                tool_choice: self.tool_choice,
                parallel_tool_calls: self.parallel_tool_calls,
                temperature: self.temperature,
                max_output_tokens: self.max_output_tokens,
            },
            instructions: self.instructions,
            mode: self.mode,
            servers: self.servers,
            tools: ToolFilter { allow: self.tools.allow, deny: self.tools.deny },
            output_schema: self.output_schema,
            limits: self.limits,
            cause: self.schedule.map_or(Cause::Api, |name| Cause::Schedule { name }),
            metadata: self.metadata,
            ..Request::new(agent, "")
        })
    }
}

/// A tool that you run yourself.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ExternalTool)]
#[allow(dead_code)] // the core reads it; this describes what it reads
pub(super) struct ExternalToolView {
    /// The tool's name; the model sees it as `ext_<name>`.
    #[schema(example = "lookup_order")]
    name: String,
    /// A description for the model.
    #[schema(default = "", required = false)]
    description: String,
    /// JSON Schema of the arguments. Default: any object.
    #[schema(value_type = Option<Object>)]
    input_schema: Option<Value>,
    /// JSON Schema of the result; a result that does not match is refused.
    #[schema(value_type = Option<Object>)]
    result_schema: Option<Value>,
    /// The tool's priority. Only the calls of the highest priority in a reply run.
    #[schema(default = 0, required = false)]
    priority: i32,
    /// How many seconds you have to return the result. After that the call expires, and the model is informed.
    deadline_s: Option<u64>,
}
