//! Images request: the prompt, and the settings under this API's names.

use serde_json::{Map, Value, json};
use toolgate_core::chat::{Message, Part, Role};
use toolgate_core::error::{ErrorCode, Failure};
use toolgate_core::tool::Tool;
use toolgate_ports::ModelRequest;

use super::fold::ImagesFold;
use crate::http::{
    Declared, ErrorBody, Fold, Members, Object, PromptCache, ProviderProtocol, Reasoning, RenderedParts, RequestPrefix,
    Settings, SettingsError, ToolChoice, check_reserved,
};

/// The name of this wire format.
pub const WIRE: &str = "openai_images";

/// Fields that toolgate sets, or that produce an answer it does not read.
const RESERVED: [&str; 4] = ["model", "prompt", "stream", "partial_images"];

/// The most bytes of an answer. Its images are base64, a third larger than their bytes.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// The wire format of the Images API, for one model.
#[derive(Debug)]
pub(super) struct Images {
    prefix: RequestPrefix,
    output_format: Option<String>,
}

impl Images {
    /// The format for the server of this provider.
    pub(super) fn new(settings: &Settings, provider: &str) -> Result<Self, SettingsError> {
        check_reserved(settings, &RESERVED)?;
        if let Some(setting) = unsupported(settings) {
            return Err(SettingsError::Unsupported { wire: "the Images API", setting });
        }
        let output_format = settings.extra.get("output_format").and_then(Value::as_str).map(str::to_owned);
        Ok(Self { prefix: RequestPrefix::new(fields(settings, provider)), output_format })
    }
}

impl ProviderProtocol for Images {
    fn name(&self) -> &'static str {
        WIRE
    }

    fn streams(&self) -> bool {
        false
    }

    fn check(&self, request: &ModelRequest<'_>) -> Result<(), Failure> {
        prompt(request).map(drop)
    }

    /// Earlier messages are not sent: the API has no conversation.
    fn message(&self, _: &Message, _: Option<&Message>, _: &mut Members) -> Result<(), serde_json::Error> {
        Ok(())
    }

    fn declare(&self, _: &Tool) -> Declared {
        Declared::Refused("an image model does not call tools".into())
    }

    fn body(&self, request: &ModelRequest<'_>, _: &RenderedParts<'_>) -> Result<Vec<u8>, serde_json::Error> {
        // `check` rejects a request without a prompt.
        let prompt = prompt(request).unwrap_or_default();
        let mut body = Object::new(&self.prefix, prompt.len());
        body.field("prompt", &prompt)?;
        Ok(body.end())
    }

    fn fold(&self) -> Box<dyn Fold> {
        Box::new(ImagesFold::new(self.output_format.clone()))
    }

    fn classify(&self, error: &ErrorBody) -> Option<ErrorCode> {
        error.says("moderation_blocked").then_some(ErrorCode::ContentFilter)
    }

    fn max_answer_bytes(&self) -> usize {
        MAX_ANSWER_BYTES
    }
}

/// The first setting that does not apply to an image model.
fn unsupported(settings: &Settings) -> Option<&'static str> {
    let caches = matches!(settings.prompt_cache, PromptCache::FiveMinutes | PromptCache::OneHour);
    let said = [
        ("temperature", settings.temperature.is_some()),
        ("top_p", settings.top_p.is_some()),
        ("seed", settings.seed.is_some()),
        ("max_tokens", settings.max_tokens.is_some()),
        ("reasoning", settings.reasoning != Reasoning::default()),
        ("tool_choice", settings.tool_choice != ToolChoice::Auto),
        ("parallel_tool_calls", settings.parallel_tool_calls.is_some()),
        ("strict_tools", settings.strict_tools),
        ("structured_output", settings.structured_output.is_some()),
        ("media", settings.media.is_some()),
        ("prompt_cache", caches),
    ];
    said.into_iter().find(|(_, is_said)| *is_said).map(|(setting, _)| setting)
}

fn fields(settings: &Settings, provider: &str) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("model".into(), json!(settings.model));
    if takes_response_format(&settings.model, provider) {
        fields.insert("response_format".into(), json!("b64_json"));
    }
    fields.extend(settings.extra.clone());
    // A null in `extra` removes a field that is sent by default.
    fields.retain(|_, value| !value.is_null());
    fields
}

/// Whether to send `response_format`. Other models return a URL without it; OpenAI's GPT image models return only
/// base64, and reject the field.
fn takes_response_format(model: &str, provider: &str) -> bool {
    !matches!(provider, "openai" | "azure") && !model.contains("gpt-image")
}

/// The prompt, or why the request is invalid.
pub(super) fn prompt(request: &ModelRequest<'_>) -> Result<String, Failure> {
    let refused = |why: String| Err(Failure::new(ErrorCode::Validation, format!("an image model {why}")));
    if request.tools.iter().next().is_some() {
        return refused("does not call tools; use an agent without servers and external tools".into());
    }
    if request.output_schema.is_some() {
        return refused("has no structured output; remove the output schema".into());
    }
    if !request.system.trim().is_empty() {
        return refused("takes no instructions; put everything into the message".into());
    }
    let message = request.messages.last().filter(|message| message.role == Role::User);
    if let Some(kind) = message.and_then(|message| beside_text(message)) {
        return refused(format!("takes only text, and the message holds {kind}"));
    }
    let prompt = message.map(|message| message.text()).unwrap_or_default();
    if prompt.trim().is_empty() {
        return refused("needs a prompt, and the message has no text; describe the image".into());
    }
    Ok(prompt)
}

/// The content of the message that is not text.
fn beside_text(message: &Message) -> Option<&'static str> {
    message.content.iter().find_map(|part| match part {
        Part::Text { .. } => None,
        Part::Image(_) => Some("an image"),
        Part::Audio(_) => Some("audio"),
        Part::Resource { .. } => Some("a file"),
        Part::Reasoning { .. } => Some("reasoning"),
        Part::ToolUse { .. } | Part::ToolResult { .. } => Some("a tool call or its result"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(model: &str, provider: &str, extra: Value) -> Value {
        let extra = extra.as_object().unwrap().clone();
        Value::Object(fields(&Settings { extra, ..Settings::new("http://h", model) }, provider))
    }

    #[test]
    fn base64_is_requested_unless_it_is_the_only_form() {
        assert_eq!(sent("gpt-image-2", "openai", json!({})), json!({"model": "gpt-image-2"}));
        assert_eq!(sent("openai/gpt-image-2", "gateway", json!({})), json!({"model": "openai/gpt-image-2"}));
        assert_eq!(sent("flux", "localhost", json!({})), json!({"model": "flux", "response_format": "b64_json"}));
        assert_eq!(sent("flux", "localhost", json!({"response_format": null})), json!({"model": "flux"}));
    }

    #[test]
    fn language_model_settings_are_rejected_by_name() {
        let refused = |settings: Settings| Images::new(&settings, "openai").unwrap_err().to_string();
        let plain = || Settings::new("http://h", "m");
        assert_eq!(
            refused(Settings { temperature: Some(0.5), ..plain() }),
            "the Images API has no temperature; remove it"
        );
        let extra = json!({"partial_images": 2}).as_object().unwrap().clone();
        assert!(refused(Settings { extra, ..plain() }).contains("extra.partial_images"));
        assert!(Images::new(&plain(), "openai").is_ok());
    }
}
