//! API responses, as far as they are read. A complete answer and a chunk of a stream have the same form. Parts stay
//! JSON, because they are sent back.

use serde::Deserialize;
use serde_json::Value;
use toolgate_core::chat::Usage;

use crate::http::StopReason;

/// A complete answer, or one chunk of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Chunk {
    pub(super) candidates: Option<Vec<Candidate>>,
    pub(super) prompt_feedback: Option<PromptFeedback>,
    pub(super) usage_metadata: Option<Value>,
    pub(super) model_version: Option<String>,
    pub(super) response_id: Option<String>,
    pub(super) error: Option<Value>,
}

/// One of several answers; only the first is requested.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Candidate {
    pub(super) index: Option<u64>,
    pub(super) content: Option<Content>,
    pub(super) finish_reason: StopReason,
    pub(super) finish_message: Option<String>,
    pub(super) continuation_token: Option<String>,
}

/// The content. A reply that was cut off during thinking has no parts.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Content {
    pub(super) parts: Option<Vec<Value>>,
}

/// Why the prompt was blocked.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PromptFeedback {
    pub(super) block_reason: Option<String>,
}

/// Reads `usageMetadata`; a count that is missing or not a number stays unknown.
pub(super) fn usage(metadata: &Value) -> Usage {
    let count = |name: &str| metadata.get(name).and_then(Value::as_u64);
    let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (one, other) => one.or(other),
    };
    let reasoning_tokens = count("thoughtsTokenCount");
    Usage {
        input_tokens: sum(count("promptTokenCount"), count("toolUsePromptTokenCount")),
        output_tokens: sum(count("candidatesTokenCount"), reasoning_tokens),
        cache_read_tokens: count("cachedContentTokenCount"),
        cache_write_tokens: None,
        reasoning_tokens,
        cost_usd: None,
        costs: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn server_tool_tokens_are_input_and_missing_ones_unknown() {
        let metadata = json!({"promptTokenCount": 5, "toolUsePromptTokenCount": 2, "candidatesTokenCount": null});
        assert_eq!(usage(&metadata), Usage { input_tokens: Some(7), ..Usage::default() });
    }
}
