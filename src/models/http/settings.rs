//! Model settings, independent of the provider. A wire rejects settings that its provider does not support: a setting
//! without effect would be misleading.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Map, Value, json};
use toolgate_core::address::EgressPolicy;
use toolgate_core::trace::Propagation;

use super::keys::Key;

/// The server, the model, and the request options.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The base address; the provider's paths are appended to it, for example `https://api.openai.com/v1`.
    pub base_url: String,
    /// The addresses at which the server may be.
    pub egress: EgressPolicy,
    /// Sent in the provider's own header; local servers need no key.
    pub api_key: Option<Key>,
    pub model: String,
    /// Further headers; their values are treated as secrets.
    pub headers: BTreeMap<String, SecretString>,
    pub proxy: Proxy,
    /// Whether replies arrive in fragments.
    pub stream: bool,
    /// The deadlines of a request.
    pub timeouts: Timeouts,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// The most tokens of a reply.
    pub max_tokens: Option<u64>,
    /// Nucleus sampling.
    pub top_p: Option<f64>,
    /// The seed for repeatable sampling.
    pub seed: Option<i64>,
    pub reasoning: Reasoning,
    /// The tools that the model may or must call while tools are available.
    pub tool_choice: ToolChoice,
    /// Whether the model may request several tools at once; the server's default if `None`.
    pub parallel_tool_calls: Option<bool>,
    /// Whether tools whose schema allows it are declared strict.
    pub strict_tools: bool,
    /// Whether the output schema is sent as the provider's own response format; by default if the provider is known to
    /// support it.
    pub structured_output: Option<bool>,
    /// The media kinds sent natively instead of as a note; by default the ones that the provider is known to support.
    pub media: Option<BTreeSet<MediaKind>>,
    /// How long the provider keeps the prompt cache, for providers that require a request for it.
    pub prompt_cache: PromptCache,
    /// The parts of a caller's trace context that are sent as headers; by default without baggage, which may name
    /// users.
    pub propagation: Propagation,
    /// Further fields of the request body. They override the settings above.
    pub extra: Map<String, Value>,
}

/// The connection to the server.
#[derive(Clone, Debug, Default)]
pub enum Proxy {
    /// The proxy of `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`.
    #[default]
    Environment,
    Direct,
    /// This proxy; the address may hold a password.
    Url(SecretString),
}

/// The deadlines of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the connection is established.
    pub connect: Duration,
    /// From the request to the first token of a streamed reply.
    pub first_token: Duration,
    /// Between two pieces of an answer.
    pub idle: Duration,
    /// From the request to the end of the reply.
    pub total: Duration,
}

/// How much a model reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reasoning {
    /// The provider's own word: `minimal`, `low`, `medium`, `high`, …
    pub effort: Option<String>,
    /// The most reasoning tokens, if the provider has such a limit.
    pub budget_tokens: Option<u64>,
    /// Whether the reply includes the reasoning or a summary of it; the provider's default if `None`.
    pub show: Option<bool>,
    /// Whether the reasoning of earlier turns is sent back as `reasoning_content` (Chat Completions); by default to
    /// servers and models that require it.
    pub send_back: Option<bool>,
}

/// The tools that a model may or must call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// At least one tool.
    Required,
    /// This tool, by its name in the request.
    Tool(String),
}

/// A kind of content other than text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MediaKind {
    Images,
    /// Documents, mostly PDF.
    Files,
    Audio,
}

/// How long a provider caches the prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PromptCache {
    /// The provider's default; for providers without automatic caching, their recommendation.
    #[default]
    Automatic,
    /// Requested for five minutes.
    FiveMinutes,
    /// Requested for one hour.
    OneHour,
    /// Not requested.
    Off,
}

/// Invalid settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The base address is invalid.
    #[error("base_url is not an http or https address: {0}")]
    BaseUrl(String),
    /// The address is not allowed.
    #[error("base_url: {0}")]
    Egress(String),
    /// A header that HTTP does not allow. The message does not show its value.
    #[error("the header {0:?} has a name or a value that HTTP does not allow")]
    Header(String),
    /// The key cannot be a header value. The message does not show it.
    #[error("the API key holds characters that an HTTP header cannot carry; is there a line end in it?")]
    ApiKey,
    /// The proxy address is invalid. The message does not show it.
    #[error("the proxy is not a usable address")]
    Proxy,
    /// A body field that toolgate sets.
    #[error("extra.{0} is set by toolgate itself; remove it")]
    ReservedField(String),
    /// A setting that this provider does not support.
    #[error("{wire} has no {setting}; remove it")]
    Unsupported {
        /// The wire format.
        wire: &'static str,
        setting: &'static str,
    },
    /// A value that this provider does not support.
    #[error("{0}")]
    Unusable(String),
    /// The HTTP client cannot be created.
    #[error("the HTTP client cannot be built: {0}")]
    Client(String),
}

impl Settings {
    /// A streaming model without a key, with default deadlines and the server's own sampling.
    pub fn new(base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            egress: EgressPolicy::default(),
            api_key: None,
            model: model.into(),
            headers: BTreeMap::new(),
            proxy: Proxy::default(),
            stream: true,
            timeouts: Timeouts::default(),
            temperature: None,
            max_tokens: None,
            top_p: None,
            seed: None,
            reasoning: Reasoning::default(),
            tool_choice: ToolChoice::default(),
            parallel_tool_calls: None,
            strict_tools: false,
            structured_output: None,
            media: None,
            prompt_cache: PromptCache::default(),
            propagation: Propagation::TRACE_CONTEXT,
            extra: Map::new(),
        }
    }

    /// Rejects an extra field that toolgate sets: an operator's own value would break the loop.
    pub(crate) fn reserve(&self, fields: &[&str]) -> Result<(), SettingsError> {
        match fields.iter().find(|field| self.extra.contains_key(**field)) {
            Some(field) => Err(SettingsError::ReservedField((*field).into())),
            None => Ok(()),
        }
    }

    /// The settings that spans and listings show: only sampling, no address, header or extra field.
    pub(super) fn sampling_settings(&self) -> Value {
        let mut shown = Map::new();
        let mut show = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                shown.insert(name.into(), value);
            }
        };
        show("stream", Some(json!(self.stream)));
        show("temperature", self.temperature.map(Value::from));
        show("max_tokens", self.max_tokens.map(Value::from));
        show("top_p", self.top_p.map(Value::from));
        show("seed", self.seed.map(Value::from));
        show("reasoning_effort", self.reasoning.effort.clone().map(Value::from));
        show("reasoning_budget_tokens", self.reasoning.budget_tokens.map(Value::from));
        show("parallel_tool_calls", self.parallel_tool_calls.map(Value::from));
        match &self.tool_choice {
            ToolChoice::Auto => {}
            ToolChoice::Required => show("tool_choice", Some(json!("required"))),
            ToolChoice::Tool(name) => show("tool_choice", Some(json!(name))),
        }
        Value::Object(shown)
    }
}

impl From<&str> for Key {
    fn from(key: &str) -> Self {
        Self::Fixed(key.into())
    }
}

impl Default for Timeouts {
    /// 10 s to connect, 120 s to the first token, 60 s between pieces, 600 s in total.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_token: Duration::from_secs(120),
            idle: Duration::from_secs(60),
            total: Duration::from_secs(600),
        }
    }
}
