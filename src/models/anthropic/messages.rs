//! Messages request: the body around the conversation, and the settings under this API's names.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use toolgate_core::chat::Message;
use toolgate_core::error::ErrorCode;
use toolgate_core::run::ToolAccess;
use toolgate_core::tool::Tool;
use toolgate_ports::ModelRequest;

use super::fold::MessageFold;
use super::replay::WIRE;
use super::{message, replay, subset, tools};
use crate::http::{
    Declaration, Declared, ErrorBody, Fold, MediaKind, Members, Object, PromptCache, ProviderProtocol, Reasoning,
    RenderedParts, RequestPrefix, Settings, SettingsError, ToolChoice, check_reserved,
};

/// Fields that toolgate sets.
const RESERVED: [&str; 6] = ["model", "messages", "system", "stream", "tools", "tool_choice"];
const DEFAULT_MAX_TOKENS: u64 = 16_384;
/// The smallest budget that the API accepts.
const MIN_THINKING_BUDGET: u64 = 1024;

/// The Messages wire format, for one model.
#[derive(Debug)]
pub(super) struct Messages {
    prefix: RequestPrefix,
    model: String,
    streaming: bool,
    manual_thinking: Option<Value>,
    tool_choice: ToolChoice,
    parallel_tool_calls: Option<bool>,
    strict_tools: bool,
    media: BTreeSet<MediaKind>,
    effort: Option<String>,
    structured_output: bool,
}

impl Messages {
    /// The format for the server of this provider.
    pub(super) fn new(settings: &Settings, provider: &str) -> Result<Self, SettingsError> {
        check_reserved(settings, &RESERVED)?;
        let media = settings.media.clone().unwrap_or_else(|| [MediaKind::Images, MediaKind::Files].into());
        let unsupported = |setting| Err(SettingsError::Unsupported { wire: "Anthropic Messages", setting });
        if settings.seed.is_some() {
            return unsupported("seed");
        }
        if media.contains(&MediaKind::Audio) {
            return unsupported("media of kind audio");
        }
        if settings.reasoning.send_back.is_some() {
            return unsupported("reasoning.send_back");
        }
        check_thinking(settings)?;
        // The operator's own `output_config` replaces ours as a whole.
        let is_ours = !settings.extra.contains_key("output_config");
        Ok(Self {
            prefix: RequestPrefix::new(fields(settings, provider)),
            model: settings.model.clone(),
            streaming: settings.stream,
            manual_thinking: manual_thinking(settings),
            tool_choice: settings.tool_choice.clone(),
            parallel_tool_calls: settings.parallel_tool_calls,
            strict_tools: settings.strict_tools,
            media,
            effort: settings.reasoning.effort.clone().filter(|_| is_ours),
            structured_output: is_ours && settings.structured_output.unwrap_or(provider == "anthropic"),
        })
    }
}

impl ProviderProtocol for Messages {
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
        members.push(&message::translate(message, &self.model, &self.media))
    }

    fn declare(&self, tool: &Tool) -> Declared {
        tools::declare(tool, self.strict_tools)
    }

    fn bound(&self, declarations: &mut [Declaration]) {
        tools::bound(declarations);
    }

    fn body(&self, request: &ModelRequest<'_>, rendered: &RenderedParts<'_>) -> Result<Vec<u8>, serde_json::Error> {
        let tools = rendered.tools.unwrap_or_default();
        let mut body = Object::new(&self.prefix, request.system.len() + rendered.messages.len() + tools.len());
        if !request.system.trim().is_empty() {
            body.field("system", &request.system)?;
        }
        if let Some(thinking) =
            self.manual_thinking.as_ref().filter(|_| replay::may_think(request.messages, &self.model))
        {
            body.field("thinking", thinking)?;
        }
        body.rendered("messages", &[b"[", rendered.messages, b"]"]);
        if let Some(tools) = rendered.tools {
            body.rendered("tools", &[tools]);
            if let Some(choice) = self.choice(request.tool_access, rendered.choice(&self.tool_choice)) {
                body.field("tool_choice", &choice)?;
            }
        } else if let Some(stubs) = tools::stubs(request.messages) {
            body.field("tools", &stubs)?;
            body.field("tool_choice", &json!({"type": "none"}))?;
        }
        let output_config = self.output_config(request.output_schema);
        if !output_config.is_empty() {
            body.field("output_config", &output_config)?;
        }
        Ok(body.end())
    }

    fn fold(&self) -> Box<dyn Fold> {
        Box::new(MessageFold::new(&self.model))
    }

    fn classify(&self, error: &ErrorBody) -> Option<ErrorCode> {
        classify(error)
    }
}

impl Messages {
    /// The tool choice. Tools that may not be called stay listed, because the prefix that the server caches must not
    /// change with the tool access.
    fn choice(&self, tool_access: ToolAccess, choice: &ToolChoice) -> Option<Map<String, Value>> {
        let (kind, name) = match (tool_access, choice) {
            (ToolAccess::BudgetExhausted | ToolAccess::Stopped | ToolAccess::FinalAnswer, _) => {
                return Some(Map::from_iter([("type".into(), json!("none"))]));
            }
            (ToolAccess::Enabled, ToolChoice::Auto) if self.parallel_tool_calls.is_none() => return None,
            (ToolAccess::Enabled, ToolChoice::Auto) => ("auto", None),
            (ToolAccess::Enabled, ToolChoice::Required) => ("any", None),
            (ToolAccess::Enabled, ToolChoice::Tool(name)) => ("tool", Some(name)),
        };
        let disable_parallel = self.parallel_tool_calls.map(|parallel| !parallel);
        Some(set([
            ("type", Some(json!(kind))),
            ("name", name.map(|name| json!(name))),
            ("disable_parallel_tool_use", disable_parallel.map(Value::from)),
        ]))
    }

    fn output_config(&self, schema: Option<&Value>) -> Map<String, Value> {
        let schema = schema.filter(|_| self.structured_output).and_then(subset::output_schema);
        set([
            ("effort", self.effort.clone().map(Value::from)),
            ("format", schema.map(|schema| json!({"type": "json_schema", "schema": schema}))),
        ])
    }
}

/// Rejects combinations that the API rejects for every conversation.
fn check_thinking(settings: &Settings) -> Result<(), SettingsError> {
    let (asked_by, budget) = match (settings.reasoning.budget_tokens, settings.reasoning.show) {
        (Some(budget), _) => ("reasoning.budget_tokens", Some(budget)),
        (None, Some(true)) => ("reasoning.show", None),
        (None, Some(false) | None) => return Ok(()),
    };
    let refused = |why: String| Err(SettingsError::Unusable(format!("{asked_by} {why}")));
    if budget.is_some_and(|budget| budget < MIN_THINKING_BUDGET) {
        return refused(format!("must be at least {MIN_THINKING_BUDGET} for Anthropic"));
    }
    let limit = settings.max_tokens.zip(budget);
    if limit.is_some_and(|(max_tokens, budget)| max_tokens <= budget) {
        return refused("counts towards max_tokens for Anthropic and must be smaller".into());
    }
    if settings.tool_choice != ToolChoice::Auto {
        return refused("cannot be combined with a tool_choice that forces a call for Anthropic".into());
    }
    if settings.temperature.is_some_and(|temperature| temperature != 1.0) {
        return refused("cannot be combined with a temperature other than 1 for Anthropic".into());
    }
    Ok(())
}

fn fields(settings: &Settings, provider: &str) -> Map<String, Value> {
    let default_max_tokens = settings.reasoning.budget_tokens.unwrap_or(0).saturating_add(DEFAULT_MAX_TOKENS);
    let mut fields = set([
        ("model", Some(json!(settings.model))),
        ("max_tokens", Some(json!(settings.max_tokens.unwrap_or(default_max_tokens)))),
        ("stream", Some(json!(settings.stream))),
        ("temperature", settings.temperature.map(Value::from)),
        ("top_p", settings.top_p.map(Value::from)),
        ("thinking", adaptive_thinking(&settings.reasoning)),
        ("cache_control", cache_control(settings.prompt_cache, provider)),
    ]);
    fields.extend(settings.extra.clone());
    fields
}

/// Manual thinking. It is separate from the other fields, because not every request can have it. The operator's own
/// field wins.
fn manual_thinking(settings: &Settings) -> Option<Value> {
    let Reasoning { effort: _, budget_tokens, show, send_back: _ } = &settings.reasoning;
    let budget = budget_tokens.filter(|_| !settings.extra.contains_key("thinking"))?;
    Some(Value::Object(set([
        ("type", Some(json!("enabled"))),
        ("budget_tokens", Some(json!(budget))),
        ("display", show.map(display)),
    ])))
}

fn adaptive_thinking(reasoning: &Reasoning) -> Option<Value> {
    match (reasoning.budget_tokens, reasoning.show) {
        (None, Some(true)) => Some(json!({"type": "adaptive", "display": display(true)})),
        // `show: false` alone does not ask for thinking.
        (Some(_), _) | (None, Some(false) | None) => None,
    }
}

fn display(show: bool) -> Value {
    json!(if show { "summarized" } else { "omitted" })
}

fn cache_control(cache: PromptCache, provider: &str) -> Option<Value> {
    match cache {
        PromptCache::Automatic if provider == "anthropic" => Some(json!({"type": "ephemeral"})),
        PromptCache::Automatic | PromptCache::Off => None,
        PromptCache::FiveMinutes => Some(json!({"type": "ephemeral", "ttl": "5m"})),
        PromptCache::OneHour => Some(json!({"type": "ephemeral", "ttl": "1h"})),
    }
}

/// An object of the fields that have a value.
fn set<const N: usize>(fields: [(&str, Option<Value>); N]) -> Map<String, Value> {
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// The code of an error. Stream errors have no status, so the types that only this API uses are read here.
pub(super) fn classify(error: &ErrorBody) -> Option<ErrorCode> {
    if error.says("billing_error") {
        return Some(ErrorCode::ProviderBilling);
    }
    error.says("request_too_large").then_some(ErrorCode::ProviderRejected)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(provider: &str, settings: Settings, schema: &Value) -> Value {
        let wire = Messages::new(&settings, provider).unwrap();
        let mut body = Value::Object(fields(&settings, provider));
        body["output_config"] = Value::Object(wire.output_config(Some(schema)));
        body
    }

    #[test]
    fn fields_that_other_servers_may_not_know_go_to_anthropic() {
        let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
        let settings = || Settings::new("http://h", "m");
        let own = body("anthropic", settings(), &schema);
        assert_eq!(own["cache_control"], json!({"type": "ephemeral"}));
        assert_eq!(own["output_config"], json!({"format": {"type": "json_schema", "schema": schema}}));
        let other = body("localhost", settings(), &schema);
        assert_eq!((other.get("cache_control"), &other["output_config"]), (None, &json!({})));
        let off = Settings { prompt_cache: PromptCache::Off, structured_output: Some(false), ..settings() };
        let off = body("anthropic", off, &schema);
        assert_eq!((off.get("cache_control"), &off["output_config"]), (None, &json!({})));
    }
}
