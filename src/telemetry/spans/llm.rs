//! LLM spans: one per model call of a turn, including its attempts.

use serde_json::{Value as Json, json};
use toolgate_core::chat::{Reply, Stop, Usage, Usd};
use toolgate_core::run::{Output, ToolAccess};
use toolgate_ports::ModelIdentity;

use super::attributes::{Attributes, Value};
use super::conversation::Conversation;
use super::messages::{TraceMessage, answer_text};
use super::model_input::{ModelInput, ToolSchemas};
use super::toolset::RenderedToolset;
use super::{SpanContent, names};

/// A finished model call.
pub(super) struct ModelCall<'a> {
    pub(super) identity: &'a ModelIdentity,
    /// The agent's name and the hash of its instructions.
    pub(super) prompt: Option<(&'a str, &'a str)>,
    pub(super) system: &'a str,
    /// The part of the conversation that is shown.
    pub(super) conversation: &'a Conversation,
    /// The number of messages at the start that are not shown.
    pub(super) left_out: usize,
    pub(super) offered: &'a RenderedToolset,
    pub(super) tool_access: ToolAccess,
    /// `None` if every attempt failed.
    pub(super) reply: Option<&'a Reply>,
    /// The sum of all attempts.
    pub(super) usage: Usage,
    pub(super) attempts: u32,
    pub(super) content: SpanContent,
}

impl ModelCall<'_> {
    /// All attributes except the ones common to all spans of an execution: essential ones first, long ones last.
    pub(super) fn attributes(&self, to: &mut Attributes) {
        to.word(names::SPAN_KIND, "LLM");
        self.identity(to);
        self.usage(to);
        to.int(names::ATTEMPTS, u64::from(self.attempts));
        to.text(names::TOOL_ACCESS, tool_access_word(self.tool_access));
        if let Some(reply) = self.reply {
            response(reply, to);
        }
        self.inputs(to);
        self.outputs(to);
    }

    fn identity(&self, to: &mut Attributes) {
        let ModelIdentity { system, provider, model, settings } = self.identity;
        to.word(names::OPERATION, "chat");
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
        if let Some(stream) = settings.get("stream").and_then(Json::as_bool) {
            to.set(names::REQUEST_STREAM, Value::Bool(stream));
        }
        if let Some((agent, instructions)) = self.prompt {
            to.text(names::PROMPT_ID, agent);
            to.text(names::PROMPT_VERSION, instructions);
        }
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
        to.float(names::COST_TOTAL, usage.cost_usd.map(Usd::dollars));
        let Some(costs) = &usage.costs else { return };
        for (name, cost) in [
            (names::COST_PROMPT, costs.prompt()),
            (names::COST_COMPLETION, costs.completion()),
            (names::COST_INPUT, costs.input),
            (names::COST_CACHE_READ, costs.cache_read),
            (names::COST_CACHE_WRITE, costs.cache_write),
            (names::COST_OUTPUT, costs.output),
            (names::COST_REASONING, costs.reasoning),
        ] {
            to.float(name, Some(cost).filter(|cost| *cost > Usd::ZERO).map(Usd::dollars));
        }
    }

    fn inputs(&self, to: &mut Attributes) {
        if self.content.hide_inputs {
            to.input("", true);
            return;
        }
        let tools = ToolSchemas { whole: &self.offered.schemas, short: &self.offered.short_schemas };
        to.model_input(ModelInput::within(self.content.value_bytes, &self.conversation.chats(), tools));
        to.int(names::LEFT_OUT, Some(self.left_out as u64).filter(|left_out| *left_out > 0));
        to.extend_clean(std::iter::once(&self.offered.attributes));
        self.conversation.attributes(to);
        if self.content.gen_ai_inputs() {
            if !self.system.is_empty() {
                to.json(names::SYSTEM_INSTRUCTIONS, &json!([{ "type": "text", "content": self.system }]));
            }
            to.set_clean(names::INPUT_MESSAGES, Value::Text(self.conversation.parts().into()));
            to.set_clean(names::TOOL_DEFINITIONS, Value::Text(self.offered.schemas.clone().into()));
        }
    }

    fn outputs(&self, to: &mut Attributes) {
        let Some(reply) = self.reply else { return };
        let said =
            TraceMessage::assistant(&reply.content, reply.provider_state.as_ref(), self.content.mask.image_chars);
        let text = match reply.calls().next() {
            None => answer_text(&Output::from_parts(&reply.content)),
            Some(_) => format!("{{\"messages\":[{}]}}", said.chat()),
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

/// The finish reason in the words readers know. Tool calls decide it, because they decide the next step; providers
/// disagree in their own words.
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
        Stop::Unknown => "unknown",
    }
}

fn tool_access_word(tool_access: ToolAccess) -> &'static str {
    match tool_access {
        ToolAccess::Enabled => "enabled",
        ToolAccess::BudgetExhausted => "budget_exhausted",
        ToolAccess::Stopped => "stopped",
        ToolAccess::FinalAnswer => "final_answer",
    }
}
