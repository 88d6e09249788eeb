//! AGENT spans: the root span of an execution, with the run's totals and its events.
//!
//! Totals use our own names: readers would add token counts under the published names to those of the LLM spans.

use jiff::Timestamp;
use serde_json::{Value as Json, json};
use toolgate_core::chat::{Usage, Usd};
use toolgate_core::id::{Principal, RunId};
use toolgate_core::lifecycle::{LifecycleEvent, LifecycleKind};
use toolgate_core::run::{
    Budget, CallVerdict, Ending, Event, OutputVerdict, PendingItem, Rejection, Run, Started, Trigger,
};
use toolgate_core::tool::Problem;
use toolgate_ports::ModelIdentity;

use super::attributes::{Attribute, Attributes, Value, without_nul};
use super::execution::Given;
use super::messages::{answer_text, arguments_text};
use super::span::SpanEvent;
use super::tool::CutShort;
use super::{SharedText, SpanContent, names};

/// The end of an execution.
#[derive(Clone, Copy, Debug)]
pub(super) enum Finish<'a> {
    Ended(&'a Ending),
    /// The run waits for its pending items.
    Paused,
    /// The execution stopped in the middle, and another one continues the run.
    HandedOver,
    /// The execution stopped in the middle: its process died or could not continue.
    Interrupted,
}

impl Finish<'_> {
    /// The value of `toolgate.run.outcome`.
    pub(super) fn outcome(self) -> &'static str {
        match self {
            Self::Ended(ending) => ending.status().as_str(),
            Self::Paused => "pending",
            Self::HandedOver | Self::Interrupted => CutShort::Interrupted.as_str(),
        }
    }

    /// The error, if there is one: the value of `error.type`, and a sentence. A cancellation is no error: a person or a
    /// program wanted it. A run that another execution continues has not failed either.
    pub(super) fn failure(self, content: SpanContent) -> Option<(&'static str, String)> {
        match self {
            Self::Ended(Ending::Cancelled { .. }) | Self::HandedOver | Self::Paused => None,
            Self::Ended(_) | Self::Interrupted => self.reason(content),
        }
    }

    /// The reason why there is no answer: a word and a sentence.
    fn reason(self, content: SpanContent) -> Option<(&'static str, String)> {
        match self {
            Self::Ended(ending) => {
                ending.failure().map(|failure| (failure.code.as_str(), content.sentence(&failure).to_owned()))
            }
            Self::Paused => None,
            Self::HandedOver | Self::Interrupted => {
                let cut = CutShort::Interrupted;
                Some((cut.as_str(), "the execution stopped before the run ended or paused".to_owned()))
            }
        }
    }

    /// The end of everything still open in the execution.
    pub(super) fn cuts_short(self) -> CutShort {
        match self {
            Self::Ended(_) => CutShort::Cancelled,
            Self::Paused | Self::HandedOver | Self::Interrupted => CutShort::Interrupted,
        }
    }
}

/// Attributes of every span of an execution.
pub(super) fn common(run: &RunId, started: &Started, resumed: bool, content: SpanContent) -> Attributes {
    let mut to = Attributes::within(content.value_bytes);
    to.text(names::SESSION_ID, started.session.as_str());
    to.text(names::CONVERSATION, started.session.as_str());
    to.text(names::RUN_ID, run.as_str());
    to.set(names::RUN_RESUMED, Value::Bool(resumed));
    match &started.trigger {
        Trigger::Manual | Trigger::Api | Trigger::Schedule { .. } | Trigger::Compaction => {}
        Trigger::Fork { run, .. } => to.text(names::RUN_FORKED_FROM, run.as_str()),
        Trigger::Retry { run, .. } => to.text(names::RUN_RETRY_OF, run.as_str()),
    }
    let principal = started.spec.principal.as_ref().map(Principal::as_str);
    to.text_if(names::USER_ID, started.metadata.get("user_id").and_then(Json::as_str).or(principal));
    if let Some(tags) = started.metadata.get("tags").and_then(Json::as_array) {
        to.texts(names::TAGS, tags.iter().filter_map(Json::as_str).map(str::to_owned));
    }
    if !started.metadata.is_empty() {
        to.object(names::METADATA, &Json::Object(started.metadata.clone()));
    }
    to
}

/// All attributes except the outcome and the ones common to all spans of an execution.
pub(super) fn attributes(
    started: &Started,
    budget: &Budget,
    before: &Usage,
    identity: &ModelIdentity,
    to: &mut Attributes,
) {
    to.word(names::SPAN_KIND, "AGENT");
    to.word(names::OPERATION, "invoke_agent");
    to.text(names::AGENT_NAME, started.spec.agent.as_str());
    to.text(names::GEN_AI_AGENT, started.spec.agent.as_str());
    to.text(names::PROVIDER, &identity.provider);
    to.text_if(names::MODEL_OPERATION, (started.trigger == Trigger::Compaction).then_some("compaction"));
    to.int(names::BUDGET_USED, u64::from(budget.tool_interactions));
    to.int(names::BUDGET_MAX, u64::from(budget.limits.max_tool_interactions));
    to.int(names::MCP_CALLS, u64::from(budget.mcp_calls));
    // Usage of this execution, so that the executions of a run add up; then usage of the run so far.
    let used = budget.usage.since(before);
    to.int(names::TOTAL_INPUT, used.input_tokens);
    to.int(names::TOTAL_OUTPUT, used.output_tokens);
    to.float(names::TOTAL_COST, used.cost_usd.map(Usd::dollars));
    to.int(names::RUN_INPUT, budget.usage.input_tokens);
    to.int(names::RUN_OUTPUT, budget.usage.output_tokens);
    to.float(names::RUN_COST, budget.usage.cost_usd.map(Usd::dollars));
}

/// The input: what the execution was given, or else the message that started the run.
pub(super) fn input(started: &Started, given: Option<&Given>, content: SpanContent, to: &mut Attributes) {
    match given {
        Some(given) => to.input(&given.text, content.hide_inputs || given.has_answers && content.hide_outputs),
        None => to.input(&started.input.text(), content.hide_inputs),
    }
}

/// The outcome: the answer, the pending items, or the reason why there is no answer. Readers list runs by the input and
/// output of the root, so both are always set.
pub(super) fn outcome(finish: Finish<'_>, pending: &[PendingItem], content: SpanContent, to: &mut Attributes) {
    to.text(names::RUN_OUTCOME, finish.outcome());
    to.text_if(names::ERROR_TYPE, finish.failure(content).map(|(word, _)| word));
    let output = match finish {
        Finish::Ended(ending) => ending.output().map(answer_text),
        Finish::Paused => Some(pending_text(pending)),
        Finish::HandedOver | Finish::Interrupted => None,
    };
    to.output(&output.unwrap_or_else(|| no_answer_text(finish, content)), content.hide_outputs);
}

/// The warnings about the result of a run that ended.
pub(super) fn warnings(finish: Finish<'_>, run: &Run, to: &mut Attributes) {
    let Finish::Ended(ending) = finish else { return };
    let codes: Vec<String> = run.warnings_of(ending).iter().map(|warning| warning.code().to_owned()).collect();
    if !codes.is_empty() {
        to.texts(names::RUN_WARNINGS, codes);
    }
}

/// The output of an execution without an answer, with the reason.
fn no_answer_text(finish: Finish<'_>, content: SpanContent) -> String {
    let error = finish.reason(content).map(|(code, message)| json!({ "code": code, "message": message }));
    json!({ "status": finish.outcome(), "error": error }).to_string()
}

/// The pending items of a run.
fn pending_text(items: &[PendingItem]) -> String {
    let view = |item: &PendingItem| {
        let Some(call) = item.call() else { return json!({ "type": item.kind() }) };
        let arguments = arguments_text(&call.arguments);
        json!({ "type": item.kind(), "call_id": call.id, "tool": call.name, "arguments": arguments })
    };
    json!({ "status": "pending", "pending": items.iter().map(view).collect::<Vec<_>>() }).to_string()
}

/// The exception event for a call that the model got wrong, with the text that the model reads.
pub(super) fn mistake(event: &Event, at: Timestamp, content: SpanContent) -> Option<SpanEvent> {
    let Event::CallChecked { verdict: CallVerdict::Rejected { reason, message, .. }, .. } = event else { return None };
    match reason {
        Rejection::Unknown | Rejection::InvalidArguments if content.hide_inputs || content.hide_outputs => {
            Some(SpanEvent::exception(reason.as_str(), "the call could not be used", at))
        }
        Rejection::Unknown | Rejection::InvalidArguments => Some(SpanEvent::exception(reason.as_str(), message, at)),
        Rejection::Denied | Rejection::Budget | Rejection::Deferred | Rejection::Expired => None,
    }
}

/// Whether [`note`] can note an event of the fact. The most frequent facts have spans of their own instead.
pub(super) fn may_be_noted(fact: &Event) -> bool {
    !matches!(
        fact,
        Event::ToolsListed { .. }
            | Event::ModelReplied { .. }
            | Event::CallsStarted { .. }
            | Event::CallCompleted { .. }
    )
}

/// The event on the root for a decision of the loop that has no span of its own.
#[expect(clippy::wildcard_enum_match_arm, reason = "picks the events that concern it")]
pub(super) fn note(fact: &Event, event: &LifecycleEvent, content: SpanContent) -> Option<SpanEvent> {
    let at = event.at?;
    match &event.fact {
        LifecycleKind::ValidationFailed { problems, advisory, .. } => {
            let told = if content.hide_inputs || content.hide_outputs { None } else { problems_of(fact, *advisory) };
            let mut attributes = fields(event);
            attributes.retain(|(name, _)| **name != *names::PROBLEMS);
            let problems = Value::Text(without_nul(problems_text(told.unwrap_or(problems))).into());
            attributes.push((names::PROBLEMS.into(), problems));
            Some(SpanEvent { name: event.name(), at, attributes })
        }
        // A person wrote the reason.
        LifecycleKind::Paused { by, via, reason: Some(_) } if content.hide_inputs || content.hide_outputs => {
            let fact = LifecycleKind::Paused { by: by.clone(), via: *via, reason: None };
            let without_reason = LifecycleEvent { fact, ..event.clone() };
            Some(SpanEvent { name: event.name(), at, attributes: fields(&without_reason) })
        }
        LifecycleKind::TierSelected { .. }
        | LifecycleKind::Rejected { .. }
        | LifecycleKind::BudgetExhausted { .. }
        | LifecycleKind::ApprovalRequested { .. }
        | LifecycleKind::PendingExtended { .. }
        | LifecycleKind::QuestionAsked { .. }
        | LifecycleKind::ExternalRequested { .. }
        | LifecycleKind::InputRequested { .. }
        | LifecycleKind::InputRequired { .. }
        | LifecycleKind::TaskStarted { .. }
        | LifecycleKind::MessageAdded { .. }
        | LifecycleKind::Paused { .. }
        | LifecycleKind::Unpaused { .. }
        | LifecycleKind::CompensationStarted { .. }
        | LifecycleKind::ModelCallRefused { .. }
        | LifecycleKind::Resumed { .. } => Some(SpanEvent { name: event.name(), at, attributes: fields(event) }),
        // The others have a span of their own, or are the start and end of the run.
        _ => None,
    }
}

/// The problems of a validation, with their messages and values.
#[expect(clippy::wildcard_enum_match_arm, reason = "picks the events that concern it")]
fn problems_of(fact: &Event, advisory: bool) -> Option<&[Problem]> {
    match fact {
        Event::CallChecked { advisory: problems, .. } if advisory => Some(problems),
        Event::CallChecked { verdict: CallVerdict::Rejected { problems, .. }, .. } if !problems.is_empty() => {
            Some(problems)
        }
        Event::OutputValidated { verdict: OutputVerdict::Invalid { problems } } => Some(problems),
        _ => None,
    }
}

/// Problems as JSON. One without a message has no member for it.
fn problems_text(problems: &[Problem]) -> String {
    let mut told = json!(problems);
    for problem in told.as_array_mut().into_iter().flatten().filter_map(serde_json::Value::as_object_mut) {
        problem.retain(|name, value| name != "message" || value != "");
    }
    told.to_string()
}

/// The fields of a lifecycle event that have a value, under our own names; values that are not scalars become JSON text.
fn fields(event: &LifecycleEvent) -> Vec<Attribute> {
    let serde_json::Value::Object(fields) = serde_json::to_value(&event.fact).unwrap_or_default() else {
        return Vec::new();
    };
    let named = fields.into_iter().filter(|(name, value)| name != "type" && !value.is_null());
    named
        .map(|(name, value)| {
            let value = match value {
                serde_json::Value::String(text) => Value::Text(without_nul(text).into()),
                serde_json::Value::Bool(flag) => Value::Bool(flag),
                serde_json::Value::Number(number) => match number.as_i64() {
                    Some(number) => Value::Int(number),
                    None => Value::Float(number.as_f64().unwrap_or_default()),
                },
                other @ (serde_json::Value::Null | serde_json::Value::Array(_) | serde_json::Value::Object(_)) => {
                    Value::Text(without_nul(other.to_string()).into())
                }
            };
            (SharedText::name("toolgate", &name), value)
        })
        .collect()
}
