//! Usage of a call at OpenAI's APIs, in the many forms that servers report. Lenient: invalid usage never fails a reply.
//!
//! A proxy may report one count in several places, and only one of them is filled: LiteLLM in front of Claude has
//! `cached_tokens: 0` beside `cache_read_input_tokens` (BerriAI/litellm 11789). The larger of the counts for one thing
//! is the right one.

use serde_json::Value;
use toolgate_core::chat::{Usage, Usd};

const INPUT: &[&str] = &["/prompt_tokens", "/input_tokens"];
const OUTPUT: &[&str] = &["/completion_tokens", "/output_tokens"];
const CACHE_READ: &[&str] = &[
    "/prompt_tokens_details/cached_tokens",
    "/input_tokens_details/cached_tokens",
    "/cache_read_input_tokens",
    // DeepSeek.
    "/prompt_cache_hit_tokens",
    // Moonshot.
    "/cached_tokens",
];
const CACHE_WRITE: &[&str] = &[
    "/prompt_tokens_details/cache_write_tokens",
    "/input_tokens_details/cache_write_tokens",
    // LiteLLM.
    "/prompt_tokens_details/cache_creation_tokens",
    "/cache_creation_input_tokens",
];
const REASONING: &[&str] =
    &["/completion_tokens_details/reasoning_tokens", "/output_tokens_details/reasoning_tokens", "/reasoning_tokens"];

/// Reads a `usage` object; a count that is missing or not a number stays unknown.
pub(crate) fn read(usage: &Value) -> Usage {
    let count = |paths: &[&str]| paths.iter().filter_map(|path| usage.pointer(path)?.as_u64()).max();
    let (prompt, completion, reasoning_tokens) = (count(INPUT), count(OUTPUT), count(REASONING));
    let (cache_read_tokens, cache_write_tokens) = (count(CACHE_READ), count(CACHE_WRITE));
    let cached = cache_read_tokens.unwrap_or(0).saturating_add(cache_write_tokens.unwrap_or(0));
    let is_cached_apart = prompt < cache_read_tokens.max(cache_write_tokens);
    // A prompt is not smaller than its cached part: such a server counts the cached tokens apart, as Anthropic does.
    let input_tokens = prompt.map(|prompt| if is_cached_apart { prompt.saturating_add(cached) } else { prompt });
    // xAI counts the reasoning apart from the completion; only the total shows it.
    let reasoning = reasoning_tokens.unwrap_or(0);
    let all = prompt.unwrap_or(0).saturating_add(completion.unwrap_or(0)).saturating_add(reasoning);
    let is_apart = count(&["/total_tokens"]) == Some(all);
    Usage {
        input_tokens,
        output_tokens: completion.map(|tokens| if is_apart { tokens.saturating_add(reasoning) } else { tokens }),
        cache_read_tokens,
        cache_write_tokens,
        reasoning_tokens,
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

    #[test]
    fn the_larger_of_the_counts_for_one_thing_is_read() {
        for cached in [
            json!({"prompt_tokens_details": {"cached_tokens": 0}, "cache_read_input_tokens": 7}),
            json!({"prompt_tokens_details": {"cached_tokens": 7}, "cache_read_input_tokens": 0}),
            json!({"prompt_cache_hit_tokens": 7, "prompt_cache_miss_tokens": 2}),
            json!({"cached_tokens": 7}),
            json!({"input_tokens_details": {"cached_tokens": 0}, "cache_read_input_tokens": 7}),
        ] {
            assert_eq!(read(&cached).cache_read_tokens, Some(7), "{cached}");
        }
        let written = json!({"prompt_tokens_details": {"cache_creation_tokens": 9}, "cache_creation_input_tokens": 8});
        assert_eq!(read(&written).cache_write_tokens, Some(9));
    }

    #[test]
    fn counts_that_a_server_reports_apart_are_added() {
        let cached_apart =
            json!({"prompt_tokens": 4, "cache_read_input_tokens": 2455, "cache_creation_input_tokens": 3});
        assert_eq!(read(&cached_apart).input_tokens, Some(2462));
        let reasoning = |total: u64| json!({"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": total, "completion_tokens_details": {"reasoning_tokens": 320}});
        assert_eq!(read(&reasoning(361)).output_tokens, Some(329));
        let within = json!({"prompt_tokens": 32, "completion_tokens": 329, "total_tokens": 361, "completion_tokens_details": {"reasoning_tokens": 320}});
        assert_eq!(read(&within).output_tokens, Some(329));
    }
}
