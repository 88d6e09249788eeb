//! Responses request: the body around the conversation, and the settings under this API's names.

use serde_json::{Map, Value, json};
use toolgate_core::chat::Message;
use toolgate_core::error::ErrorCode;
use toolgate_core::run::ToolAccess;
use toolgate_core::tool::Tool;
use toolgate_ports::ModelRequest;

use super::fold::ResponseFold;
use super::items::Items;
use super::output::WIRE;
use crate::http::{
    Declared, ErrorBody, Fold, MediaKind, Members, Object, PromptCache, ProviderProtocol, RenderedParts, RequestPrefix,
    Settings, SettingsError, ToolChoice, check_reserved,
};
use crate::openai_content::{Reader, answer_format};
use crate::openai_schema::{is_strict, project};

/// Fields that toolgate sets, and those that would make the server store the conversation.
const RESERVED: [&str; 11] = [
    "model",
    "input",
    "instructions",
    "stream",
    "store",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "previous_response_id",
    "conversation",
    "background",
];

/// Error codes of a policy violation in the request.
const FLAGGED: [&str; 4] =
    ["invalid_prompt", "bio_policy", "misalignment_policy_violation", "image_content_policy_violation"];

/// The Responses wire format, for one model.
#[derive(Debug)]
pub(super) struct Responses {
    prefix: RequestPrefix,
    items: Items,
    text: Map<String, Value>,
    streaming: bool,
    tool_choice: ToolChoice,
    parallel_tool_calls: Option<bool>,
    strict_tools: bool,
    structured_output: bool,
}

impl Responses {
    /// The format for the server of this provider.
    pub(super) fn new(settings: &Settings, provider: &str) -> Result<Self, SettingsError> {
        check_reserved(settings, &RESERVED)?;
        let unsupported = |setting| Err(SettingsError::Unsupported { wire: "The Responses API", setting });
        if settings.seed.is_some() {
            return unsupported("seed");
        }
        if settings.reasoning.budget_tokens.is_some() {
            return unsupported("reasoning.budget_tokens");
        }
        if settings.reasoning.send_back.is_some() {
            return unsupported("reasoning.send_back");
        }
        if matches!(settings.prompt_cache, PromptCache::FiveMinutes | PromptCache::OneHour) {
            return unsupported("prompt_cache");
        }
        if settings.media.as_ref().is_some_and(|media| media.contains(&MediaKind::Audio)) {
            return unsupported("audio in media");
        }
        use MediaKind::{Files, Images};
        let is_openai = matches!(provider, "openai" | "azure");
        let (said, results): (&[MediaKind], &[MediaKind]) =
            if is_openai { (&[Images, Files], &[Images, Files]) } else { (&[Images], &[]) };
        let text = settings.extra.get("text").and_then(Value::as_object).cloned().unwrap_or_default();
        Ok(Self {
            prefix: RequestPrefix::new(fields(settings)),
            items: Items { reader: Reader::new(settings, provider, said, results), model: settings.model.clone() },
            streaming: settings.stream,
            tool_choice: settings.tool_choice.clone(),
            parallel_tool_calls: settings.parallel_tool_calls,
            strict_tools: settings.strict_tools,
            structured_output: settings.structured_output.unwrap_or(is_openai) && !text.contains_key("format"),
            text,
        })
    }
}

impl ProviderProtocol for Responses {
    fn name(&self) -> &'static str {
        WIRE
    }

    fn streams(&self) -> bool {
        self.streaming
    }

    fn message(
        &self,
        message: &Message,
        _before: Option<&Message>,
        members: &mut Members,
    ) -> Result<(), serde_json::Error> {
        self.items.append(message, members)
    }

    fn declare(&self, tool: &Tool) -> Declared {
        let Tool { name, description, input_schema, .. } = tool;
        let mut projected = match project(input_schema) {
            Ok(projected) => projected,
            Err(why) => return Declared::Refused(why),
        };
        // Always sent: a tool without it is strict in this API.
        let strict = is_strict(&mut projected, self.strict_tools);
        let json = json!({"type": "function", "name": name, "description": description,
            "parameters": projected.schema, "strict": strict});
        Declared::As { json, lost: projected.lost }
    }

    fn most_tools(&self) -> Option<usize> {
        self.items.reader.most_tools
    }

    fn body(&self, request: &ModelRequest<'_>, rendered: &RenderedParts<'_>) -> Result<Vec<u8>, serde_json::Error> {
        let tools = rendered.tools.unwrap_or_default();
        let mut body = Object::new(&self.prefix, request.system.len() + rendered.messages.len() + tools.len());
        if !request.system.is_empty() {
            body.field("instructions", &request.system)?;
        }
        body.rendered("input", &[b"[", rendered.messages, b"]"]);
        if let Some(tools) = rendered.tools {
            body.rendered("tools", &[tools]);
            if let Some(choice) = choice(request.tool_access, rendered.choice(&self.tool_choice)) {
                body.field("tool_choice", &choice)?;
            }
            if let Some(parallel) = self.parallel_tool_calls {
                body.field("parallel_tool_calls", &parallel)?;
            }
        }
        let mut text = self.text.clone();
        let schema = request.output_schema.filter(|_| self.structured_output);
        if let Some(Value::Object(mut format)) = schema.and_then(answer_format) {
            format.insert("type".into(), "json_schema".into());
            text.insert("format".into(), format.into());
        }
        if !text.is_empty() {
            body.field("text", &text)?;
        }
        Ok(body.end())
    }

    fn fold(&self) -> Box<dyn Fold> {
        Box::new(ResponseFold::new(self.items.model.clone()))
    }

    fn classify(&self, error: &ErrorBody) -> Option<ErrorCode> {
        let says = |words: &[&str]| words.iter().any(|word| error.says(word));
        if says(&FLAGGED) {
            return Some(ErrorCode::ContentFilter);
        }
        // A request with an invalid image fails again on every retry.
        let is_of_image = error.words.iter().any(|word| word.contains("image"));
        (is_of_image || says(&["data_residency_mismatch"])).then_some(ErrorCode::ProviderRejected)
    }
}

/// The tool choice. Tools that may not be called stay listed, because the prefix that the server caches must not change
/// with the tool access.
fn choice(tool_access: ToolAccess, choice: &ToolChoice) -> Option<Value> {
    match (tool_access, choice) {
        (ToolAccess::BudgetExhausted | ToolAccess::Stopped | ToolAccess::FinalAnswer, _) => Some(json!("none")),
        (ToolAccess::Enabled, ToolChoice::Auto) => None,
        (ToolAccess::Enabled, ToolChoice::Required) => Some(json!("required")),
        (ToolAccess::Enabled, ToolChoice::Tool(name)) => Some(json!({"type": "function", "name": name})),
    }
}

fn fields(settings: &Settings) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            fields.insert(name.into(), value);
        }
    };
    set("model", Some(json!(settings.model)));
    set("stream", Some(json!(settings.stream)));
    set("store", Some(json!(false)));
    set("include", reasons(&settings.model).then(|| json!(["reasoning.encrypted_content"])));
    set("temperature", settings.temperature.map(Value::from));
    set("max_output_tokens", settings.max_tokens.map(Value::from));
    set("top_p", settings.top_p.map(Value::from));
    let mut reasoning = Map::new();
    reasoning.extend(settings.reasoning.effort.clone().map(|effort| ("effort".to_owned(), effort.into())));
    reasoning.extend((settings.reasoning.show == Some(true)).then(|| ("summary".to_owned(), "auto".into())));
    let mut extra = settings.extra.clone();
    // It is merged with the format of the answer.
    extra.shift_remove("text");
    if let Some(Value::Object(more)) = extra.get("reasoning").cloned() {
        reasoning.extend(more);
        extra.shift_remove("reasoning");
    }
    set("reasoning", (!reasoning.is_empty()).then_some(reasoning.into()));
    fields.extend(extra);
    fields
}

/// Whether the model may reason. OpenAI's other models reject a request for reasoning.
fn reasons(model: &str) -> bool {
    let name = model.strip_prefix("openai/").unwrap_or(model);
    let name = name.strip_prefix("ft:").unwrap_or(name);
    let is_plain = ["gpt-3.5", "gpt-4", "chatgpt-4o"].iter().any(|family| name.starts_with(family));
    let is_chat = name.starts_with("gpt-") && name.contains("-chat");
    !is_plain && !is_chat
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_without_reasoning_get_no_request_for_it() {
        for model in
            ["gpt-4o", "gpt-4.1-mini", "ft:gpt-4o:me", "chatgpt-4o-latest", "gpt-5-chat-latest", "openai/gpt-4o"]
        {
            assert!(!reasons(model), "{model}");
        }
        for model in ["gpt-5", "gpt-5.6-terra", "o4-mini", "gpt-oss-120b", "my-deployment"] {
            assert!(reasons(model), "{model}");
        }
    }
}
