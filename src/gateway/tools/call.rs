//! `POST /v1/tools/{tool}/call`

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::core::error::ErrorCode;
use crate::core::id::{AgentName, Principal, RunId, SessionId};
use crate::core::run::{Rejection, Run, TighterLimits};
use crate::core::tool::{CallFailure, Outcome, Problem as Finding, ToolOutput};
use crate::gateway::access::{Caller, Scope};
use crate::gateway::answer::traced;
use crate::gateway::body::{Body, Path};
use crate::gateway::completion::ClientGone;
use crate::gateway::named;
use crate::gateway::problem::{FieldProblem, Problem, ProblemView};
use crate::gateway::runs::{Patience, PendingView, StatusView};
use crate::gateway::state::Gateway;
use crate::runner::{Agent, Called, Request};

/// A call to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewCall)]
pub(super) struct NewCall {
    /// The agent whose tool it is, and whose policy holds; the only one, or `assistant`, unless it is named.
    #[schema(value_type = Option<String>)]
    agent: Option<AgentName>,
    /// The arguments.
    #[serde(default)]
    #[schema(value_type = Object)]
    arguments: Map<String, Value>,
    /// The conversation it belongs to; default: one of its own.
    #[schema(value_type = Option<String>)]
    session_id: Option<SessionId>,
    /// On whose behalf it is made, if the key does not say.
    #[schema(value_type = Option<String>)]
    principal: Option<Principal>,
    /// Seconds there are for all of it, the wait for an approval included.
    #[schema(minimum = 1)]
    timeout_s: Option<u64>,
}

/// A call that was made, or waits for somebody.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ToolCall)]
pub(super) struct CallView {
    /// `tool.call`.
    object: &'static str,
    /// The run that it is: what is pending is given to it.
    run_id: String,
    /// Where that run stands.
    status: StatusView,
    /// The name of the tool.
    tool: String,
    /// What the tool returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<ResultView>,
    /// Why it returned nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<CallErrorView>,
    /// What is owed before it goes on; empty unless it is `pending`.
    pending: Vec<PendingView>,
}

/// What a tool returned.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ToolResult)]
struct ResultView {
    /// Parts, each with a `type`.
    #[schema(value_type = Vec<Object>)]
    content: Vec<Value>,
    /// The structured form, if the tool gave one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    structured: Option<Value>,
    /// Whether the tool says that it failed.
    is_error: bool,
}

/// Why a call was made and nothing was returned.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ToolCallError)]
struct CallErrorView {
    /// The kind: `timeout`, `disconnected`, `unavailable`, …, or `unknown` where nobody knows whether it took effect.
    kind: &'static str,
    /// What happened and what to do.
    message: String,
}

/// Call a tool without a model
///
/// It is a run of one call, with everything a call of the agent is subject to: arguments are validated, the policy is asked, a
/// person may be asked. A call that waits for somebody is answered with what is `pending`; read its run for the result.
#[utoipa::path(
    post, path = "/v1/tools/{tool}/call", tag = "tools", operation_id = "callTool", request_body = NewCall,
    params(
        ("tool" = String, Path, description = "The tool, by the name the model sees"),
        ("Prefer" = Option<String>, Header, description = "`wait=SECONDS`: how long to wait for the call; `respond-async`: not at all"),
    ),
    responses(
        (status = 200, description = "The call was made", body = CallView),
        (status = 202, description = "The call waits for somebody, or is under way", body = CallView),
        (status = "default", description = "The request was refused", body = ProblemView, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn call(
    State(gateway): State<Gateway>,
    caller: Caller,
    headers: HeaderMap,
    gone: ClientGone,
    Path(tool): Path<String>,
    Body(mut new): Body<NewCall>,
) -> Result<Response, Problem> {
    caller.require(Scope::ToolsCall)?;
    let patience = Patience::of(&headers, gateway.settings());
    let runner = gateway.runner_of(&caller);
    let name = new.agent.take().map_or_else(|| runner.usual_agent(), Ok)?;
    named::fit("/session_id", new.session_id.as_ref().map(SessionId::as_str))?;
    named::fit("/principal", new.principal.as_ref().map(Principal::as_str))?;
    let arguments = std::mem::take(&mut new.arguments);
    let agent = runner.agent(name.as_str()).map_err(|unknown| unknown.of_field("/agent"))?;
    let request = Request { trace: traced(&headers), ..new.request(agent) };
    let execution = runner.call(request, &tool, &arguments).await?;
    let id = execution.run.clone();
    patience.wait(execution, &gone).await?;
    let (run, called) = runner.called(&id).await?;
    let (result, error) = match called {
        Called::Open => (None, None),
        Called::Ended(outcome) => came_of(&outcome),
        Called::Rejected { reason, message, problems } => return Err(rejected(reason, message, &problems)),
        Called::Abandoned(failure) => return Err(failure.into()),
    };
    let status = if result.is_none() && error.is_none() { StatusCode::ACCEPTED } else { StatusCode::OK };
    let location = gateway.address_of(&id);
    let view = CallView::of(&id, &run, tool, result, error);
    Ok((status, [(LOCATION, location)], Json(view)).into_response())
}

impl NewCall {
    fn request(self, agent: &Arc<Agent>) -> Request {
        let own = agent.limits.deadline_s;
        let deadline_s = own.into_iter().chain(self.timeout_s).min();
        Request {
            session: self.session_id,
            principal: self.principal,
            limits: TighterLimits { deadline_s, ..TighterLimits::default() },
            ..Request::new(agent.name.clone(), "")
        }
    }
}

impl CallView {
    fn of(id: &RunId, run: &Run, tool: String, result: Option<ResultView>, error: Option<CallErrorView>) -> Self {
        Self {
            object: "tool.call",
            run_id: id.to_string(),
            status: run.status().into(),
            tool,
            result,
            error,
            pending: run.open_items().iter().map(|debt| PendingView::of(id, debt)).collect(),
        }
    }
}

fn came_of(outcome: &Outcome) -> (Option<ResultView>, Option<CallErrorView>) {
    match outcome {
        Outcome::Returned(ToolOutput { content, structured, is_error, .. }) => {
            let content = content.iter().filter_map(|part| serde_json::to_value(part).ok()).collect();
            (Some(ResultView { content, structured: structured.clone(), is_error: *is_error }), None)
        }
        Outcome::Failed(CallFailure { kind, message }) => {
            (None, Some(CallErrorView { kind: kind.as_str(), message: message.clone() }))
        }
        Outcome::Unknown => {
            let message = "the call was sent, and nobody knows how it ended; it may have taken effect".to_owned();
            (None, Some(CallErrorView { kind: "unknown", message }))
        }
    }
}

fn rejected(reason: Rejection, message: String, problems: &[Finding]) -> Problem {
    match reason {
        Rejection::InvalidArguments => {
            let at = |finding: &Finding| FieldProblem {
                pointer: format!("/arguments{}", finding.path),
                detail: finding.message.clone(),
            };
            problems
                .iter()
                .fold(Problem::new(ErrorCode::Validation, message), |problem, finding| problem.and(at(finding)))
        }
        Rejection::Denied => Problem::new(ErrorCode::ToolDenied, message),
        Rejection::Expired => Problem::new(ErrorCode::Expired, message),
        Rejection::Unknown => Problem::new(ErrorCode::NotFound, message),
        Rejection::Budget | Rejection::Deferred => Problem::new(ErrorCode::TurnLimit, message),
    }
}
