//! Settings of a language model, independent of the provider. An adapter rejects settings that its provider does not
//! support: a setting without effect would be misleading.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Map, Value};
use toolgate_core::address::EgressPolicy;
use toolgate_core::run::ModelOptions;
pub use toolgate_core::tool::ToolChoice;
use toolgate_core::trace::Propagation;

/// The server, the model, and the request options. `Debug` redacts secrets.
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

/// The fields of request bodies that limit the tokens of a reply, under the names of all APIs.
const OUTPUT_TOKENS: [&str; 4] = ["max_tokens", "max_output_tokens", "max_completion_tokens", "maxOutputTokens"];

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

/// A kind of content that is not text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MediaKind {
    /// Images.
    Images,
    /// Documents, PDF above all.
    Files,
    /// Audio.
    Audio,
}

/// How long a provider caches prompts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum PromptCache {
    /// The provider's default.
    #[default]
    #[serde(rename = "automatic")]
    Automatic,
    /// Requested for five minutes.
    #[serde(rename = "5m")]
    FiveMinutes,
    /// Requested for an hour.
    #[serde(rename = "1h")]
    OneHour,
    /// Not requested.
    #[serde(rename = "off")]
    Off,
}

/// The credential for the server.
#[derive(Clone, Debug)]
pub enum Key {
    Fixed(SecretString),
    /// The output of a program, which runs again when the key is rejected.
    Command(KeyCommand),
    /// A key from a source, which is asked again when the key is rejected.
    From(Arc<dyn KeySource>),
}

/// A program that prints the key.
#[derive(Clone, Debug)]
pub struct KeyCommand {
    pub command: String,
    pub args: Vec<String>,
}

/// A source of keys: the host application's access to its credentials (FEATURES 3.09).
#[async_trait]
pub trait KeySource: fmt::Debug + Send + Sync {
    /// The key to send. Called before the first request, and again when the provider rejects a key. The call is dropped
    /// after 30 seconds. The error is shown to users and must hold no secret.
    async fn key(&self) -> Result<SecretString, String>;
}

impl Settings {
    /// The settings with the options of a run in place of their own.
    ///
    /// # Errors
    ///
    /// Why an option would have no effect, or would exceed what the settings allow.
    pub fn with(&self, options: &ModelOptions) -> Result<Self, String> {
        let ModelOptions { tool_choice, parallel_tool_calls, temperature, max_output_tokens } = options;
        let overridden = |names: &[&str]| {
            let nested = self.extra.values().filter_map(Value::as_object);
            let mut fields = [&self.extra].into_iter().chain(nested);
            fields
                .find_map(|fields| names.iter().find(|name| fields.contains_key(**name)).map(|name| (*name).to_owned()))
        };
        let field = None
            .or_else(|| temperature.and_then(|_| overridden(&["temperature"])))
            .or_else(|| max_output_tokens.and_then(|_| overridden(&OUTPUT_TOKENS)));
        if let Some(field) = field {
            return Err(format!("the configuration of the model sets `{field}` in `extra`"));
        }
        if let Some((wanted, most)) = max_output_tokens.zip(self.max_tokens).filter(|(wanted, most)| wanted > most) {
            return Err(format!("the model is configured for at most {most} output tokens, not {wanted}"));
        }
        Ok(Self {
            tool_choice: tool_choice.clone().unwrap_or_else(|| self.tool_choice.clone()),
            parallel_tool_calls: parallel_tool_calls.or(self.parallel_tool_calls),
            temperature: temperature.or(self.temperature),
            max_tokens: max_output_tokens.or(self.max_tokens),
            ..self.clone()
        })
    }

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
