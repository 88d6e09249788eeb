//! Written form of the limits of runs.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::spanned::Located;

/// How many runs the gateway executes and queues.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Runs {
    /// The maximum of concurrently active runs. The others wait in a queue that is fair to tenants. Runs that wait for
    /// an answer or a result do not count. Default: 256.
    pub(crate) max_active: Option<Located<usize>>,
    /// The same maximum for each tenant. Default: `max_active`.
    pub(crate) max_active_per_tenant: Option<Located<usize>>,
    /// The maximum of queued runs; beyond it new runs are rejected as `unavailable`. Default: 10000.
    pub(crate) max_queued: Option<Located<usize>>,
}
