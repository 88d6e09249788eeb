//! What a call cost, from the many shapes in which servers say it. Lenient: a reply is never lost for its bill.

use serde_json::Value;

use crate::core::chat::Usage;

/// Reads a `usage` object; whatever is missing or no number stays unknown.
pub(super) fn read(usage: &Value) -> Usage {
    let count = |path: &str| usage.pointer(path).and_then(Value::as_u64);
    Usage {
        input_tokens: count("/prompt_tokens"),
        output_tokens: count("/completion_tokens"),
        // The second is DeepSeek's.
        cache_read_tokens: count("/prompt_tokens_details/cached_tokens").or_else(|| count("/prompt_cache_hit_tokens")),
        cache_write_tokens: count("/prompt_tokens_details/cache_write_tokens"),
        reasoning_tokens: count("/completion_tokens_details/reasoning_tokens"),
        // OpenRouter's, in US dollars.
        cost_usd: usage.get("cost").and_then(Value::as_f64),
        costs: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_missing_or_odd_stays_unknown() {
        let usage =
            json!({"prompt_tokens": 5, "completion_tokens": null, "cost": {"total": 1}, "prompt_tokens_details": null});
        assert_eq!(read(&usage), Usage { input_tokens: Some(5), ..Usage::default() });
    }
}
