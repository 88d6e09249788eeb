//! Price list: `prices.json`, which names the sources of its figures.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use toolgate_core::chat::Price;

type Prices = BTreeMap<String, BTreeMap<String, Price>>;

#[derive(Deserialize)]
struct List {
    providers: Prices,
}

// An unreadable list has no prices; a test reads it.
static LIST: LazyLock<Prices> = LazyLock::new(|| read().map(|list| list.providers).unwrap_or_default());

fn read() -> serde_json::Result<List> {
    serde_json::from_str(include_str!("prices.json"))
}

/// The price of a provider's model, if listed: under the model's own name, or under the name of the model of which it
/// is a dated snapshot. Providers are those of [`ModelIdentity`](toolgate_ports::ModelIdentity).
pub fn price_of(provider: &str, model: &str) -> Option<Price> {
    let prices = LIST.get(provider)?;
    let name = model.strip_prefix("models/").unwrap_or(model);
    let price = prices.get(name).or_else(|| prices.get(undated(name)?));
    price.copied()
}

/// The name without a trailing `-2026-05-13` or `-20260513`.
fn undated(name: &str) -> Option<&str> {
    let ends_with = |pattern: &str| {
        let at = name.len().checked_sub(pattern.len())?;
        let (rest, end) = name.split_at_checked(at)?;
        let fits = |(have, want): (char, char)| if want == '0' { have.is_ascii_digit() } else { have == want };
        (!rest.is_empty() && end.chars().zip(pattern.chars()).all(fits)).then_some(rest)
    };
    ends_with("-0000-00-00").or_else(|| ends_with("-00000000"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_core::chat::{Rates, Usd};

    #[test]
    fn the_list_is_readable_and_its_figures_are_plausible() {
        let list = read().expect("it is JSON of the right shape");
        assert_eq!(list.providers.keys().collect::<Vec<_>>(), ["anthropic", "google", "openai"]);
        for (name, price) in list.providers.values().flatten() {
            let long = price.long_context;
            let rates: Vec<Rates> = [Some(price.rates), long.map(|long| long.rates)].into_iter().flatten().collect();
            for Rates { input, output, cache_read, cache_write, reasoning } in rates {
                let all = [Some(input), Some(output), cache_read, cache_write, reasoning, price.image];
                let is_sane = |rate: &Usd| (0.0..1000.0).contains(&rate.dollars());
                assert!(all.iter().flatten().all(is_sane), "{name}");
                assert!(output >= input && cache_read.is_none_or(|rate| rate < input), "{name}");
                assert!(cache_write.is_none_or(|rate| rate >= input), "{name}");
            }
            assert!(long.is_none_or(|long| long.rates.input > price.rates.input), "{name}");
            assert!(price.rates.input > Usd::ZERO || price.image.is_some(), "{name} is not free");
        }
    }

    #[test]
    fn a_model_is_found_by_its_name_a_snapshot_of_it_and_its_resource_name() {
        for (provider, model, listed) in [
            ("openai", "gpt-5-mini-2025-08-07", "gpt-5-mini"),
            ("anthropic", "claude-haiku-4-5-20251001", "claude-haiku-4-5"),
            ("google", "models/gemini-2.5-pro", "gemini-2.5-pro"),
        ] {
            let expected = LIST[provider][listed];
            assert_eq!(price_of(provider, model), Some(expected), "{provider} {model}");
        }
    }

    #[test]
    fn a_snapshot_with_a_price_of_its_own_keeps_it() {
        assert_ne!(price_of("openai", "gpt-4o-2024-05-13"), price_of("openai", "gpt-4o"));
        assert_eq!(price_of("openai", "gpt-4o-2024-11-20"), price_of("openai", "gpt-4o"));
    }

    #[test]
    fn prices_are_never_guessed() {
        for (provider, model) in [
            ("openai", "gpt-5-minister"),
            ("openai", "gpt-5-mini-latest"),
            ("openai", "gpt-5-mini-2025-8-7"),
            ("openai", "GPT-5-mini"),
            ("openai", "-2025-08-07"),
            ("openai", "zürich-2025-08-07"),
            ("openai", ""),
            ("azure", "gpt-5-mini"),
            ("ollama", "gpt-5-mini"),
            ("127.0.0.1", "gpt-5-mini"),
            ("anthropic", "gpt-5-mini"),
        ] {
            assert_eq!(price_of(provider, model), None, "{provider} {model}");
        }
    }
}
