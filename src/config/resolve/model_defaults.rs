//! Default settings of models.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Map;

use crate::settings::{Api, HttpModelSettings, KeySettings, ProxySettings, TraceContext};

pub(super) const CONNECT_SECONDS: u64 = 10;
pub(super) const FIRST_TOKEN_SECONDS: u64 = 120;
pub(super) const IDLE_SECONDS: u64 = 60;
pub(super) const TOTAL_SECONDS: u64 = 600;

/// The provider's default base URL.
pub(super) fn default_url(api: Api) -> &'static str {
    match api {
        Api::OpenAiChat | Api::OpenAiResponses | Api::OpenAiImages => "https://api.openai.com/v1",
        Api::Anthropic => "https://api.anthropic.com",
        Api::Gemini => "https://generativelanguage.googleapis.com/v1beta",
    }
}

/// A model with every default: only the API, base URL, key and name are given.
pub(super) fn plain(api: Api, base_url: &str, key: Option<KeySettings>, model: String) -> HttpModelSettings {
    HttpModelSettings {
        api,
        base_url: base_url.trim_end_matches('/').to_owned(),
        key,
        model,
        headers: BTreeMap::new(),
        proxy: ProxySettings::default(),
        connect_timeout: Duration::from_secs(CONNECT_SECONDS),
        first_token_timeout: Duration::from_secs(FIRST_TOKEN_SECONDS),
        idle_timeout: Duration::from_secs(IDLE_SECONDS),
        total_timeout: Duration::from_secs(TOTAL_SECONDS),
        stream: true,
        temperature: None,
        top_p: None,
        seed: None,
        max_tokens: None,
        reasoning_effort: None,
        reasoning_budget_tokens: None,
        show_reasoning: None,
        tool_choice: None,
        parallel_tool_calls: None,
        strict_tools: false,
        structured_output: None,
        media: None,
        prompt_cache: Default::default(),
        trace_context: TraceContext::Traceparent,
        extra: Map::new(),
    }
}
