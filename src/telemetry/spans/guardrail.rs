//! GUARDRAIL spans: the validation of an answer, and the checks between a call and its tool: the policy, the approval,
//! changes since the approval, and the server's questions.
//!
//! A rejected answer and a denied call are the guardrail working as intended, so their spans have status OK. Only a
//! check that fails itself would be an error, and that ends the run.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value as Json, json};
use toolgate_core::run::{Call, CallState, Decision, ElicitationAnswer, OutputVerdict};
use toolgate_core::tool::{Difference, Problem};

use super::attributes::{Attributes, Value};
use super::messages::arguments_text;
use super::span::SpanEvent;
use super::{SpanContent, names};

/// The validation of an answer.
pub(super) fn output_check(answer: &str, verdict: &OutputVerdict, content: SpanContent, to: &mut Attributes) {
    to.word(names::SPAN_KIND, "GUARDRAIL");
    to.word(names::GUARDRAIL, "output_validator");
    to.input(answer, content.hide_outputs); // the input of this check is the output of the model
    let finding = match verdict {
        OutputVerdict::Valid { .. } => json!({ "valid": true }),
        OutputVerdict::Invalid { problems } => json!({ "valid": false, "problems": problems }),
    };
    to.output(&finding.to_string(), content.hide_outputs);
}

/// The exception event for a rejected answer.
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

/// An approver's decision on a call, with the call as it was at the request.
pub(super) fn approval(call: &Call, decision: &Decision, content: SpanContent, to: &mut Attributes) {
    call_attributes(call, "approval", content, to);
    to.text(names::DECIDED, word(&decision.answer));
    to.text(names::DECIDED_BY, &decision.by);
    to.text(names::DECIDED_VIA, word(&decision.via));
    to.text(names::DECIDED_SCOPE, word(&decision.scope));
    to.set(names::EDITED, Value::Bool(decision.edited_arguments.is_some()));
    to.output(&decision_view(decision).to_string(), content.hide_outputs);
}

/// A decision without the arguments that it changed.
pub(super) fn decision_view(decision: &Decision) -> Json {
    json!({
        "answer": decision.answer, "by": decision.by, "scope": decision.scope, "reason": decision.reason,
        "edited": decision.edited_arguments.is_some(),
    })
}

/// An approval that expired without a decision.
pub(super) fn expired(call: &Call, content: SpanContent, to: &mut Attributes) {
    call_attributes(call, "approval", content, to);
    to.word(names::DECIDED, "expired");
    to.output(&json!({ "answer": "expired" }).to_string(), content.hide_outputs);
}

/// A call denied by the policy. It has no other span, because it never ran.
pub(super) fn denied(call: &Call, message: &str, content: SpanContent, to: &mut Attributes) {
    call_attributes(call, "policy", content, to);
    to.word(names::DECIDED, "deny");
    to.output(&json!({ "answer": "deny", "reason": message }).to_string(), content.hide_outputs);
}

/// A call that differs from the one approved. The differences quote definitions and arguments.
pub(super) fn drift(call: &Call, differences: &[Difference], content: SpanContent, to: &mut Attributes) {
    call_attributes(call, "drift", content, to);
    to.texts(names::DIFFERS, differences.iter().map(|difference| difference.field.clone()));
    to.output(&json!({ "differences": differences }).to_string(), content.hide_inputs || content.hide_outputs);
}

/// The questions of a server during a call, and the answers.
pub(super) fn input_given(call: &Call, given: &ElicitationAnswer, content: SpanContent, to: &mut Attributes) {
    common("input_required", to);
    to.text(names::TOOL_NAME, &call.requested.name);
    to.text(names::DECIDED_BY, &given.by);
    to.text(names::DECIDED_VIA, word(&given.via));
    let questions = call.elicitation().map(|needed| &needed.questions);
    let question = json!({ "call_id": call.requested.id, "tool": call.requested.name, "questions": questions });
    to.input(&question.to_string(), content.hide_inputs);
    to.output(&json!({ "reactions": given.reactions }).to_string(), content.hide_inputs || content.hide_outputs);
}

/// Attributes of every span about a call, and the call as input.
fn call_attributes(call: &Call, guardrail: &str, content: SpanContent, to: &mut Attributes) {
    common(guardrail, to);
    to.text(names::TOOL_NAME, &call.requested.name);
    let asked = if let CallState::Asked { rule, reason, .. } = &call.state { Some((rule, reason)) } else { None };
    let (rule, reason) = (asked.and_then(|(rule, _)| rule.as_deref()), asked.map(|(_, reason)| reason.as_str()));
    to.text_if(names::DECIDED_RULE, rule);
    let question = json!({
        "call_id": call.requested.id, "tool": call.requested.name, "arguments": arguments_text(&call.requested.arguments),
        "rule": rule, "reason": reason,
    });
    to.input(&question.to_string(), content.hide_inputs);
}

fn common(guardrail: &str, to: &mut Attributes) {
    to.word(names::SPAN_KIND, "GUARDRAIL");
    to.text(names::GUARDRAIL, guardrail);
}

/// The JSON word of a value.
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Json::String(word)) => word,
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}
