//! Usage of a call, in the many forms that servers report. Lenient: invalid usage never fails a reply.

use serde_json::Value;
use toolgate_core::chat::{Usage, Usd};

/// Reads a `usage` object; a count that is missing or not a number stays unknown.
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
        cost_usd: usage.get("cost").and_then(Value::as_f64).and_then(|cost| Usd::try_from(cost).ok()),
        costs: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn missing_and_invalid_counts_stay_unknown() {
        let usage =
            json!({"prompt_tokens": 5, "completion_tokens": null, "cost": {"total": 1}, "prompt_tokens_details": null});
        assert_eq!(read(&usage), Usage { input_tokens: Some(5), ..Usage::default() });
    }
}
