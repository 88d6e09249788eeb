//! `POST /v1/tools/{tool}/call`

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolgate_core::error::ErrorCode;
use toolgate_core::id::{AgentName, Principal, RunId, SessionId};
use toolgate_core::run::{Rejection, Run, TighterLimits};
use toolgate_core::tool::{CallFailure, Outcome, Problem as Finding, ToolOutput};
use toolgate_runner::{Agent, Cause, Request, ToolCallState};
use toolgate_service::{FieldError, ServiceError, TenantRunner};
use utoipa::ToSchema;

use crate::body::{Body, Path};
use crate::client_trace::{ClientTrace, TRACE_RESPONSE, trace_response};
use crate::closed_sets::ToolErrorView;
use crate::completion::ClientGone;
use crate::problem::Problem;
use crate::runs::messages::PartView;
use crate::runs::pending::PendingView;
use crate::runs::view::StatusView;
use crate::runs::wait::WaitPreference;
use crate::state::Gateway;

/// A tool call to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewCall)]
pub(super) struct NewCall {
    /// The agent whose tool and policy apply. Default: the only agent, or `assistant`.
    #[schema(value_type = Option<String>)]
    agent: Option<AgentName>,
    /// The arguments of the call.
    #[serde(default)]
    #[schema(value_type = Object)]
    arguments: Map<String, Value>,
    /// The session whose grants cover the call. The call is no part of its conversation. Default: none.
    #[schema(value_type = Option<String>)]
    session_id: Option<SessionId>,
    /// The principal on whose behalf the call is made, if the key has none.
    #[schema(value_type = Option<String>)]
    principal: Option<Principal>,
    /// The time limit of the call in seconds, including the wait for an approval.
    #[schema(minimum = 1)]
    timeout_s: Option<u64>,
}

/// A tool call that was made, or that is pending.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ToolCall)]
pub(super) struct CallView {
    /// Always `tool.call`.
    object: &'static str,
    /// The run of the call; use it to submit required actions.
    run_id: String,
    /// The status of that run.
    status: StatusView,
    /// The tool, by the name that the model sees.
    tool_name: String,
    /// The tool's result.
    result: Option<ResultView>,
    /// Why there is no result.
    error: Option<CallErrorView>,
    /// The required actions; empty unless the run is `pending`.
    pending: Vec<PendingView>,
}

/// The result of a tool.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ToolResult)]
struct ResultView {
    /// The content, in order.
    content: Vec<PartView>,
    /// The structured result, if the tool returned one.
    #[schema(value_type = Option<Value>)]
    structured: Option<Value>,
    /// Whether the tool reports an error.
    is_error: bool,
}

/// The error of a call without a result.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ToolCallError)]
struct CallErrorView {
    /// The type.
    #[schema(value_type = ToolErrorView)]
    r#type: &'static str,
    /// A description of the error and its remedy.
    message: String,
}

/// Call a tool without a model
///
/// Creates a run with a single call, which is subject to everything that a call of the agent is: arguments are
/// validated, the policy applies, and the call may require approval. If the call is pending, the response contains the
/// required actions; retrieve the run for the result.
#[utoipa::path(
    post, path = "/v1/tools/{tool}/call", tag = "tools", operation_id = "callTool", request_body = NewCall,
    params(WaitPreference),
    responses(
        (status = 200, description = "The call was made", body = CallView),
        (status = 202, description = "The call is pending, or still running", body = CallView),
    ),
)]
pub(super) async fn call(
    State(gateway): State<Gateway>,
    runner: TenantRunner,
    ClientTrace(trace): ClientTrace,
    wait: WaitPreference,
    gone: ClientGone,
    Path(tool): Path<String>,
    Body(mut new): Body<NewCall>,
) -> Result<Response, Problem> {
    let name = new.agent.take().map_or_else(|| runner.default_agent(), Ok)?;
    let arguments = std::mem::take(&mut new.arguments);
    let agent = runner.agent(name.as_str()).map_err(|unknown| unknown.of_field("/agent"))?;
    let request = Request { trace, ..new.request(&agent) };
    let execution = runner.call(request, &tool, &arguments).await?;
    let id = execution.run.clone();
    wait.wait(execution, &gone).await?;
    let (run, called) = runner.called(&id).await?;
    let (result, error) = match called {
        ToolCallState::Open => (None, None),
        ToolCallState::Ended(outcome) => outcome_views(&outcome),
        ToolCallState::Rejected { reason, message, problems } => return Err(rejected(reason, message, &problems)),
        ToolCallState::Abandoned(failure) => {
            let failure = run.failure().unwrap_or(failure).of_run(&id);
            return Err(ServiceError::from(failure).into());
        }
    };
    let status = if result.is_none() && error.is_none() { StatusCode::ACCEPTED } else { StatusCode::OK };
    let location = gateway.address_of(&id);
    let view = CallView::new(&id, &run, tool, result, error);
    let mut response = (status, [(LOCATION, location)], Json(view)).into_response();
    let headers = response.headers_mut();
    headers.extend(wait.applied());
    headers.extend(trace_response(&run.execution_context()).map(|execution| (TRACE_RESPONSE, execution)));
    Ok(response)
}

impl NewCall {
    fn request(self, agent: &Arc<Agent>) -> Request {
        let own = agent.limits.deadline_s;
        let deadline_s = own.into_iter().chain(self.timeout_s).min();
        Request {
            session: self.session_id,
            principal: self.principal,
            cause: Cause::Api,
            limits: TighterLimits { deadline_s, ..TighterLimits::default() },
            ..Request::new(agent.name.clone(), "")
        }
    }
}

impl CallView {
    fn new(id: &RunId, run: &Run, tool: String, result: Option<ResultView>, error: Option<CallErrorView>) -> Self {
        Self {
            object: "tool.call",
            run_id: id.to_string(),
            status: run.status().into(),
            tool_name: tool,
            result,
            error,
            pending: run.open_items().iter().map(|item| PendingView::new(id, item)).collect(),
        }
    }
}

fn outcome_views(outcome: &Outcome) -> (Option<ResultView>, Option<CallErrorView>) {
    match outcome {
        Outcome::Returned(ToolOutput { content, structured, is_error, .. }) => {
            let content = content.iter().map(PartView::new).collect();
            (Some(ResultView { content, structured: structured.clone(), is_error: *is_error }), None)
        }
        Outcome::Failed(CallFailure { kind, message }) => {
            (None, Some(CallErrorView { r#type: kind.as_str(), message: message.clone() }))
        }
        Outcome::Unknown => {
            let message = "the call was sent, but its outcome is unknown; it may have taken effect".to_owned();
            (None, Some(CallErrorView { r#type: "unknown", message }))
        }
    }
}

fn rejected(reason: Rejection, message: String, problems: &[Finding]) -> Problem {
    match reason {
        Rejection::InvalidArguments => {
            let at = |finding: &Finding| FieldError {
                pointer: format!("/arguments{}", finding.path),
                detail: finding.message.clone(),
            };
            problems
                .iter()
                .fold(ServiceError::new(ErrorCode::Validation, message), |error, finding| error.and(at(finding)))
                .into()
        }
        Rejection::Denied => Problem::new(ErrorCode::ToolDenied, message),
        Rejection::Expired => Problem::new(ErrorCode::Expired, message),
        Rejection::Unknown => Problem::new(ErrorCode::NotFound, message),
        Rejection::Budget | Rejection::Deferred => Problem::new(ErrorCode::TurnLimit, message),
    }
}
