//! Chat Completions request: the body around the conversation, and the settings under this API's names.

use serde_json::{Map, Value, json};
use toolgate_core::chat::Message;
use toolgate_core::run::ToolAccess;
use toolgate_core::tool::Tool;
use toolgate_ports::ModelRequest;

use super::WIRE;
use super::fold::ChatFold;
use super::message::{MessageFormat, ReasoningReplay};
use crate::http::{
    Declared, Fold, MediaKind, Members, Object, PromptCache, ProviderProtocol, Reasoning, RenderedParts, RequestPrefix,
    Settings, SettingsError, ToolChoice, check_reserved,
};
use crate::openai_content::{Reader, answer_format};
use crate::openai_schema::{is_strict, project};

const OPENROUTER: &str = "openrouter";

/// Fields that toolgate sets.
const RESERVED: [&str; 7] = ["model", "messages", "stream", "tools", "tool_choice", "parallel_tool_calls", "n"];

/// The Chat Completions wire format, for one model.
#[derive(Debug)]
pub(crate) struct Chat {
    prefix: RequestPrefix,
    format: MessageFormat,
    strict_tools: bool,
    streaming: bool,
    tool_choice: ToolChoice,
    parallel_tool_calls: Option<bool>,
    schema_format: SchemaFormat,
}

/// When the output schema is sent as response format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SchemaFormat {
    /// Not at all: the answer is only validated.
    Never,
    /// In requests in which the model may not call tools. Ollama constrains every reply to the schema, so that a model
    /// with tools makes an answer up instead of calling one (ollama/ollama 13750, 8095).
    WithoutTools,
    Always,
}

impl Chat {
    /// The format for the server of this provider.
    pub(crate) fn new(settings: &Settings, provider: &str) -> Result<Self, SettingsError> {
        check_reserved(settings, &RESERVED)?;
        let unsupported = |setting| Err(SettingsError::Unsupported { wire: "Chat Completions", setting });
        // Only OpenRouter supports them; elsewhere they would have no effect.
        if settings.reasoning.budget_tokens.is_some() && provider != OPENROUTER {
            return unsupported("reasoning.budget_tokens");
        }
        if settings.reasoning.show.is_some() && provider != OPENROUTER {
            return unsupported("reasoning.show");
        }
        if matches!(settings.prompt_cache, PromptCache::FiveMinutes | PromptCache::OneHour) {
            return unsupported("prompt_cache");
        }
        Ok(Self {
            prefix: RequestPrefix::new(fields(settings, provider)),
            format: message_format(settings, provider),
            strict_tools: settings.strict_tools,
            streaming: settings.stream,
            tool_choice: settings.tool_choice.clone(),
            parallel_tool_calls: settings.parallel_tool_calls,
            schema_format: schema_format(settings, provider),
        })
    }
}

impl ProviderProtocol for Chat {
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
        self.format.translate(message)?.iter().try_for_each(|wire| members.push(wire))
    }

    fn declare(&self, tool: &Tool) -> Declared {
        declare(tool, self.strict_tools)
    }

    fn most_tools(&self) -> Option<usize> {
        self.format.reader.most_tools
    }

    fn body(&self, request: &ModelRequest<'_>, rendered: &RenderedParts<'_>) -> Result<Vec<u8>, serde_json::Error> {
        let tools = rendered.tools.unwrap_or_default();
        let mut body = Object::new(&self.prefix, request.system.len() + rendered.messages.len() + tools.len());
        let system = match request.system {
            "" => String::new(),
            system => format!(r#"{{"role":"system","content":{}}},"#, Value::from(system)),
        };
        body.rendered("messages", &[b"[", system.as_bytes(), rendered.messages, b"]"]);
        if let Some(tools) = rendered.tools {
            body.rendered("tools", &[tools]);
            if let Some(choice) = choice(request.tool_access, rendered.choice(&self.tool_choice)) {
                body.field("tool_choice", &choice)?;
            }
            if let Some(parallel) = self.parallel_tool_calls {
                body.field("parallel_tool_calls", &parallel)?;
            }
        }
        let may_call = rendered.tools.is_some() && request.tool_access == ToolAccess::Enabled;
        let is_sent = match self.schema_format {
            SchemaFormat::Never => false,
            SchemaFormat::WithoutTools => !may_call,
            SchemaFormat::Always => true,
        };
        let schema = request.output_schema.filter(|_| is_sent);
        if let Some(format) = schema.and_then(answer_format) {
            body.field("response_format", &json!({"type": "json_schema", "json_schema": format}))?;
        }
        Ok(body.end())
    }

    fn fold(&self) -> Box<dyn Fold> {
        Box::new(ChatFold::new(self.format.model.clone()))
    }
}

/// The tool choice. Tools that may not be called stay listed, because the prefix that the server caches must not change
/// with the tool access.
fn choice(tool_access: ToolAccess, choice: &ToolChoice) -> Option<Value> {
    match (tool_access, choice) {
        (ToolAccess::BudgetExhausted | ToolAccess::Stopped | ToolAccess::FinalAnswer, _) => Some(json!("none")),
        (ToolAccess::Enabled, ToolChoice::Auto) => None,
        (ToolAccess::Enabled, ToolChoice::Required) => Some(json!("required")),
        (ToolAccess::Enabled, ToolChoice::Tool(name)) => Some(json!({"type": "function", "function": {"name": name}})),
    }
}

/// By default, schemas are sent to providers that are known to support them. Other servers may reject the request.
fn schema_format(settings: &Settings, provider: &str) -> SchemaFormat {
    match settings.structured_output {
        _ if settings.extra.contains_key("response_format") => SchemaFormat::Never,
        Some(true) => SchemaFormat::Always,
        Some(false) => SchemaFormat::Never,
        None => match provider {
            "openai" | "azure" | OPENROUTER => SchemaFormat::Always,
            "ollama" => SchemaFormat::WithoutTools,
            _ => SchemaFormat::Never,
        },
    }
}

/// The capabilities and requirements of this provider's server.
fn message_format(settings: &Settings, provider: &str) -> MessageFormat {
    use MediaKind::{Files, Images};
    // Images are sent to every server: one without vision reports an error. Results hold only text, so their images
    // need a message of their own, which some servers reject after a result.
    let (said, results): (&[MediaKind], &[MediaKind]) = match provider {
        "openai" | OPENROUTER => (&[Images, Files], &[Images, Files]),
        "azure" => (&[Images], &[Images]),
        _ => (&[Images], &[]),
    };
    MessageFormat {
        reader: Reader::new(settings, provider, said, results),
        reasoning: reasoning_replay(settings, provider),
        model: settings.model.clone(),
    }
}

/// Which turns are sent with their reasoning. DeepSeek and Kimi in thinking mode reject a conversation with tools and
/// without reasoning, also behind a proxy or at a host (RooCodeInc/Roo-Code 12195). Groq and Cerebras reject the field, so
/// it goes only to a server that sent it.
fn reasoning_replay(settings: &Settings, provider: &str) -> ReasoningReplay {
    let within =
        |domain: &str| provider == domain || provider.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
    let is_demanding = ["deepseek.com", "moonshot.ai", "moonshot.cn"].iter().any(|domain| within(domain))
        || (provider == OPENROUTER && settings.model.starts_with("deepseek/deepseek-v4"));
    let name = settings.model.to_ascii_lowercase();
    match settings.reasoning.send_back {
        Some(true) => ReasoningReplay::EveryTurn,
        Some(false) => ReasoningReplay::Never,
        None if is_demanding => ReasoningReplay::EveryTurn,
        None if name.contains("deepseek") || name.contains("kimi") => ReasoningReplay::AsReceived,
        None => ReasoningReplay::Never,
    }
}

/// OpenRouter's own reasoning object, which has a budget and can exclude the reasoning from the reply.
fn openrouter_reasoning(reasoning: &Reasoning) -> Option<Value> {
    let Reasoning { effort, budget_tokens, show, send_back: _ } = reasoning;
    let fields = [
        ("effort", effort.clone().map(Value::from)),
        ("max_tokens", budget_tokens.map(Value::from)),
        ("exclude", show.map(|show| Value::from(!show))),
    ];
    let set: Map<String, Value> =
        fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    (!set.is_empty()).then_some(set.into())
}

fn fields(settings: &Settings, provider: &str) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            fields.insert(name.into(), value);
        }
    };
    // OpenAI's newer models reject the old name, other servers do not support the new one.
    let max_tokens = if matches!(provider, "openai" | "azure") { "max_completion_tokens" } else { "max_tokens" };
    set("model", Some(json!(settings.model)));
    set("stream", Some(json!(settings.stream)));
    set("stream_options", settings.stream.then(|| json!({"include_usage": true})));
    set("temperature", settings.temperature.map(Value::from));
    set(max_tokens, settings.max_tokens.map(Value::from));
    set("top_p", settings.top_p.map(Value::from));
    set("seed", settings.seed.map(Value::from));
    match provider {
        OPENROUTER => set("reasoning", openrouter_reasoning(&settings.reasoning)),
        _ => set("reasoning_effort", settings.reasoning.effort.clone().map(Value::from)),
    }
    fields.extend(settings.extra.clone());
    fields
}

/// The declaration of a tool.
pub(super) fn declare(tool: &Tool, strict_tools: bool) -> Declared {
    let Tool { name, description, input_schema, .. } = tool;
    let mut projected = match project(input_schema) {
        Ok(projected) => projected,
        Err(why) => return Declared::Refused(why),
    };
    let is_strict = is_strict(&mut projected, strict_tools);
    let mut function = json!({"name": name, "description": description, "parameters": projected.schema});
    // Servers that do not support the field may reject it.
    if is_strict && let Value::Object(function) = &mut function {
        function.insert("strict".into(), true.into());
    }
    Declared::As { json: json!({"type": "function", "function": function}), lost: projected.lost }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_limit_has_the_servers_own_name() {
        let settings = Settings { max_tokens: Some(7), ..Settings::new("http://h", "m") };
        assert_eq!(fields(&settings, "openai").get("max_completion_tokens"), Some(&json!(7)));
        assert_eq!(fields(&settings, "openai").get("max_tokens"), None);
        assert_eq!(fields(&settings, "ollama").get("max_tokens"), Some(&json!(7)));
    }
}
