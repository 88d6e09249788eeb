//! What is sent: the body around the conversation, and the settings in the words of this API.

use serde_json::{Map, Value, json};

use super::fold::ChatFold;
use super::{WIRE, message, tools};
use crate::core::chat::Message;
use crate::core::run::Offer;
use crate::core::tool::Tool;
use crate::models::http::{
    Declared, Fold, Members, Object, Opening, PromptCache, Rendered, Settings, SettingsError, ToolChoice, Wire,
};
use crate::ports::ModelRequest;

/// Fields that the loop sets.
const RESERVED: [&str; 7] = ["model", "messages", "stream", "tools", "tool_choice", "parallel_tool_calls", "n"];

/// The Chat Completions wire format, for one model.
#[derive(Debug)]
pub(in crate::models) struct Chat {
    opening: Opening,
    streaming: bool,
    tool_choice: ToolChoice,
    parallel_tool_calls: Option<bool>,
    structured_output: bool,
}

impl Chat {
    /// The format as this provider's server speaks it.
    pub(in crate::models) fn new(settings: &Settings, provider: &str) -> Result<Self, SettingsError> {
        settings.reserve(&RESERVED)?;
        let unsupported = |setting| Err(SettingsError::Unsupported { wire: "Chat Completions", setting });
        if settings.reasoning.budget_tokens.is_some() {
            return unsupported("reasoning.budget_tokens");
        }
        if matches!(settings.prompt_cache, PromptCache::FiveMinutes | PromptCache::OneHour) {
            return unsupported("prompt_cache");
        }
        Ok(Self {
            opening: Opening::new(fields(settings, provider)),
            streaming: settings.stream,
            tool_choice: settings.tool_choice.clone(),
            parallel_tool_calls: settings.parallel_tool_calls,
            structured_output: settings.structured_output.unwrap_or_else(|| takes_schemas(provider))
                && !settings.extra.contains_key("response_format"),
        })
    }
}

impl Wire for Chat {
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
        message::translate(message)?.iter().try_for_each(|wire| members.push(wire))
    }

    fn declare(&self, tool: &Tool) -> Declared {
        tools::declare(tool)
    }

    fn body(&self, request: &ModelRequest<'_>, rendered: &Rendered<'_>) -> Result<Vec<u8>, serde_json::Error> {
        let tools = rendered.tools.unwrap_or_default();
        let mut body = Object::new(&self.opening, request.system.len() + rendered.messages.len() + tools.len());
        let system = match request.system {
            "" => String::new(),
            system => format!(r#"{{"role":"system","content":{}}},"#, Value::from(system)),
        };
        body.rendered("messages", &[b"[", system.as_bytes(), rendered.messages, b"]"]);
        if let Some(tools) = rendered.tools {
            body.rendered("tools", &[tools]);
            if let Some(choice) = self.choice(request.offer) {
                body.field("tool_choice", &choice)?;
            }
            if let Some(parallel) = self.parallel_tool_calls {
                body.field("parallel_tool_calls", &parallel)?;
            }
        }
        if let Some(schema) = request.output_schema.filter(|_| self.structured_output) {
            let format = json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}});
            body.field("response_format", &format)?;
        }
        Ok(body.end())
    }

    fn fold(&self) -> Box<dyn Fold> {
        Box::<ChatFold>::default()
    }
}

impl Chat {
    /// Tools that may not be called stay listed: the prefix that the server caches must not change with the offer.
    fn choice(&self, offer: Offer) -> Option<Value> {
        match (offer, &self.tool_choice) {
            (Offer::NoTools | Offer::LastWord, _) => Some(json!("none")),
            (Offer::Tools, ToolChoice::Auto) => None,
            (Offer::Tools, ToolChoice::Required) => Some(json!("required")),
            (Offer::Tools, ToolChoice::Tool(name)) => Some(json!({"type": "function", "function": {"name": name}})),
        }
    }
}

/// Whether this provider is known to take a schema as response format. Other servers may refuse the request for it.
fn takes_schemas(provider: &str) -> bool {
    matches!(provider, "openai" | "azure" | "openrouter" | "ollama")
}

fn fields(settings: &Settings, provider: &str) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            fields.insert(name.into(), value);
        }
    };
    // OpenAI's newer models refuse the old name, other servers do not know the new one.
    let max_tokens = if matches!(provider, "openai" | "azure") { "max_completion_tokens" } else { "max_tokens" };
    set("model", Some(json!(settings.model)));
    set("stream", Some(json!(settings.stream)));
    set("stream_options", settings.stream.then(|| json!({"include_usage": true})));
    set("temperature", settings.temperature.map(Value::from));
    set(max_tokens, settings.max_tokens.map(Value::from));
    set("top_p", settings.top_p.map(Value::from));
    set("seed", settings.seed.map(Value::from));
    set("reasoning_effort", settings.reasoning.effort.clone().map(Value::from));
    fields.extend(settings.extra.clone());
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_limit_has_the_name_that_the_server_knows() {
        let settings = Settings { max_tokens: Some(7), ..Settings::new("http://h", "m") };
        assert_eq!(fields(&settings, "openai").get("max_completion_tokens"), Some(&json!(7)));
        assert_eq!(fields(&settings, "openai").get("max_tokens"), None);
        assert_eq!(fields(&settings, "ollama").get("max_tokens"), Some(&json!(7)));
    }
}
