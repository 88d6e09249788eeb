//! Prices: the cost of a reply and of every attempt.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use proptest::prelude::*;
use serde_json::json;
use toolgate::core::chat::{LongContext, Price, Rates, Reply, Usage, Usd};
use toolgate::core::error::{ErrorCode, Failure};
use toolgate::models::prices::Priced;
use toolgate::models::{Settings, openai_chat};
use toolgate::ports::{Conversation, DeltaSink, Model, ModelFailure, ModelIdentity, ModelRequest};

use super::asking::{ask, user};
use super::model_server::{ModelServer, Prepared};

/// Anthropic's price structure: cache reads are cheap, cache writes cost a quarter more.
static PRICE: LazyLock<Price> = LazyLock::new(|| Price {
    rates: Rates {
        input: usd(4.0),
        output: usd(20.0),
        cache_read: Some(usd(0.4)),
        cache_write: Some(usd(5.0)),
        reasoning: None,
    },
    long_context: None,
    image: None,
});

fn usd(dollars: f64) -> Usd {
    Usd::try_from(dollars).unwrap()
}

fn rates() -> impl Strategy<Value = Rates> {
    // Whole microdollars per million tokens are a whole number of the unit per token.
    let rate = || (0..100_000_000_i64).prop_map(|micros| Usd::from_picodollars(micros * 1_000_000));
    let part = || proptest::option::of(rate());
    (rate(), rate(), part(), part(), part()).prop_map(|(input, output, cache_read, cache_write, reasoning)| Rates {
        input,
        output,
        cache_read,
        cache_write,
        reasoning,
    })
}

fn price() -> impl Strategy<Value = Price> {
    let long = (0..2_000_000_u64, rates()).prop_map(|(above, rates)| LongContext { above, rates });
    let price = |(rates, long_context)| Price { rates, long_context, image: None };
    (rates(), proptest::option::of(long)).prop_map(price)
}

/// Usage as providers report it, including contradictions.
fn usage() -> impl Strategy<Value = Usage> {
    let known = || 0..2_000_000_u64;
    let part = || proptest::option::of(0..3_000_000_u64);
    let usage = |(input, output, cache_read, cache_write, reasoning)| Usage {
        input_tokens: Some(input),
        output_tokens: Some(output),
        cache_read_tokens: cache_read,
        cache_write_tokens: cache_write,
        reasoning_tokens: reasoning,
        cost_usd: None,
        costs: None,
    };
    (known(), known(), part(), part(), part()).prop_map(usage)
}

proptest! {
    #[test]
    fn a_cost_lies_between_the_cheapest_and_the_dearest_rate(price in price(), usage in usage()) {
        let all = [Some(price.rates), price.long_context.map(|long| long.rates)];
        let each = |rates: Rates| {
            [Some(rates.input), Some(rates.output), rates.cache_read, rates.cache_write, rates.reasoning]
        };
        let rates: Vec<Usd> = all.into_iter().flatten().flat_map(each).flatten().collect();
        let tokens = usage.total_tokens().unwrap();
        let (least, most) = (*rates.iter().min().unwrap(), *rates.iter().max().unwrap());
        let cost = price.cost(&usage, 0).unwrap();
        let mut told = usage;
        price.complete(&mut told, 0);
        let parts = told.costs.unwrap();
        prop_assert!(told.cost_usd == Some(cost) && parts.prompt() + parts.completion() == cost, "{parts:?}");
        prop_assert!(cost >= least.per_million(tokens) && cost <= most.per_million(tokens), "{cost}");
    }

    #[test]
    fn without_input_or_output_tokens_the_cost_is_unknown(price in price(), usage in usage()) {
        prop_assert_eq!(price.cost(&Usage { input_tokens: None, ..usage }, 0), None);
        prop_assert_eq!(price.cost(&Usage { output_tokens: None, ..usage }, 0), None);
    }

    #[test]
    fn a_part_without_its_own_rate_costs_the_general_rate(price in price(), usage in usage()) {
        let plain = |rates: Rates| Rates { cache_read: None, cache_write: None, reasoning: None, ..rates };
        let long_context = price.long_context.map(|long| LongContext { rates: plain(long.rates), ..long });
        let price = Price { rates: plain(price.rates), long_context, ..price };
        let without_parts =
            Usage { cache_read_tokens: None, cache_write_tokens: None, reasoning_tokens: None, ..usage };
        prop_assert_eq!(price.cost(&usage, 0), price.cost(&without_parts, 0));
    }

    #[test]
    fn the_cost_of_two_requests_is_the_sum(rates in rates(), one in usage(), two in usage()) {
        // Consistent parts and no long context: then the boundary between the requests does not matter.
        let fit = |usage: Usage| {
            let read = usage.cache_read_tokens.map(|read| read.min(usage.input_tokens.unwrap()));
            let rest = usage.input_tokens.unwrap() - read.unwrap_or(0);
            Usage {
                cache_read_tokens: read,
                cache_write_tokens: usage.cache_write_tokens.map(|write| write.min(rest)),
                reasoning_tokens: usage.reasoning_tokens.map(|part| part.min(usage.output_tokens.unwrap())),
                ..usage
            }
        };
        let (one, two) = (fit(one), fit(two));
        let price = Price { rates, ..Price::default() };
        let mut both = one;
        both.add(&two);
        let apart = price.cost(&one, 0).unwrap() + price.cost(&two, 0).unwrap();
        prop_assert_eq!(price.cost(&both, 0), Some(apart));
    }
}

#[test]
fn cached_tokens_are_input_and_reasoning_is_output() {
    let usage = Usage {
        input_tokens: Some(1_000_000),
        output_tokens: Some(100_000),
        cache_read_tokens: Some(600_000),
        cache_write_tokens: Some(100_000),
        reasoning_tokens: Some(40_000),
        cost_usd: None,
        costs: None,
    };
    // 0.3 of 4.00, 0.6 of 0.40, 0.1 of 5.00, and 0.1 of 20.00 whether reasoning or not.
    assert_eq!(PRICE.cost(&usage, 0), Some(usd(1.20 + 0.24 + 0.50 + 2.00)));
    let dear = Price { rates: Rates { reasoning: Some(usd(40.0)), ..PRICE.rates }, ..*PRICE };
    assert_eq!(dear.cost(&usage, 0), Some(usd(1.20 + 0.24 + 0.50 + 1.20 + 1.60)));
}

#[test]
fn every_token_of_a_long_request_costs_more() {
    let doubled = Rates { input: usd(8.0), output: usd(30.0), ..Rates::default() };
    let price = Price { long_context: Some(LongContext { above: 200_000, rates: doubled }), ..*PRICE };
    let reading = |input| Usage { input_tokens: Some(input), output_tokens: Some(0), ..Usage::default() };
    assert_eq!(price.cost(&reading(200_000), 0), Some(usd(0.8)));
    assert_eq!(price.cost(&reading(250_000), 0), Some(usd(2.0)));
}

#[test]
fn images_have_a_cost_only_with_a_price() {
    let counted = Usage { input_tokens: Some(1_000_000), output_tokens: Some(0), ..Usage::default() };
    let by_image = Price { image: Some(usd(0.04)), ..*PRICE };
    let tokens = PRICE.cost(&counted, 3).unwrap();
    assert_eq!(by_image.cost(&counted, 3), Some(tokens + usd(0.12)));
    assert_eq!(by_image.cost(&Usage::default(), 3), None, "tokens without a count may have a cost");
    let only_images = Price { image: Some(usd(0.04)), ..Price::default() };
    assert_eq!(only_images.cost(&Usage::default(), 3), Some(usd(0.12)));
}

/// A model that always returns the same answer.
struct Fixed(ModelIdentity, Result<Reply, ModelFailure>);

impl Fixed {
    fn new(answer: Result<Reply, ModelFailure>) -> Arc<Self> {
        let text = || "fixed".to_owned();
        Arc::new(Self(ModelIdentity { system: text(), provider: text(), model: text(), settings: json!({}) }, answer))
    }
}

impl Model for Fixed {
    fn identity(&self) -> &ModelIdentity {
        &self.0
    }

    fn converse(&self) -> Box<dyn Conversation> {
        Box::new(Repeats(self.1.clone()))
    }
}

struct Repeats(Result<Reply, ModelFailure>);

#[async_trait]
impl Conversation for Repeats {
    async fn reply(&mut self, _: &ModelRequest<'_>, _: DeltaSink<'_>) -> Result<Reply, ModelFailure> {
        self.0.clone()
    }
}

async fn answer_of(model: Arc<dyn Model>) -> Result<Reply, ModelFailure> {
    Priced::new(model, *PRICE).converse().reply(&ask([user("Hello")]).request(), &|_| {}).await
}

#[tokio::test]
async fn a_failed_attempt_costs_what_it_used() {
    let usage = Usage { input_tokens: Some(500_000), output_tokens: Some(10_000), ..Usage::default() };
    let failed = ModelFailure { failure: Failure::new(ErrorCode::ProviderTimeout, "cut"), usage };
    let told = answer_of(Fixed::new(Err(failed))).await.unwrap_err();
    assert_eq!(told.usage.cost_usd, Some(usd(2.2)));
}

#[tokio::test]
async fn an_attempt_without_usage_has_an_unknown_cost() {
    let failed = ModelFailure::from(Failure::new(ErrorCode::ProviderUnavailable, "down"));
    assert_eq!(answer_of(Fixed::new(Err(failed.clone()))).await, Err(failed));
    let reply = answer_of(Fixed::new(Ok(Reply::text("Hi")))).await.unwrap();
    assert_eq!(reply.usage.cost_usd, None);
}

#[tokio::test]
async fn the_providers_own_cost_wins() {
    let reply = |usage: &str| {
        Prepared::json(format!(
            r#"{{"choices": [{{"message": {{"content": "Hi"}}, "finish_reason": "stop"}}], "usage": {usage}}}"#
        ))
    };
    let server = ModelServer::answering([
        reply(r#"{"prompt_tokens": 1000000, "completion_tokens": 0, "cost": 0.125}"#),
        reply(r#"{"prompt_tokens": 1000000, "completion_tokens": 0}"#),
    ])
    .await;
    let settings = Settings { stream: false, ..Settings::new(&server.base_url, "m") };
    let model = Arc::new(openai_chat::model(&settings).unwrap());
    assert_eq!(answer_of(model.clone()).await.unwrap().usage.cost_usd, Some(usd(0.125)));
    assert_eq!(answer_of(model).await.unwrap().usage.cost_usd, Some(usd(4.0)));
}
