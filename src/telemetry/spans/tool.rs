//! TOOL spans: one per call that was run, with the OpenInference, the GenAI and the MCP names on the same span.

use jiff::Timestamp;
use serde_json::json;

use super::attributes::{Attributes, Value};
use super::messages::{arguments_text, text_of};
use super::span::{Kind, SpanEvent, Status};
use super::{SpanContent, names};
use crate::core::run::Call;
use crate::core::tool::{Origin, Outcome};
use crate::telemetry::lifecycle::error_word;

/// Why a call has no outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CutShort {
    /// The run ended first.
    Cancelled,
    /// The execution stopped without recording its end.
    Interrupted,
}

/// How a call ended, as its span tells it.
#[derive(Clone, Copy, Debug)]
pub(super) enum CallResult<'a> {
    /// It has its outcome.
    Outcome(&'a Outcome),
    /// Its server put it aside, with this word for why: it goes on in a span of its own.
    PutAside(&'static str),
    /// It never had one within the span.
    CutShort(CutShort),
}

impl CutShort {
    /// The word for `error.type`.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }

    /// What happened.
    pub(super) fn message(self) -> &'static str {
        match self {
            Self::Cancelled => "the run ended before an answer came",
            Self::Interrupted => "the execution stopped before an answer came",
        }
    }
}

/// The OTLP kind of the span: a request of ours, or work of the caller's or our own.
pub(super) fn kind(call: &Call) -> Kind {
    match call.is_external() || call.is_builtin() {
        true => Kind::Internal,
        false => Kind::Client,
    }
}

/// Everything but what all spans of an execution share.
pub(super) fn attributes(call: &Call, result: CallResult<'_>, content: SpanContent, to: &mut Attributes) {
    let id = call.asked.id.as_str();
    to.text(names::SPAN_KIND, "TOOL");
    to.text(names::OPERATION, "execute_tool");
    to.text(names::TOOL_NAME, &call.asked.name);
    to.text(names::GEN_AI_TOOL, &call.asked.name);
    to.text(names::TOOL_ID, id);
    to.text(names::TOOL_CALL_ID, id);
    to.text(names::GEN_AI_CALL_ID, id);
    definition(call, content, to);
    if call.edited.is_some() {
        to.set(names::EDITED, Value::Bool(true));
    }
    let arguments = arguments_text(call.arguments());
    to.input(&arguments, content.hide_inputs);
    if content.gen_ai_inputs() {
        to.text(names::GEN_AI_CALL_ARGUMENTS, &arguments);
    }
    match result {
        CallResult::Outcome(outcome) => {
            to.text_if(names::ERROR_TYPE, error_word(outcome));
            let text = output_text(outcome);
            to.output(&text, content.hide_outputs);
            if content.gen_ai_outputs() {
                to.text(names::GEN_AI_CALL_RESULT, &text);
            }
        }
        CallResult::PutAside(why) => {
            to.text(names::PUT_ASIDE, why);
            to.output(&json!({ "status": why }).to_string(), content.hide_outputs);
        }
        CallResult::CutShort(why) => to.text(names::ERROR_TYPE, why.as_str()),
    }
}

/// The status and, for a failure, the exception that tells it.
pub(super) fn status(result: CallResult<'_>, at: Timestamp, content: SpanContent) -> (Status, Option<SpanEvent>) {
    let (kind, message) = match result {
        CallResult::PutAside(_) => return (Status::Ok, None),
        CallResult::CutShort(why) => (why.as_str(), why.message().to_owned()),
        CallResult::Outcome(outcome) => match error_word(outcome) {
            None => return (Status::Ok, None),
            Some(word) if content.hide_outputs => (word, word.to_owned()),
            Some(word) => (word, output_text(outcome)),
        },
    };
    let message = if message.is_empty() { kind.to_owned() } else { message };
    let event = SpanEvent::exception(kind, &message, at);
    (Status::error(&message), Some(event))
}

fn definition(call: &Call, content: SpanContent, to: &mut Attributes) {
    let Some(tool) = &call.tool else {
        to.text(names::GEN_AI_TOOL_TYPE, "function");
        return;
    };
    match &tool.origin {
        Origin::Mcp { server, tool } => {
            to.text(names::MCP_METHOD, "tools/call");
            to.text(names::GEN_AI_TOOL_TYPE, "extension");
            to.text(names::SERVER_KIND, "mcp");
            to.text(names::SERVER, server.as_str());
            to.text(names::ORIGINAL_NAME, tool);
        }
        Origin::External { tool } => {
            to.text(names::GEN_AI_TOOL_TYPE, "function");
            to.text(names::SERVER_KIND, "external");
            to.text(names::ORIGINAL_NAME, tool);
        }
        Origin::Builtin { tool } => {
            to.text(names::GEN_AI_TOOL_TYPE, "function");
            to.text(names::SERVER_KIND, "builtin");
            to.text(names::ORIGINAL_NAME, tool);
        }
    }
    to.set(names::PRIORITY, Value::Int(i64::from(tool.priority)));
    if !content.hide_inputs {
        to.text(names::TOOL_DESCRIPTION, &tool.description);
        to.text(names::GEN_AI_TOOL_DESCRIPTION, &tool.description);
        to.object(names::TOOL_PARAMETERS, &tool.input_schema);
    }
}

/// What the model reads of it; the structured form where there is nothing else.
fn output_text(outcome: &Outcome) -> String {
    let text = text_of(&outcome.content());
    match outcome {
        Outcome::Returned(output) if text.is_empty() => {
            output.structured.as_ref().map(ToString::to_string).unwrap_or_default()
        }
        Outcome::Returned(_) | Outcome::Failed(_) | Outcome::Unknown => text,
    }
}
