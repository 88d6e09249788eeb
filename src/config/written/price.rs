//! Written form of prices.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::spanned::Located;

/// The price of a model, in US dollars per million tokens.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Price {
    /// Input tokens.
    #[schemars(range(min = 0))]
    pub(crate) input: Located<f64>,
    /// Output tokens.
    #[schemars(range(min = 0))]
    pub(crate) output: Located<f64>,
    /// Input tokens read from the provider's cache. Default: as `input`.
    #[schemars(range(min = 0))]
    pub(crate) cache_read: Option<Located<f64>>,
    /// Input tokens written to the provider's cache. Default: as `input`.
    #[schemars(range(min = 0))]
    pub(crate) cache_write: Option<Located<f64>>,
    /// Reasoning tokens. Default: as `output`.
    #[schemars(range(min = 0))]
    pub(crate) reasoning: Option<Located<f64>>,
    /// US dollars for each generated image, in addition to its tokens. Default: unknown.
    #[schemars(range(min = 0))]
    pub(crate) image: Option<Located<f64>>,
}
