//! Written form of language models. All providers share one set of settings. A setting that a provider does not support
//! is rejected when the model is opened.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::seconds;
use crate::config::settings::{MediaKind, PromptCache, TraceContext};
use crate::config::spanned::{Located, Text};

/// A language model.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum Model {
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
pub(in crate::config) struct HttpModel {
    /// The model name in requests.
    pub(in crate::config) model: Text,
    /// The base URL, to which the API's path (`/chat/completions`, `/responses`, `/v1/messages`, `/models/…`,
    /// `/images/generations`) is appended. Default: that of the provider.
    pub(in crate::config) base_url: Option<Text>,
    /// The key, usually `${OPENAI_API_KEY}` or the like. Default: no key is sent.
    pub(in crate::config) api_key: Option<Text>,
    /// A program that prints the key, with its arguments, instead of `api_key`. It runs before the first request, and
    /// once more when the provider rejects the key.
    pub(in crate::config) api_key_command: Option<Located<Vec<Text>>>,
    /// Additional HTTP headers. Values are kept secret.
    pub(in crate::config) headers: Option<BTreeMap<String, Text>>,
    /// The proxy: `environment` (the default: `HTTPS_PROXY` and its like), `direct`, or the URL of a proxy.
    pub(in crate::config) proxy: Option<Text>,
    /// Timeouts.
    pub(in crate::config) timeouts: Option<ModelTimeouts>,
    /// Whether replies are streamed. Default: true.
    pub(in crate::config) stream: Option<bool>,
    /// Sampling temperature; not sent by default.
    pub(in crate::config) temperature: Option<f64>,
    /// Nucleus sampling; not sent by default.
    pub(in crate::config) top_p: Option<f64>,
    /// The seed for repeatable sampling; not sent by default.
    pub(in crate::config) seed: Option<i64>,
    /// The maximum of tokens in one reply; not sent by default, except to Anthropic, which requires it.
    pub(in crate::config) max_tokens: Option<u64>,
    /// Reasoning before the reply.
    pub(in crate::config) reasoning: Option<Reasoning>,
    /// Which tools the model calls while tools are available: `auto` (the default), `required`, or the name of one.
    pub(in crate::config) tool_choice: Option<Text>,
    /// Whether the model may request several tools at once; not sent by default.
    pub(in crate::config) parallel_tool_calls: Option<bool>,
    /// Whether tools are declared strict if their schema allows it. Default: false.
    pub(in crate::config) strict_tools: Option<bool>,
    /// Whether the agent's output schema is sent as the provider's own response format. Default: if the provider is
    /// known to support it. Answers are validated in either case.
    pub(in crate::config) structured_output: Option<bool>,
    /// The kinds of media that are sent; the others are replaced by a note. Default: the kinds that the provider is
    /// known to support.
    pub(in crate::config) media: Option<Vec<MediaKind>>,
    /// Whether to request prompt caching from Anthropic, and for how long. Default: `automatic`, the provider's
    /// default.
    pub(in crate::config) prompt_cache: Option<PromptCache>,
    /// The trace context in request headers. Default: `traceparent`, without the caller's baggage.
    pub(in crate::config) trace_context: Option<TraceContext>,
    /// Additional members of the request body, sent unchanged.
    pub(in crate::config) extra: Option<Located<serde_json::Map<String, Value>>>,
}

/// Reasoning of a model.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct Reasoning {
    /// The effort in the provider's own term, for example `low`, `medium`, `high`; not sent by default.
    pub(in crate::config) effort: Option<Text>,
    /// The maximum of reasoning tokens, if the provider supports it; not sent by default.
    pub(in crate::config) budget_tokens: Option<u64>,
    /// Whether to request the reasoning, or a summary of it. Default: the provider's default.
    pub(in crate::config) show: Option<bool>,
}

/// Timeouts of a model, in seconds.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct ModelTimeouts {
    /// For the connection. Default: 10.
    #[schemars(schema_with = "seconds")]
    pub(in crate::config) connect_s: Option<Text>,
    /// For the first token of a streamed reply. Default: 120.
    #[schemars(schema_with = "seconds")]
    pub(in crate::config) first_token_s: Option<Text>,
    /// Between two pieces of a reply. Default: 60.
    #[schemars(schema_with = "seconds")]
    pub(in crate::config) idle_s: Option<Text>,
    /// For a whole reply. Default: 600.
    #[schemars(schema_with = "seconds")]
    pub(in crate::config) total_s: Option<Text>,
}

/// A scripted conversation from a file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Scripted {
    /// The file.
    pub(in crate::config) file: Text,
}

/// The model from the environment.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Environment {
    /// The fallback when the environment names no model.
    pub(in crate::config) otherwise: Option<Text>,
}
