//! Usage of a call. Lenient: invalid usage never fails a reply.

use serde_json::{Map, Value};
use toolgate_core::chat::Usage;

/// The counts received so far. Each is cumulative, so the larger value counts: proxies end a stream with counts of zero
/// in place of those at its start. An omitted count keeps its value.
#[derive(Debug, Default)]
pub(super) struct UsageCounts(Map<String, Value>);

impl UsageCounts {
    /// Adds a `usage` object.
    pub(super) fn note(&mut self, usage: Option<Value>) {
        if let Some(Value::Object(figures)) = usage {
            for (name, figure) in figures {
                let known = self.0.get(&name).and_then(Value::as_u64);
                if !figure.is_null() && figure.as_u64().is_none_or(|figure| known.is_none_or(|known| known <= figure)) {
                    self.0.insert(name, figure);
                }
            }
        }
    }

    /// Adds the `usage` object at the start of a stream. Its output count covers only the first token, and an
    /// interrupted stream would be priced at it, so it is ignored.
    pub(super) fn note_beginning(&mut self, usage: Option<Value>) {
        self.note(usage);
        self.0.shift_remove("output_tokens");
    }

    /// The sum so far. The API counts cached tokens apart from `input_tokens`, toolgate counts them within.
    pub(super) fn usage(&self) -> Usage {
        let count = |name: &str| self.0.get(name).and_then(Value::as_u64);
        let (read, written) = (count("cache_read_input_tokens"), count("cache_creation_input_tokens"));
        let cached = read.unwrap_or(0).saturating_add(written.unwrap_or(0));
        let details = self.0.get("output_tokens_details");
        Usage {
            input_tokens: count("input_tokens").map(|tokens| tokens.saturating_add(cached)),
            output_tokens: count("output_tokens"),
            cache_read_tokens: read,
            cache_write_tokens: written,
            reasoning_tokens: details.and_then(|details| details.get("thinking_tokens")?.as_u64()),
            cost_usd: None,
            costs: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn output_usage_is_unknown_at_the_start_of_a_stream() {
        let mut counts = UsageCounts::default();
        counts.note_beginning(Some(json!({"input_tokens": 5, "output_tokens": 1})));
        assert_eq!(counts.usage(), Usage { input_tokens: Some(5), ..Usage::default() });
        counts.note(Some(json!({"output_tokens": 9})));
        assert_eq!(counts.usage().output_tokens, Some(9));
    }

    #[test]
    fn the_larger_count_wins_and_missing_counts_stay_unknown() {
        let mut counts = UsageCounts::default();
        counts.note(Some(json!({"input_tokens": 5, "output_tokens": 1, "cache_read_input_tokens": 2})));
        counts.note(Some(
            json!({"output_tokens": 9, "input_tokens": null, "cache_read_input_tokens": 0, "output_tokens_details": {"thinking_tokens": 4}}),
        ));
        let expected = Usage {
            input_tokens: Some(7),
            output_tokens: Some(9),
            cache_read_tokens: Some(2),
            reasoning_tokens: Some(4),
            ..Usage::default()
        };
        assert_eq!(counts.usage(), expected);
        assert_eq!(UsageCounts::default().usage(), Usage::default());
    }
}
