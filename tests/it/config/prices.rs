//! Prices in the configuration, and their effect.

use toolgate::app::{self, IdleCostLimit, Pricing};
use toolgate::config::Settings;
use toolgate::core::chat::Usd;
use toolgate::core::id::ModelName;

use super::{folder, load, rendered};

const MODELS: &str = "
models:
  known: { openai_chat: { model: gpt-5-mini-2025-08-07 } }
  local: { openai_chat: { base_url: 'http://127.0.0.1:11434/v1', model: gpt-5-mini } }
  routed: { openai_chat: { base_url: 'https://openrouter.ai/api/v1', model: openai/gpt-5-mini } }
agents:
  a: { model: known, limits: { max_cost_usd: 1 } }
  b: { model: local, limits: { max_cost_usd: 1 } }
  c: { model: local }
  d: { model: routed, limits: { max_cost_usd: 1 } }
";

fn usd(dollars: f64) -> Usd {
    Usd::try_from(dollars).unwrap()
}

fn pricing(settings: &Settings, model: &str) -> Pricing {
    let models = app::open_models(settings).unwrap();
    let name = ModelName::from(model);
    Pricing::new(settings, &name, models[&name].identity())
}

#[test]
fn a_price_is_known_from_the_list_or_the_provider_and_never_for_a_local_server() {
    let settings = load(MODELS).unwrap();
    assert!(matches!(pricing(&settings, "known"), Pricing::Listed(price) if price.rates.input == usd(0.25)));
    assert_eq!(pricing(&settings, "local"), Pricing::Unknown);
    assert_eq!(pricing(&settings, "routed"), Pricing::Reported);
}

#[test]
fn anthropics_one_hour_cache_costs_twice_the_input_price() {
    let models = "models:\n  m: { anthropic: { model: claude-opus-5, prompt_cache: CACHE } }\n";
    let rates = |cache: &str| match pricing(&load(&models.replace("CACHE", cache)).unwrap(), "m") {
        Pricing::Listed(price) => (price.rates.input, price.rates.cache_write),
        other => panic!("{other:?}"),
    };
    assert_eq!((rates("5m"), rates("1h")), ((usd(5.0), Some(usd(6.25))), (usd(5.0), Some(usd(10.0)))));
}

#[test]
fn a_configured_price_replaces_the_listed_one_entirely() {
    let settings = load(&format!("{MODELS}prices: {{ known: {{ input: 1, output: 2.5 }} }}")).unwrap();
    let Pricing::Configured(price) = pricing(&settings, "known") else { panic!("not configured") };
    assert_eq!((price.rates.input, price.rates.output, price.rates.cache_read), (usd(1.0), usd(2.5), None));
}

#[test]
fn a_cost_limit_on_a_model_without_a_price_has_no_effect() {
    let idle = |text: &str| {
        let settings = load(text).unwrap();
        app::idle_cost_limits(&settings, &app::open_models(&settings).unwrap())
    };
    assert_eq!(idle(MODELS), [IdleCostLimit { agent: "b".into(), model: "local".into() }]);
    assert_eq!(idle(&format!("{MODELS}prices: {{ local: {{ input: 0, output: 0 }} }}")), []);
    let stands_in = MODELS.replace("a: { model: known,", "a: { model: known, fallback: [local],");
    assert_eq!(idle(&stands_in)[0], IdleCostLimit { agent: "a".into(), model: "local".into() });
}

#[test]
fn a_price_that_is_none_and_a_model_that_is_not_there_are_told_at_their_places() {
    let prices = "prices:\n  knwon: { input: 1, output: 2 }\n  local: { input: -1, output: .nan, cache_raed: 1 }\n";
    let text = format!("{MODELS}{}", prices.replace(", cache_raed: 1", ""));
    let folder = folder(&[("toolgate.yaml", &text)]);
    let error = toolgate::config::load(Some(&folder.path().join("toolgate.yaml")), &|_| None).unwrap_err();
    insta::assert_snapshot!(rendered(&error, folder.path()));
    assert!(load(&format!("{MODELS}{prices}")).unwrap_err().plain().to_string().contains("cache_read"));
}
