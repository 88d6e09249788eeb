//! How many runs a server takes on, as it is written.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::placed::Placed;

/// How many runs the gateway takes on.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct Runs {
    /// At most so many are driven at once; the others wait, and tenants have their turns one after the other. Runs that
    /// wait for an answer or a result are not counted. Default: 256.
    pub(in crate::config) max_active: Option<Placed<usize>>,
    /// At most so many of one tenant. Default: as many as of all.
    pub(in crate::config) max_active_per_tenant: Option<Placed<usize>>,
    /// At most so many wait for their turn; beyond that new runs are refused as `unavailable`. Default: 10000.
    pub(in crate::config) max_queued: Option<Placed<usize>>,
}
