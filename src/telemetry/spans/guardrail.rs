//! GUARDRAIL spans: a check of the answer, and a person's decision about a call.
//!
//! A rejected answer and a denied call are the guardrail at work, so their spans are well; only a check that itself
//! broke would be an error, and that ends the run.

use jiff::Timestamp;
use serde_json::json;

use super::attributes::Attributes;
use super::messages::arguments_text;
use super::span::SpanEvent;
use super::{SpanContent, names};
use crate::core::run::{Call, CallState, Decision, OutputVerdict};
use crate::core::tool::Problem;

/// The check of an answer.
pub(super) fn output_check(answer: &str, verdict: &OutputVerdict, content: SpanContent, to: &mut Attributes) {
    to.text(names::SPAN_KIND, "GUARDRAIL");
    to.text(names::GUARDRAIL, "output_validator");
    to.input(answer, content.hide_outputs); // what goes in here is what came out of the model
    let finding = match verdict {
        OutputVerdict::Valid { .. } => json!({ "valid": true }),
        OutputVerdict::Invalid { problems } => json!({ "valid": false, "problems": problems }),
    };
    to.output(&finding.to_string(), content.hide_outputs);
}

/// The exception that tells a rejected answer.
pub(super) fn output_rejected(verdict: &OutputVerdict, at: Timestamp, content: SpanContent) -> Option<SpanEvent> {
    match verdict {
        OutputVerdict::Valid { .. } => None,
        OutputVerdict::Invalid { .. } if content.hide_outputs => {
            Some(SpanEvent::exception("invalid_output", "the answer is not valid", at))
        }
        OutputVerdict::Invalid { problems } => {
            let feedback = Problem::feedback("the answer is not valid", problems);
            Some(SpanEvent::exception("invalid_output", &feedback, at))
        }
    }
}

/// A person's decision about a call, which is as it was when they were asked.
pub(super) fn approval(call: &Call, decision: &Decision, content: SpanContent, to: &mut Attributes) {
    to.text(names::SPAN_KIND, "GUARDRAIL");
    to.text(names::GUARDRAIL, "approval");
    let (rule, why) = match &call.state {
        CallState::Asked { rule, why, .. } => (rule.as_deref(), why.as_str()),
        CallState::New
        | CallState::Selected
        | CallState::Cleared
        | CallState::Started
        | CallState::NeedsInput(_)
        | CallState::Task(_)
        | CallState::Settled(_) => (None, ""),
    };
    let question = json!({
        "call_id": call.asked.id, "tool": call.asked.name, "arguments": arguments_text(&call.asked.arguments),
        "rule": rule, "why": why,
    });
    to.input(&question.to_string(), content.hide_inputs);
    let answer = json!({
        "answer": decision.answer, "by": decision.by, "scope": decision.scope, "reason": decision.reason,
        "edited": decision.edited_arguments.is_some(),
    });
    to.output(&answer.to_string(), content.hide_outputs);
}
