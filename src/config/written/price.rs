//! Prices as they are written.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::placed::Placed;

/// What a model charges, in US dollars per million tokens.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Price {
    /// Tokens read.
    #[schemars(range(min = 0))]
    pub(in crate::config) input: Placed<f64>,
    /// Tokens written.
    #[schemars(range(min = 0))]
    pub(in crate::config) output: Placed<f64>,
    /// Tokens read from the provider's cache. Default: as `input`.
    #[schemars(range(min = 0))]
    pub(in crate::config) cache_read: Option<Placed<f64>>,
    /// Tokens written to the provider's cache. Default: as `input`.
    #[schemars(range(min = 0))]
    pub(in crate::config) cache_write: Option<Placed<f64>>,
    /// Tokens of reasoning. Default: as `output`.
    #[schemars(range(min = 0))]
    pub(in crate::config) reasoning: Option<Placed<f64>>,
    /// US dollars for each image that is made, besides its tokens. Default: nothing is known.
    #[schemars(range(min = 0))]
    pub(in crate::config) image: Option<Placed<f64>>,
}
