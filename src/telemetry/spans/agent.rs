//! AGENT spans: the root of an execution, with the run's totals and what happened in it as events.
//!
//! Totals have names of our own: token counts under the published names would be added up with those of the LLM spans.

use serde_json::json;

use super::attributes::{Attributes, Value, bounded};
use super::messages::arguments_text;
use super::span::SpanEvent;
use super::tool::CutShort;
use super::{SpanContent, names};
use crate::core::error::Failure;
use crate::core::run::{Ending, Rejection, Started};
use crate::ports::ModelIdentity;
use crate::telemetry::lifecycle::{Fact, LifecycleEvent};
use crate::telemetry::view::{Call, RunView};

/// How an execution ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum Finish<'a> {
    /// With the run.
    Ended(&'a Ending),
    /// The run waits for others.
    Paused,
}

impl Finish<'_> {
    /// The word for `toolgate.run.outcome`.
    pub(super) fn outcome(self) -> &'static str {
        match self {
            Self::Ended(ending) => ending.status().as_str(),
            Self::Paused => "pending",
        }
    }

    /// What went wrong, if something did.
    pub(super) fn failure(self) -> Option<Failure> {
        match self {
            Self::Ended(ending) => ending.failure(),
            Self::Paused => None,
        }
    }

    /// What became of what is still under way.
    pub(super) fn cuts_short(self) -> CutShort {
        match self {
            Self::Ended(_) => CutShort::Cancelled,
            Self::Paused => CutShort::Interrupted,
        }
    }
}

/// Everything but how it ended and what all spans of an execution share.
pub(super) fn attributes(
    started: &Started,
    view: &RunView,
    identity: &ModelIdentity,
    content: SpanContent,
    to: &mut Attributes,
) {
    to.text(names::SPAN_KIND, "AGENT");
    to.text(names::OPERATION, "invoke_agent");
    to.text(names::AGENT_NAME, started.spec.agent.as_str());
    to.text(names::GEN_AI_AGENT, started.spec.agent.as_str());
    to.text(names::PROVIDER, &identity.provider);
    to.int(names::BUDGET_USED, u64::from(view.interactions));
    to.int(names::BUDGET_MAX, u64::from(view.max_interactions()));
    to.int(names::MCP_CALLS, u64::from(view.mcp_calls));
    to.int(names::TOTAL_INPUT, view.usage.input_tokens);
    to.int(names::TOTAL_OUTPUT, view.usage.output_tokens);
    to.float(names::TOTAL_COST, view.usage.cost_usd);
    to.input(&started.input.text(), content.hide_inputs);
}

/// How it ended: the answer, or what a waiting run is owed.
pub(super) fn outcome(finish: Finish<'_>, owed: &str, content: SpanContent, to: &mut Attributes) {
    to.text(names::RUN_OUTCOME, finish.outcome());
    if let Some(failure) = finish.failure() {
        to.text(names::ERROR_TYPE, failure.code.as_str());
    }
    match finish {
        Finish::Ended(ending) => {
            if let Some(output) = ending.output() {
                to.output(&output.text, content.hide_outputs);
            }
        }
        Finish::Paused => to.output(owed, content.hide_outputs),
    }
}

/// What a waiting run is owed, as its output: readers list runs by the input and output of the root.
pub(super) fn owed(view: &RunView) -> String {
    let debt = |kind: &str, call: &Call| {
        let arguments = arguments_text(call.arguments());
        json!({ "kind": kind, "call_id": call.call.id, "tool": call.call.name, "arguments": arguments })
    };
    let open = view.calls.iter().filter(|call| call.end.is_none() && !call.deferred);
    let owed: Vec<_> = open
        .filter_map(|call| match (&call.asked, &call.decision) {
            (Some(_), None) => Some(debt("approval", call)),
            (Some(_), Some(_)) | (None, _) => call.requested.then(|| debt("external_result", call)),
        })
        .collect();
    json!({ "status": "pending", "pending": owed }).to_string()
}

/// The events a root carries: decisions of the loop, which have no span of their own.
pub(super) fn events(event: &LifecycleEvent, content: SpanContent) -> Vec<SpanEvent> {
    let Some(at) = event.at else { return Vec::new() };
    let told = SpanEvent { name: event.name(), at, attributes: fields(event) };
    match &event.fact {
        Fact::Rejected { call, reason, message } => {
            let exception = match reason {
                Rejection::Unknown => Some(format!("Tool does not exist: {}", call.name)),
                Rejection::InvalidArguments => Some(match message.as_deref().filter(|_| !content.hide_inputs) {
                    Some(message) => message.to_owned(),
                    None => format!("The arguments of {} do not fit its schema", call.name),
                }),
                Rejection::Denied | Rejection::Budget | Rejection::Deferred => None,
            };
            let exception = exception.map(|message| SpanEvent::exception(reason.as_str(), &message, at));
            std::iter::once(told).chain(exception).collect()
        }
        Fact::TierSelected { .. }
        | Fact::BudgetExhausted { .. }
        | Fact::ApprovalRequested { .. }
        | Fact::ApprovalDecided { .. }
        | Fact::ExternalRequested { .. }
        | Fact::ValidationFailed { .. }
        | Fact::MessageAdded { .. }
        | Fact::Resumed { .. } => vec![told],
        Fact::Started { .. }
        | Fact::Pending { .. }
        | Fact::Completed { .. }
        | Fact::Failed { .. }
        | Fact::Cancelled { .. }
        | Fact::ContextBuildStarted
        | Fact::ContextBuildSuccess
        | Fact::ToolsListed { .. }
        | Fact::ApprovalsResolved { .. }
        | Fact::ModelCalled { .. }
        | Fact::ModelRetrying { .. }
        | Fact::ModelReplied { .. }
        | Fact::ModelFailed { .. }
        | Fact::McpExecuting { .. }
        | Fact::McpCompleted { .. }
        | Fact::ExternalCompleted { .. }
        | Fact::OutputValidated
        | Fact::Fragment(_) => Vec::new(),
    }
}

/// The fields of a lifecycle event under our own names; what is not a scalar as JSON text.
pub(super) fn fields(event: &LifecycleEvent) -> Vec<(String, Value)> {
    let serde_json::Value::Object(fields) = serde_json::to_value(&event.fact).unwrap_or_default() else {
        return Vec::new();
    };
    let named = fields.into_iter().filter(|(name, _)| name != "type");
    named
        .map(|(name, value)| {
            let value = match value {
                serde_json::Value::String(text) => Value::Text(bounded(&text)),
                serde_json::Value::Bool(flag) => Value::Bool(flag),
                serde_json::Value::Number(number) => match number.as_i64() {
                    Some(number) => Value::Int(number),
                    None => Value::Float(number.as_f64().unwrap_or_default()),
                },
                other @ (serde_json::Value::Null | serde_json::Value::Array(_) | serde_json::Value::Object(_)) => {
                    Value::Text(bounded(&other.to_string()))
                }
            };
            (format!("toolgate.{name}"), value)
        })
        .collect()
}
