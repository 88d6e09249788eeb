//! Stop conditions of an agent (FEATURES 4.10), judged when a turn closes: a successful call of a tool in `finish_with`
//! gives the answer of the run, and after a turn for which `stop_when` holds the model answers without tools.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::state::Phase;
use super::turn::{Call, CallState, Settlement, Turn};
use super::{Output, Run, Spec, ToolAccess};
use crate::chat::{Message, Part, Stop};
use crate::error::{ErrorCode, Failure};
use crate::tool::{Builtin, Outcome};

/// The note to the model that its agent's stop condition holds.
pub(super) const STOP_NOTE: &str =
    "[toolgate] The stop condition of this run holds: no more tools will be run. Answer now with what you have.";

/// What a closed turn means for the run.
pub(super) enum StopVerdict {
    Continue,
    /// A call gave the answer of the run.
    Finished(Output),
    /// The model answers without tools.
    Stopped,
    /// The condition cannot be evaluated.
    Failed(Failure),
}

impl Spec {
    /// The schema of the arguments of the builtin tool `finish`, if the run has that tool: `finish_with` names it, and the
    /// answer is an object.
    pub fn finish_schema(&self) -> Option<&Value> {
        let is_named =
            self.rules.finish_with.iter().any(|pattern| pattern.plain_name() == Some(Builtin::Finish.name()));
        self.rules.output_schema.as_ref().filter(|schema| is_named && Self::is_object_schema(schema))
    }

    /// Whether the arguments of a call can have this schema.
    pub fn is_object_schema(schema: &Value) -> bool {
        schema.get("type").and_then(Value::as_str) == Some("object")
    }

    /// Whether a call of this tool gives the answer of the run.
    fn finishes_with(&self, tool: &str) -> bool {
        self.rules.finish_with.iter().any(|pattern| pattern.fits(tool).unwrap_or(false))
    }
}

impl Run {
    /// The verdict on the open turn, whose calls are all settled. A message that was added meanwhile continues the run.
    pub(super) fn stop_verdict(&self, turn: &Turn) -> StopVerdict {
        let spec = &self.started.spec;
        if let Some(output) = turn.calls.iter().find_map(|call| finishing_output(spec, call))
            && self.inbox.is_empty()
        {
            return StopVerdict::Finished(output);
        }
        let Some(condition) = &spec.rules.stop_when else { return StopVerdict::Continue };
        match condition.holds(&self.facts(turn)) {
            Ok(true) => StopVerdict::Stopped,
            Ok(false) => StopVerdict::Continue,
            Err(error) => {
                let message = format!("`stop_when` of agent `{}` cannot be evaluated: {error}", spec.agent);
                StopVerdict::Failed(Failure::new(ErrorCode::Validation, message))
            }
        }
    }

    pub(super) fn apply_stop_verdict(&mut self, verdict: StopVerdict) {
        match verdict {
            StopVerdict::Continue => {}
            StopVerdict::Finished(answer) => {
                self.phase = Phase::Validating { answer, stop: Stop::End, tool_access: ToolAccess::Enabled };
            }
            StopVerdict::Stopped => {
                self.stopped = true;
                self.say(Message::user(STOP_NOTE));
            }
            StopVerdict::Failed(failure) => self.tool_error = Some(failure),
        }
    }

    /// The value of `run` in a stop condition.
    fn facts(&self, turn: &Turn) -> Map<String, Value> {
        let budget = &self.budget;
        let facts = json!({
            "turns": budget.iterations,
            "tool_interactions": budget.tool_interactions,
            "mcp_calls": budget.mcp_calls,
            "tokens": budget.usage.total_tokens(),
            "cost_usd": budget.usage.cost_usd,
            "calls": turn.calls.iter().map(CallFacts::new).collect::<Vec<_>>(),
        });
        if let Value::Object(facts) = facts { facts } else { Map::new() }
    }
}

fn finishing_output(spec: &Spec, call: &Call) -> Option<Output> {
    let CallState::Settled(Settlement::Completed(outcome)) = &call.state else { return None };
    let tool = call.tool.as_ref().filter(|tool| spec.finishes_with(tool.name.as_str()))?;
    match (&**outcome, Builtin::from_origin(&tool.origin)) {
        (Outcome::Returned(result), _) if result.is_error => None,
        (Outcome::Returned(_), Some(Builtin::Finish)) => {
            Some(Output { text: call.arguments().to_value().to_string(), ..Output::default() })
        }
        (Outcome::Returned(result), _) => {
            let shown = Output::from_parts(&result.content);
            match &result.structured {
                Some(structured) if shown.is_blank() => Some(Output { text: structured.to_string(), ..shown }),
                Some(_) | None => Some(shown).filter(|output| !output.is_blank()),
            }
        }
        (Outcome::Failed(_) | Outcome::Unknown, _) => None,
    }
}

/// A call of the turn, as a stop condition reads it.
#[derive(Serialize)]
struct CallFacts<'a> {
    tool: &'a str,
    arguments: Value,
    is_error: bool,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured: Option<&'a Value>,
}

impl<'a> CallFacts<'a> {
    fn new(call: &'a Call) -> Self {
        let (is_error, text, structured) = match &call.state {
            CallState::Settled(Settlement::Completed(outcome)) => {
                let structured =
                    if let Outcome::Returned(result) = &**outcome { result.structured.as_ref() } else { None };
                let text = outcome.content().iter().filter_map(Part::as_text).collect();
                (outcome.is_error(), text, structured)
            }
            CallState::Settled(Settlement::Rejected { message, .. }) => (true, message.clone(), None),
            CallState::Settled(Settlement::Abandoned)
            | CallState::New
            | CallState::Selected
            | CallState::Asked { .. }
            | CallState::Authorized
            | CallState::Started
            | CallState::NeedsInput(_)
            | CallState::Task(_) => (true, String::new(), None),
        };
        Self { tool: &call.requested.name, arguments: call.arguments().to_value(), is_error, text, structured }
    }
}
