//! What a call cost. Lenient: a reply is never lost for its bill.

use serde_json::{Map, Value};

use crate::core::chat::Usage;

/// The figures as they came. Each is cumulative, so its latest value counts, and one that is left out stays.
#[derive(Debug, Default)]
pub(super) struct Tally(Map<String, Value>);

impl Tally {
    /// Takes a `usage` object.
    pub(super) fn note(&mut self, usage: Option<Value>) {
        if let Some(Value::Object(figures)) = usage {
            self.0.extend(figures.into_iter().filter(|(_, figure)| !figure.is_null()));
        }
    }

    /// Takes the `usage` object that a stream begins with. What it says of the output is the one token that there is
    /// by then, and a stream that breaks off would be priced at it.
    pub(super) fn note_beginning(&mut self, usage: Option<Value>) {
        self.note(usage);
        self.0.shift_remove("output_tokens");
    }

    /// The sum so far. The API counts cached tokens beside its `input_tokens`, we count them within.
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
    fn the_output_is_unknown_until_more_than_the_beginning_is_told() {
        let mut tally = Tally::default();
        tally.note_beginning(Some(json!({"input_tokens": 5, "output_tokens": 1})));
        assert_eq!(tally.usage(), Usage { input_tokens: Some(5), ..Usage::default() });
        tally.note(Some(json!({"output_tokens": 9})));
        assert_eq!(tally.usage().output_tokens, Some(9));
    }

    #[test]
    fn the_latest_figure_counts_and_what_nobody_said_stays_unknown() {
        let mut tally = Tally::default();
        tally.note(Some(json!({"input_tokens": 5, "output_tokens": 1, "cache_read_input_tokens": 2})));
        tally.note(Some(
            json!({"output_tokens": 9, "input_tokens": null, "output_tokens_details": {"thinking_tokens": 4}}),
        ));
        let expected = Usage {
            input_tokens: Some(7),
            output_tokens: Some(9),
            cache_read_tokens: Some(2),
            reasoning_tokens: Some(4),
            ..Usage::default()
        };
        assert_eq!(tally.usage(), expected);
        assert_eq!(Tally::default().usage(), Usage::default());
    }
}
