//! What the API sends, as far as it is read. A whole answer and a chunk of a stream have one shape; parts stay as they
//! are, because they are sent back.

use serde::Deserialize;
use serde_json::Value;

use crate::core::chat::Usage;

/// A whole answer, or one chunk of it.
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

/// One of several answers; only the first is asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Candidate {
    pub(super) index: Option<u64>,
    pub(super) content: Option<Content>,
    pub(super) finish_reason: Option<String>,
    pub(super) finish_message: Option<String>,
    pub(super) continuation_token: Option<String>,
}

/// What was said. A reply that was cut off while it was thought about has no parts.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Content {
    pub(super) parts: Option<Vec<Value>>,
}

/// Why nothing was said.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PromptFeedback {
    pub(super) block_reason: Option<String>,
}

/// Reads `usageMetadata`; whatever is missing or no number stays unknown.
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
    fn what_tools_of_the_server_read_is_input_and_what_is_missing_stays_unknown() {
        let metadata = json!({"promptTokenCount": 5, "toolUsePromptTokenCount": 2, "candidatesTokenCount": null});
        assert_eq!(usage(&metadata), Usage { input_tokens: Some(7), ..Usage::default() });
    }
}
