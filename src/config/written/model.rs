//! Language models as they are written. One set of settings for all providers: what one of them does not have is refused
//! when the model is opened.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::seconds;
use crate::config::placed::{Placed, Text};
use crate::config::settings::{MediaKind, PromptCache, TraceContext};

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
    /// Images, by OpenAI's Images API (`/images/generations`). What an image is to be like (`size`, `quality`,
    /// `output_format`, …) goes into `extra`.
    #[serde(rename = "openai_images")]
    OpenAiImages(Box<HttpModel>),
    /// A conversation from a file, for demonstrations and tests.
    Scripted(Scripted),
    /// The model the environment names: `TOOLGATE_MODEL_URL` (with `TOOLGATE_MODEL`, `TOOLGATE_MODEL_KEY`), or else
    /// `OPENAI_API_KEY` (with `OPENAI_BASE_URL`, `OPENAI_MODEL`), `ANTHROPIC_API_KEY` (with `ANTHROPIC_BASE_URL`,
    /// `ANTHROPIC_MODEL`), or `GEMINI_API_KEY` (with `GEMINI_MODEL`).
    Environment(Environment),
}

/// A model on a server.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct HttpModel {
    /// The model to ask for.
    pub(in crate::config) model: Text,
    /// The address that the API's path (`/chat/completions`, `/responses`, `/v1/messages`, `/models/…`, `/images/generations`) is appended to.
    /// Default: the provider's own.
    pub(in crate::config) base_url: Option<Text>,
    /// The key, usually `${OPENAI_API_KEY}` or the like. Without one no key is sent.
    pub(in crate::config) api_key: Option<Text>,
    /// A program and its arguments that prints the key, instead of `api_key`. It runs before the first request, and once
    /// more when the provider refuses the key.
    pub(in crate::config) api_key_command: Option<Placed<Vec<Text>>>,
    /// Further HTTP headers. Values are kept secret.
    pub(in crate::config) headers: Option<BTreeMap<String, Text>>,
    /// How the server is reached: `environment` (the default: `HTTPS_PROXY` and its like), `direct`, or a proxy's URL.
    pub(in crate::config) proxy: Option<Text>,
    /// How long to wait.
    pub(in crate::config) timeouts: Option<ModelTimeouts>,
    /// Whether replies are streamed. Default: true.
    pub(in crate::config) stream: Option<bool>,
    /// Sampling temperature; not sent by default.
    pub(in crate::config) temperature: Option<f64>,
    /// Nucleus sampling; not sent by default.
    pub(in crate::config) top_p: Option<f64>,
    /// Asks for repeatable sampling; not sent by default.
    pub(in crate::config) seed: Option<i64>,
    /// Most tokens of one reply; not sent by default, but to Anthropic, which demands it.
    pub(in crate::config) max_tokens: Option<u64>,
    /// How much the model thinks before it speaks.
    pub(in crate::config) reasoning: Option<Reasoning>,
    /// Which tools the model calls while tools are on offer: `auto` (the default), `required`, or the name of one.
    pub(in crate::config) tool_choice: Option<Text>,
    /// Whether the model may ask for several tools at once; not sent by default.
    pub(in crate::config) parallel_tool_calls: Option<bool>,
    /// Whether tools whose schema allows it are declared strict. Default: false.
    pub(in crate::config) strict_tools: Option<bool>,
    /// Whether an agent's output schema is sent as the provider's own response format. Default: where the provider is
    /// known to take it. Answers are checked all the same.
    pub(in crate::config) structured_output: Option<bool>,
    /// What is sent as it is instead of as a note that it is there. Default: what the provider is known to take.
    pub(in crate::config) media: Option<Vec<MediaKind>>,
    /// Whether Anthropic is asked to cache prompts, and for how long. Default: `automatic`, as the provider does by itself.
    pub(in crate::config) prompt_cache: Option<PromptCache>,
    /// What it is told of the trace that a request belongs to, in headers. Default: `traceparent`, without the caller's
    /// baggage.
    pub(in crate::config) trace_context: Option<TraceContext>,
    /// Further members of the request body, sent as they are.
    pub(in crate::config) extra: Option<Placed<serde_json::Map<String, Value>>>,
}

/// How much a model thinks.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct Reasoning {
    /// The provider's own word, for example `low`, `medium`, `high`; not sent by default.
    pub(in crate::config) effort: Option<Text>,
    /// Most tokens of thinking, where the provider counts them; not sent by default.
    pub(in crate::config) budget_tokens: Option<u64>,
    /// Whether the thinking, or a summary of it, is asked for. Default: as the provider does.
    pub(in crate::config) show: Option<bool>,
}

/// How long to wait for a model, in seconds.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct ModelTimeouts {
    /// For the connection. Default: 10.
    #[schemars(schema_with = "seconds")]
    pub(in crate::config) connect_s: Option<Text>,
    /// For the first token of a streamed reply. Default: 120.
    #[schemars(schema_with = "seconds")]
    pub(in crate::config) first_token_s: Option<Text>,
    /// For the next piece of a reply that has begun. Default: 60.
    #[schemars(schema_with = "seconds")]
    pub(in crate::config) idle_s: Option<Text>,
    /// For a whole reply. Default: 600.
    #[schemars(schema_with = "seconds")]
    pub(in crate::config) total_s: Option<Text>,
}

/// A conversation from a file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Scripted {
    /// The file.
    pub(in crate::config) file: Text,
}

/// The model the environment names.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Environment {
    /// The model to use when the environment names none.
    pub(in crate::config) otherwise: Option<Text>,
}
