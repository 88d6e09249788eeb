//! The request body: an opening that never changes, the conversation that only grows, the tools that rarely change,
//! and a short tail. A turn costs the rendering of what is new and one copy of the bytes that are sent anyway.

use serde_json::{Map, Value, json};

use super::CallIds;
use super::settings::{Settings, SettingsError};
use super::tool_block::ToolBlock;
use super::transcript::Transcript;
use crate::core::run::Offer;
use crate::ports::ModelRequest;

/// Fields that the loop sets; an operator who sets one as well would break it.
const RESERVED: [&str; 7] = ["model", "messages", "stream", "tools", "tool_choice", "parallel_tool_calls", "n"];

/// What is the same in every request to a model.
#[derive(Debug)]
pub(super) struct Opening {
    /// An object's beginning, up to and including the bracket of `messages`.
    json: Vec<u8>,
    streaming: bool,
    parallel_tool_calls: Option<bool>,
    structured_output: bool,
}

impl Opening {
    pub(super) fn new(settings: &Settings, provider: &str) -> Result<Self, SettingsError> {
        if let Some(field) = RESERVED.iter().find(|field| settings.extra.contains_key(**field)) {
            return Err(SettingsError::ReservedField((*field).into()));
        }
        let fields = Value::Object(fields(settings, provider)).to_string();
        let mut json = fields.strip_suffix('}').unwrap_or(&fields).as_bytes().to_vec();
        json.extend_from_slice(br#","messages":["#);
        Ok(Self {
            json,
            streaming: settings.stream,
            parallel_tool_calls: settings.parallel_tool_calls,
            structured_output: settings.structured_output && !settings.extra.contains_key("response_format"),
        })
    }

    /// Whether a stream is asked for.
    pub(super) fn streaming(&self) -> bool {
        self.streaming
    }
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
    fields.extend(settings.extra.clone());
    fields
}

/// The body of a conversation's requests, kept from turn to turn.
#[derive(Debug, Default)]
pub(super) struct RequestBody {
    transcript: Transcript,
    tools: ToolBlock,
}

impl RequestBody {
    /// The whole body for this request.
    pub(super) fn render(
        &mut self,
        opening: &Opening,
        request: &ModelRequest<'_>,
    ) -> Result<Vec<u8>, serde_json::Error> {
        self.transcript.update(request.system, request.messages)?;
        let tools = self.tools.render(request.tools)?;
        let tail = tail(opening, request);

        let [key, tools]: [&[u8]; 2] = if request.tools.is_empty() { [b"", b""] } else { [br#","tools":"#, tools] };
        let body = [&opening.json, self.transcript.json(), b"]", key, tools, tail.as_bytes(), b"}"].concat();
        Ok(body)
    }

    /// The ids of all calls in the conversation.
    pub(super) fn ids(&self) -> &CallIds {
        self.transcript.ids()
    }
}

/// What may change from turn to turn, each field with a comma before it. Tools that may not be called stay listed:
/// the prefix that the server caches must not change with the offer.
fn tail(opening: &Opening, request: &ModelRequest<'_>) -> String {
    let mut tail = String::new();
    if !request.tools.is_empty() {
        match request.offer {
            Offer::Tools => {}
            Offer::NoTools | Offer::LastWord => tail.push_str(r#","tool_choice":"none""#),
        }
        if let Some(parallel) = opening.parallel_tool_calls {
            tail.push_str(&format!(r#","parallel_tool_calls":{parallel}"#));
        }
    }
    if let Some(schema) = request.output_schema.filter(|_| opening.structured_output) {
        let format = json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}});
        tail.push_str(&format!(r#","response_format":{format}"#));
    }
    tail
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
