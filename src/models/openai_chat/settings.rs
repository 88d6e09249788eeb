//! What an operator says about a model server.

use std::collections::BTreeMap;
use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Map, Value, json};

/// Where the server is, which model to ask, and how.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address up to and including the version, for example `https://api.openai.com/v1`.
    pub base_url: String,
    /// Sent as a bearer token; local servers need none.
    pub api_key: Option<SecretString>,
    /// The model that is asked for.
    pub model: String,
    /// Further headers; their values are treated as secrets.
    pub headers: BTreeMap<String, SecretString>,
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
    /// Whether the model may ask for several tools at once; the server's default if `None`.
    pub parallel_tool_calls: Option<bool>,
    /// Sends the output schema as `response_format`; off, because many servers refuse it.
    pub structured_output: bool,
    /// Further fields of the request body. They win over the settings above.
    pub extra: Map<String, Value>,
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
    /// A body field that belongs to the loop.
    #[error("extra.{0} is set by toolgate itself; remove it")]
    ReservedField(String),
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
            stream: true,
            timeouts: Timeouts::default(),
            temperature: None,
            max_tokens: None,
            top_p: None,
            seed: None,
            parallel_tool_calls: None,
            structured_output: false,
            extra: Map::new(),
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
        show("parallel_tool_calls", self.parallel_tool_calls.map(Value::from));
        Value::Object(shown)
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
