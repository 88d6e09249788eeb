//! Written form of prices.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::spanned::Placed;

/// The price of a model, in US dollars per million tokens.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Price {
    /// Input tokens.
    #[schemars(range(min = 0))]
    pub(in crate::config) input: Placed<f64>,
    /// Output tokens.
    #[schemars(range(min = 0))]
    pub(in crate::config) output: Placed<f64>,
    /// Input tokens read from the provider's cache. Default: as `input`.
    #[schemars(range(min = 0))]
    pub(in crate::config) cache_read: Option<Placed<f64>>,
    /// Input tokens written to the provider's cache. Default: as `input`.
    #[schemars(range(min = 0))]
    pub(in crate::config) cache_write: Option<Placed<f64>>,
    /// Reasoning tokens. Default: as `output`.
    #[schemars(range(min = 0))]
    pub(in crate::config) reasoning: Option<Placed<f64>>,
    /// US dollars for each generated image, in addition to its tokens. Default: unknown.
    #[schemars(range(min = 0))]
    pub(in crate::config) image: Option<Placed<f64>>,
}
