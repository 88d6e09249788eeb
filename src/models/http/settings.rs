//! What an operator says about a model, whatever the provider. A wire refuses what its provider does not have: a setting
//! without effect would be a lie.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Map, Value, json};

use super::keys::KeySource;
use crate::core::trace::Propagation;

/// Where the server is, which model to ask, and how.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address that the provider's paths are appended to, for example `https://api.openai.com/v1`.
    pub base_url: String,
    /// Sent the way the provider wants it; local servers need none.
    pub api_key: Option<Key>,
    /// The model that is asked for.
    pub model: String,
    /// Further headers; their values are treated as secrets.
    pub headers: BTreeMap<String, SecretString>,
    /// How the server is reached.
    pub proxy: Proxy,
    /// Whether replies arrive in fragments.
    pub stream: bool,
    /// How long to wait for what.
    pub timeouts: Timeouts,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// The limit of tokens in a reply.
    pub max_tokens: Option<u64>,
    /// Nucleus sampling.
    pub top_p: Option<f64>,
    /// Asks for repeatable sampling.
    pub seed: Option<i64>,
    /// How much the model thinks before it speaks.
    pub reasoning: Reasoning,
    /// Which tools the model may or must call while tools are on offer.
    pub tool_choice: ToolChoice,
    /// Whether the model may ask for several tools at once; the server's default if `None`.
    pub parallel_tool_calls: Option<bool>,
    /// Whether tools whose schema allows it are declared strict.
    pub strict_tools: bool,
    /// Whether the output schema is sent as the provider's own response format; by default where the provider is known
    /// to take it.
    pub structured_output: Option<bool>,
    /// What goes along as it is instead of as a note; by default what the provider is known to take.
    pub media: Option<BTreeSet<MediaKind>>,
    /// How long the provider is to remember what was sent, where that has to be asked for.
    pub prompt_cache: PromptCache,
    /// Which parts of a caller's trace context go along as headers; by default not its baggage, which may name users.
    pub propagation: Propagation,
    /// Further fields of the request body. They win over the settings above.
    pub extra: Map<String, Value>,
}

/// What the server is shown so that it answers.
#[derive(Clone, Debug)]
pub enum Key {
    /// A key that stays the same.
    Fixed(SecretString),
    /// A key that is asked for, and asked for once more when it is refused.
    From(Arc<dyn KeySource>),
}

/// How a server is reached.
#[derive(Clone, Debug, Default)]
pub enum Proxy {
    /// As `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say.
    #[default]
    Environment,
    /// Directly.
    Direct,
    /// Through this proxy; the address may hold a password.
    Url(SecretString),
}

/// How long to wait for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the connection stands.
    pub connect: Duration,
    /// From the request to the first token of a streamed reply.
    pub first_token: Duration,
    /// Between two pieces of an answer.
    pub idle: Duration,
    /// From the request to the end of the reply.
    pub total: Duration,
}

/// How much a model thinks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reasoning {
    /// The provider's own word: `minimal`, `low`, `medium`, `high`, …
    pub effort: Option<String>,
    /// Most tokens of thinking, where the provider counts them.
    pub budget_tokens: Option<u64>,
    /// Whether the thinking, or a summary of it, is to be shown; the provider's default if `None`.
    pub show: Option<bool>,
}

/// Which tools a model may or must call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// Those it finds useful.
    #[default]
    Auto,
    /// At least one.
    Required,
    /// This one, by the name it is shown under.
    Tool(String),
}

/// A kind of content that is not text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MediaKind {
    /// Images.
    Images,
    /// Documents, PDF above all.
    Files,
    /// Audio.
    Audio,
}

/// How long a provider remembers what was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PromptCache {
    /// As the provider does by itself; where it does nothing by itself, as it advises.
    #[default]
    Automatic,
    /// Asked for, for five minutes.
    FiveMinutes,
    /// Asked for, for an hour.
    OneHour,
    /// Not asked for.
    Off,
}

/// Settings that cannot work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The address is none.
    #[error("base_url is not an http or https address: {0}")]
    BaseUrl(String),
    /// A header that HTTP does not allow. The value is not shown.
    #[error("the header {0:?} has a name or a value that HTTP does not allow")]
    Header(String),
    /// The key cannot be a header value. It is not shown.
    #[error("the API key holds characters that an HTTP header cannot carry; is there a line end in it?")]
    ApiKey,
    /// The proxy's address is none. It is not shown.
    #[error("the proxy is not a usable address")]
    Proxy,
    /// A body field that belongs to the loop.
    #[error("extra.{0} is set by toolgate itself; remove it")]
    ReservedField(String),
    /// A setting that this provider does not have.
    #[error("{wire} has no {setting}; remove it")]
    Unsupported {
        /// The wire format.
        wire: &'static str,
        /// The setting.
        setting: &'static str,
    },
    /// A setting that this provider does not take like that.
    #[error("{0}")]
    Unusable(String),
    /// The HTTP client cannot be built.
    #[error("the HTTP client cannot be built: {0}")]
    Client(String),
}

impl Settings {
    /// A streaming model without a key, with default timeouts and the server's own sampling.
    pub fn new(base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
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

    /// Refuses an extra field that belongs to the loop: an operator who sets one would break it.
    pub(in crate::models) fn reserve(&self, fields: &[&str]) -> Result<(), SettingsError> {
        match fields.iter().find(|field| self.extra.contains_key(**field)) {
            Some(field) => Err(SettingsError::ReservedField((*field).into())),
            None => Ok(()),
        }
    }

    /// The settings that spans and listings show: sampling alone, no address, header or extra field.
    pub(super) fn shown(&self) -> Value {
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
    /// 10 s to connect, 120 s to the first token, 60 s between pieces, 600 s in all.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_token: Duration::from_secs(120),
            idle: Duration::from_secs(60),
            total: Duration::from_secs(600),
        }
    }
}
