//! Resolves prices. Each must belong to a configured model.

use std::collections::BTreeMap;

use toolgate_core::chat::{Price, Rates, Usd};
use toolgate_core::id::ModelName;

use crate::error::Fault;
use crate::resolver::{Kind, Resolver};
use crate::settings::ModelSettings;
use crate::spanned::Located;
use crate::suggest;
use crate::written::Price as Written;

/// The configured prices, by model name.
pub(super) fn resolve(
    written: Option<&BTreeMap<String, Located<Written>>>,
    models: &BTreeMap<ModelName, ModelSettings>,
    scope: &mut Resolver<'_>,
) -> BTreeMap<ModelName, Price> {
    let mut prices = BTreeMap::new();
    for (name, price) in written.into_iter().flatten() {
        let model = ModelName::from(name.as_str());
        if !models.contains_key(&model) && !scope.lacks(Kind::Model, name) {
            let fault = Fault::new(format!("unknown model `{name}` in `prices`"));
            let remedy = suggest::remedy(name, models.keys().map(ModelName::as_str), "models");
            scope.fault(fault.with_remedy(remedy), price.place());
        }
        prices.insert(model, resolved(price.value(), scope));
    }
    prices
}

fn resolved(written: &Written, scope: &mut Resolver<'_>) -> Price {
    let mut dollars = |amount: &Located<f64>| {
        if !amount.value().is_finite() || *amount.value() < 0.0 {
            let fault = Fault::new(format!("`{}` is not a price", amount.value()));
            scope.fault(fault.with_remedy("write US dollars per million tokens; 0 means free"), amount.place());
        }
        Usd::try_from(*amount.value()).unwrap_or_default()
    };
    let rates = Rates {
        input: dollars(&written.input),
        output: dollars(&written.output),
        cache_read: written.cache_read.as_ref().map(&mut dollars),
        cache_write: written.cache_write.as_ref().map(&mut dollars),
        reasoning: written.reasoning.as_ref().map(&mut dollars),
    };
    Price { rates, long_context: None, image: written.image.as_ref().map(dollars) }
}
