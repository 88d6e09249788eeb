//! Written form of language models. All providers share one set of settings. A setting that a provider does not support
//! is rejected when the model is opened.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::seconds;
use crate::settings::TraceContext;
use crate::spanned::{Located, Text};
use toolgate_settings::model::{MediaKind, PromptCache};

/// A language model.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Model {
    /// A server that speaks OpenAI's Chat Completions API: OpenAI, Azure, OpenRouter, Ollama, vLLM, llama.cpp, …
    #[serde(rename = "openai_chat")]
    OpenAiChat(Box<HttpModel>),
    /// OpenAI's Responses API, stateless: nothing is stored at the provider.
    #[serde(rename = "openai_responses")]
    OpenAiResponses(Box<HttpModel>),
    /// Anthropic's Messages API.
    Anthropic(Box<HttpModel>),
    /// Google's Gemini API (generateContent).
    Gemini(Box<HttpModel>),
    /// Images, by OpenAI's Images API (`/images/generations`). Image parameters (`size`, `quality`, `output_format`, …)
    /// go into `extra`.
    #[serde(rename = "openai_images")]
    OpenAiImages(Box<HttpModel>),
    /// A scripted conversation from a file, for demos and tests.
    Scripted(Scripted),
    /// The model from the environment: `TOOLGATE_MODEL_URL` (with `TOOLGATE_MODEL`, `TOOLGATE_MODEL_KEY`), or else
    /// `OPENAI_API_KEY` (with `OPENAI_BASE_URL`, `OPENAI_MODEL`), `ANTHROPIC_API_KEY` (with `ANTHROPIC_BASE_URL`,
    /// `ANTHROPIC_MODEL`), or `GEMINI_API_KEY` (with `GEMINI_MODEL`).
    Environment(Environment),
}

/// A model on a server.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpModel {
    /// The model name in requests.
    pub(crate) model: Text,
    /// The base URL, to which the API's path (`/chat/completions`, `/responses`, `/v1/messages`, `/models/…`,
    /// `/images/generations`) is appended. Default: that of the provider.
    pub(crate) base_url: Option<Text>,
    /// The key, usually `${OPENAI_API_KEY}` or the like. Default: no key is sent.
    pub(crate) api_key: Option<Text>,
    /// A program that prints the key, with its arguments, instead of `api_key`. It runs before the first request, and
    /// once more when the provider rejects the key.
    pub(crate) api_key_command: Option<Located<Vec<Text>>>,
    /// Additional HTTP headers. Values are kept secret.
    pub(crate) headers: Option<BTreeMap<String, Text>>,
    /// The proxy: `environment` (the default: `HTTPS_PROXY` and its like), `direct`, or the URL of a proxy.
    pub(crate) proxy: Option<Text>,
    /// Timeouts.
    pub(crate) timeouts: Option<ModelTimeouts>,
    /// Whether replies are streamed. Default: true.
    pub(crate) stream: Option<bool>,
    /// Sampling temperature; not sent by default.
    pub(crate) temperature: Option<f64>,
    /// Nucleus sampling; not sent by default.
    pub(crate) top_p: Option<f64>,
    /// The seed for repeatable sampling; not sent by default.
    pub(crate) seed: Option<i64>,
    /// The maximum of tokens in one reply; not sent by default, except to Anthropic, which requires it.
    pub(crate) max_tokens: Option<u64>,
    /// Reasoning before the reply.
    pub(crate) reasoning: Option<Reasoning>,
    /// Which tools the model calls while tools are available: `auto` (the default), `required`, or the name of one.
    pub(crate) tool_choice: Option<Text>,
    /// Whether the model may request several tools at once; not sent by default.
    pub(crate) parallel_tool_calls: Option<bool>,
    /// Whether tools are declared strict if their schema allows it. Default: false.
    pub(crate) strict_tools: Option<bool>,
    /// Whether the agent's output schema is sent as the provider's own response format. Default: if the provider is
    /// known to support it. Answers are validated in either case.
    pub(crate) structured_output: Option<bool>,
    /// The kinds of media that are sent; the others are replaced by a note. Default: the kinds that the provider is
    /// known to support.
    pub(crate) media: Option<Vec<MediaKind>>,
    /// Whether to request prompt caching from Anthropic, and for how long. Default: `automatic`, the provider's
    /// default.
    pub(crate) prompt_cache: Option<PromptCache>,
    /// The trace context in request headers. Default: `traceparent`, without the caller's baggage.
    pub(crate) trace_context: Option<TraceContext>,
    /// Additional members of the request body, sent unchanged.
    pub(crate) extra: Option<Located<serde_json::Map<String, Value>>>,
}

/// Reasoning of a model.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Reasoning {
    /// The effort in the provider's own term, for example `low`, `medium`, `high`; not sent by default.
    pub(crate) effort: Option<Text>,
    /// The maximum of reasoning tokens, if the provider supports it; not sent by default.
    pub(crate) budget_tokens: Option<u64>,
    /// Whether to request the reasoning, or a summary of it. Default: the provider's default.
    pub(crate) show: Option<bool>,
    /// Whether the reasoning of earlier turns is sent back as `reasoning_content` (`openai_chat`). Default: to servers
    /// and models that are known to require it.
    pub(crate) send_back: Option<bool>,
}

/// Timeouts of a model, in seconds.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ModelTimeouts {
    /// For the connection. Default: 10.
    #[schemars(schema_with = "seconds")]
    pub(crate) connect_s: Option<Text>,
    /// For the first token of a streamed reply. Default: 120.
    #[schemars(schema_with = "seconds")]
    pub(crate) first_token_s: Option<Text>,
    /// Between two pieces of a reply. Default: 60.
    #[schemars(schema_with = "seconds")]
    pub(crate) idle_s: Option<Text>,
    /// For a whole reply. Default: 600.
    #[schemars(schema_with = "seconds")]
    pub(crate) total_s: Option<Text>,
}

/// A scripted conversation from a file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scripted {
    /// The file.
    pub(crate) file: Text,
}

/// The model from the environment.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Environment {
    /// The fallback when the environment names no model.
    pub(crate) otherwise: Option<Text>,
}
