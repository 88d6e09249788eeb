//! TOOL spans: one per call that was run, with the OpenInference, GenAI and MCP names on the same span.

use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::json;
use toolgate_core::run::Call;
use toolgate_core::tool::{CallTransport, Origin, Outcome, Transport};

use super::attributes::{Attributes, Value};
use super::messages::{arguments_text, text_of};
use super::span::{Kind, SpanEvent, Status};
use super::{SpanContent, names};

/// A tool call for its span.
#[derive(Clone, Copy)]
pub(super) struct ToolCall<'a> {
    pub(super) call: &'a Call,
    pub(super) result: CallResult<'a>,
    pub(super) wire: Option<&'a CallTransport>,
    /// How long the run waited for its external result.
    pub(super) waited_ms: Option<u64>,
    pub(super) content: SpanContent,
}

/// Why a call has no outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CutShort {
    /// The run ended first.
    Cancelled,
    /// The execution stopped without recording its end.
    Interrupted,
}

/// The end of a call for its span.
#[derive(Clone, Copy, Debug)]
pub(super) enum CallResult<'a> {
    Outcome(&'a Outcome),
    /// The server suspended the call, for this reason; it continues in a span of its own.
    Suspended(&'static str),
    /// The call expired; the message that the model reads instead of a result.
    Expired(&'a str),
    /// The call has no outcome within the span.
    CutShort(CutShort),
}

impl CutShort {
    /// The value of `error.type`.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }

    /// The error message.
    pub(super) fn message(self) -> &'static str {
        match self {
            Self::Cancelled => "the run ended before an answer came",
            Self::Interrupted => "the execution stopped before an answer came",
        }
    }
}

impl ToolCall<'_> {
    /// The OTLP kind: a request to a server, or work inside the caller or toolgate.
    pub(super) fn kind(&self) -> Kind {
        match self.call.is_external() || self.call.is_builtin() {
            true => Kind::Internal,
            false => Kind::Client,
        }
    }

    /// All attributes except the ones common to all spans of an execution.
    pub(super) fn attributes(&self, to: &mut Attributes) {
        let (call, content) = (self.call, self.content);
        let id = call.requested.id.as_str();
        to.word(names::SPAN_KIND, "TOOL");
        to.word(names::OPERATION, "execute_tool");
        to.text_under([names::TOOL_NAME, names::GEN_AI_TOOL], &call.requested.name);
        to.text_under([names::TOOL_ID, names::TOOL_CALL_ID, names::GEN_AI_CALL_ID], id);
        to.text_if(names::ERROR_TYPE, self.error());
        to.int(names::WAIT_MS, self.waited_ms);
        definition(call, content, to);
        if let Some(wire) = self.wire {
            way(wire, to);
        }
        if !call.advisory.is_empty() {
            to.texts(names::ARGUMENT_PROBLEMS, call.advisory.iter().map(|problem| problem.rule.clone()));
        }
        if call.edited.is_some() {
            to.set(names::EDITED, Value::Bool(true));
        }
        let arguments = arguments_text(call.arguments());
        to.input(&arguments, content.hide_inputs);
        if content.gen_ai_inputs() {
            to.text(names::GEN_AI_CALL_ARGUMENTS, &arguments);
        }
        self.output(to);
    }

    fn output(&self, to: &mut Attributes) {
        let content = self.content;
        match self.result {
            CallResult::Outcome(outcome) => {
                let text = output_text(outcome);
                to.output(&text, content.hide_outputs);
                if content.gen_ai_outputs() {
                    to.text(names::GEN_AI_CALL_RESULT, &text);
                }
            }
            CallResult::Suspended(why) => {
                to.text(names::TOOL_SUSPENDED, why);
                to.output(&json!({ "status": why }).to_string(), content.hide_outputs);
            }
            CallResult::Expired(message) => to.output(message, content.hide_outputs),
            CallResult::CutShort(_) => {}
        }
    }

    /// The status and, for a failure, the exception event.
    pub(super) fn status(&self, at: Timestamp) -> (Status, Option<SpanEvent>) {
        let Some(kind) = self.error() else { return (Status::Ok, None) };
        let message = match self.result {
            CallResult::CutShort(why) => why.message().to_owned(),
            CallResult::Expired(message) => message.to_owned(),
            CallResult::Outcome(_) if self.content.hide_outputs => String::new(),
            CallResult::Outcome(outcome) => output_text(outcome),
            CallResult::Suspended(_) => String::new(),
        };
        let message = if message.is_empty() { kind.to_string() } else { message };
        let event = SpanEvent::exception(&kind, &message, at);
        (Status::error(&message), Some(event))
    }

    /// The value of `error.type`. A JSON-RPC error of the server is its code, as the MCP conventions specify.
    fn error(&self) -> Option<Cow<'static, str>> {
        match self.result {
            CallResult::Suspended(_) => None,
            CallResult::Expired(_) => Some("expired".into()),
            CallResult::CutShort(why) => Some(why.as_str().into()),
            CallResult::Outcome(outcome) => {
                let word = outcome.error_type()?;
                let code = self.wire.and_then(|wire| wire.error_code).map(|code| code.to_string());
                Some(code.map_or(word.into(), Cow::Owned))
            }
        }
    }
}

/// The transport to the server, under the names of the MCP conventions.
fn way(wire: &CallTransport, to: &mut Attributes) {
    to.text_if(names::MCP_PROTOCOL, wire.protocol_version.as_deref());
    to.text_if(names::REQUEST_ID, wire.request_id.as_deref());
    to.text_if(names::RPC_STATUS, wire.error_code.map(|code| code.to_string()));
    to.text(names::NETWORK_TRANSPORT, wire.transport.as_str());
    match &wire.transport {
        Transport::Pipe => {}
        Transport::Http { address, port } => {
            to.word(names::NETWORK_PROTOCOL, "http");
            to.text_if(names::SERVER_ADDRESS, address.as_deref());
            to.int(names::SERVER_PORT, port.map(u64::from));
        }
    }
}

fn definition(call: &Call, content: SpanContent, to: &mut Attributes) {
    let Some(tool) = &call.tool else {
        to.word(names::GEN_AI_TOOL_TYPE, "function");
        return;
    };
    match &tool.origin {
        Origin::Mcp { server, tool } => {
            to.word(names::MCP_METHOD, "tools/call");
            to.word(names::GEN_AI_TOOL_TYPE, "extension");
            to.word(names::SERVER_KIND, "mcp");
            to.text(names::SERVER, server.as_str());
            to.text(names::ORIGINAL_NAME, tool);
        }
        Origin::External { tool } => {
            to.word(names::GEN_AI_TOOL_TYPE, "function");
            to.word(names::SERVER_KIND, "external");
            to.text(names::ORIGINAL_NAME, tool);
        }
        Origin::Builtin { tool } => {
            to.word(names::GEN_AI_TOOL_TYPE, "function");
            to.word(names::SERVER_KIND, "builtin");
            to.text(names::ORIGINAL_NAME, tool);
        }
    }
    to.set(names::PRIORITY, Value::Int(i64::from(tool.priority)));
    if !content.hide_inputs {
        to.text_under([names::TOOL_DESCRIPTION, names::GEN_AI_TOOL_DESCRIPTION], &tool.description);
        to.object(names::TOOL_PARAMETERS, &tool.input_schema);
    }
}

/// The text that the model reads, or the structured form if there is no text.
pub(super) fn output_text(outcome: &Outcome) -> String {
    let text = text_of(&outcome.content());
    match outcome {
        Outcome::Returned(output) if text.is_empty() => {
            output.structured.as_ref().map(ToString::to_string).unwrap_or_default()
        }
        Outcome::Returned(_) | Outcome::Failed(_) | Outcome::Unknown => text,
    }
}
