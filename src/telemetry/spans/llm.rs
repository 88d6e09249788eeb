//! LLM spans: one per model call of a turn, its attempts inside.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::attributes::{Attributes, Value};
use super::messages::{Said, answer_text};
use super::{SpanContent, names};
use crate::core::chat::{Message, Part, Reply, Role, Stop, Usage};
use crate::core::id::CallId;
use crate::core::run::{Offer, Output};
use crate::core::tool::{Tool, Toolset};
use crate::ports::ModelIdentity;

/// A model call that is over.
pub(super) struct ModelCall<'a> {
    pub(super) identity: &'a ModelIdentity,
    pub(super) system: &'a str,
    pub(super) messages: &'a [Arc<Message>],
    pub(super) tools: Option<&'a Toolset>,
    pub(super) offer: Offer,
    /// `None` if every attempt failed.
    pub(super) reply: Option<&'a Reply>,
    /// Over all attempts.
    pub(super) usage: Usage,
    pub(super) attempts: u32,
    pub(super) content: SpanContent,
}

impl ModelCall<'_> {
    /// Everything but what all spans of an execution share; the essential ones first, the long ones last.
    pub(super) fn attributes(&self, to: &mut Attributes) {
        to.text(names::SPAN_KIND, "LLM");
        self.identity(to);
        self.usage(to);
        to.int(names::ATTEMPTS, u64::from(self.attempts));
        to.text(names::OFFER, offer_word(self.offer));
        if let Some(reply) = self.reply {
            response(reply, to);
        }
        self.inputs(to);
        self.outputs(to);
    }

    fn identity(&self, to: &mut Attributes) {
        let ModelIdentity { system, provider, model, settings } = self.identity;
        to.text(names::OPERATION, "chat");
        to.text(names::PROVIDER, provider);
        to.text(names::REQUEST_MODEL, model);
        to.text(names::LLM_SYSTEM, system);
        to.text(names::LLM_PROVIDER, provider);
        to.text(names::LLM_REQUEST_MODEL, model);
        let answered_by = self.reply.and_then(|reply| reply.model.as_deref());
        to.text(names::LLM_MODEL, answered_by.unwrap_or(model));
        to.object(names::LLM_PARAMETERS, settings);
        let number = |name: &str| settings.get(name).and_then(Json::as_f64);
        to.float(names::REQUEST_TEMPERATURE, number("temperature"));
        to.float(names::REQUEST_TOP_P, number("top_p"));
        let most = settings.get("max_tokens").or_else(|| settings.get("max_output_tokens"));
        to.int(names::REQUEST_MAX_TOKENS, most.and_then(Json::as_u64));
        to.int(names::REQUEST_SEED, settings.get("seed").and_then(Json::as_u64));
    }

    fn usage(&self, to: &mut Attributes) {
        let usage = &self.usage;
        for (open_inference, gen_ai, tokens) in [
            (names::TOKENS_PROMPT, names::USAGE_INPUT, usage.input_tokens),
            (names::TOKENS_COMPLETION, names::USAGE_OUTPUT, usage.output_tokens),
            (names::TOKENS_CACHE_READ, names::USAGE_CACHE_READ, usage.cache_read_tokens),
            (names::TOKENS_CACHE_WRITE, names::USAGE_CACHE_WRITE, usage.cache_write_tokens),
            (names::TOKENS_REASONING, names::USAGE_REASONING, usage.reasoning_tokens),
        ] {
            to.int(open_inference, tokens);
            to.int(gen_ai, tokens);
        }
        if usage.input_tokens.is_some() && usage.output_tokens.is_some() {
            to.int(names::TOKENS_TOTAL, usage.total_tokens());
        }
        to.float(names::COST_TOTAL, usage.cost_usd);
    }

    fn inputs(&self, to: &mut Attributes) {
        let said = self.said();
        let chat = json!({ "messages": said.iter().map(Said::chat).collect::<Vec<_>>(), "tools": self.schemas() });
        to.input(&chat.to_string(), self.content.hide_inputs);
        if self.content.hide_inputs {
            return;
        }
        to.int(names::LEFT_OUT, Some(self.left_out() as u64).filter(|left_out| *left_out > 0));
        for (index, tool) in self.tools().enumerate() {
            let name = format!("{}.{index}.{}", names::LLM_TOOLS, names::TOOL_JSON_SCHEMA);
            to.object(name, &function_schema(tool));
        }
        for (index, said) in said.iter().enumerate() {
            said.attributes(&format!("{}.{index}", names::LLM_INPUT_MESSAGES), to);
        }
        if self.content.gen_ai_inputs() {
            let spoken = if self.system.is_empty() { &said[..] } else { said.get(1..).unwrap_or_default() };
            if !self.system.is_empty() {
                to.json(names::SYSTEM_INSTRUCTIONS, &json!([{ "type": "text", "content": self.system }]));
            }
            to.json(names::INPUT_MESSAGES, &spoken.iter().map(Said::parts).collect());
            to.json(names::TOOL_DEFINITIONS, &Json::Array(self.schemas()));
        }
    }

    fn outputs(&self, to: &mut Attributes) {
        let Some(reply) = self.reply else { return };
        let said = Said::assistant(&reply.content, self.content.mask.image_chars);
        let text = match reply.calls().next() {
            None => answer_text(&Output::of(&reply.content)),
            Some(_) => json!({ "messages": [said.chat()] }).to_string(),
        };
        to.output(&text, self.content.hide_outputs);
        if self.content.hide_outputs {
            return;
        }
        said.attributes(&format!("{}.0", names::LLM_OUTPUT_MESSAGES), to);
        if self.content.gen_ai_outputs() {
            let mut parts = said.parts();
            if let Json::Object(message) = &mut parts {
                message.insert("finish_reason".into(), json!(finish_reason(reply)));
            }
            to.json(names::OUTPUT_MESSAGES, &json!([parts]));
        }
    }

    fn said(&self) -> Vec<Said> {
        let mut all: Vec<Said> = Vec::with_capacity(self.messages.len() + 1);
        if !self.system.is_empty() {
            all.push(Said::system(self.system));
        }
        let names = tool_names(self.messages);
        let tool_of = |call: &CallId| names.get(call).map(|name| (*name).to_owned());
        let image_chars = self.content.mask.image_chars;
        let shown = self.messages.iter().skip(self.left_out());
        all.extend(shown.flat_map(|message| Said::from_message(message, &tool_of, image_chars)));
        all
    }

    /// How many messages, from the beginning, are not shown.
    fn left_out(&self) -> usize {
        let last_said = || self.messages.iter().rposition(|message| message.role == Role::Assistant);
        self.content.last_turn_only.then(last_said).flatten().unwrap_or(0)
    }

    fn schemas(&self) -> Vec<Json> {
        self.tools().map(function_schema).collect()
    }

    fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.tools.into_iter().flat_map(Toolset::iter).map(|tool| &**tool)
    }
}

/// Which tool each call in the conversation called.
fn tool_names(messages: &[Arc<Message>]) -> HashMap<&CallId, &str> {
    let parts = messages.iter().flat_map(|message| &message.content);
    parts
        .filter_map(|part| match part {
            Part::ToolUse { id, name, .. } => Some((id, name.as_str())),
            Part::Text { .. }
            | Part::Image(_)
            | Part::Audio(_)
            | Part::Resource { .. }
            | Part::Reasoning { .. }
            | Part::ToolResult { .. } => None,
        })
        .collect()
}

fn response(reply: &Reply, to: &mut Attributes) {
    let finish = finish_reason(reply);
    to.text(names::LLM_FINISH_REASON, finish);
    to.texts(names::RESPONSE_FINISH, [finish.to_owned()]);
    to.text_if(names::LLM_RESPONSE_MODEL, reply.model.as_deref());
    to.text_if(names::RESPONSE_MODEL, reply.model.as_deref());
    to.text_if(names::RESPONSE_ID, reply.response_id.as_deref());
    if let Some(ms) = reply.first_token_ms {
        to.set(names::RESPONSE_FIRST_CHUNK, Value::Float(std::time::Duration::from_millis(ms).as_secs_f64()));
    }
}

/// The word readers know. Calls decide it, as they decide what happens next; providers disagree about theirs.
fn finish_reason(reply: &Reply) -> &'static str {
    if reply.calls().next().is_some() {
        return "tool_calls";
    }
    match reply.stop {
        Stop::End | Stop::ToolCalls => "stop",
        Stop::MaxTokens | Stop::ContextWindow => "length",
        Stop::ContentFilter => "content_filter",
        Stop::Refusal => "refusal",
        Stop::Pause => "pause",
    }
}

fn offer_word(offer: Offer) -> &'static str {
    match offer {
        Offer::Tools => "tools",
        Offer::NoTools => "no_tools",
        Offer::LastWord => "last_word",
    }
}

fn function_schema(tool: &Tool) -> Json {
    let parameters = match tool.input_schema.as_object() {
        Some(schema) => json!(schema),
        None => json!({ "type": "object" }),
    };
    json!({
        "type": "function",
        "function": { "name": tool.name, "description": tool.description, "parameters": parameters },
    })
}
