//! The HTTP gateway, as it is written.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Runs;
use crate::config::placed::{Placed, Text};

/// The HTTP gateway.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct Gateway {
    /// Where it listens: an address and a port. Default: `127.0.0.1:8484`.
    pub(in crate::config) listen: Option<Text>,
    /// The address people know it by, such as `https://toolgate.example.com`. Default: none; links are paths.
    pub(in crate::config) public_url: Option<Text>,
    /// Where Prometheus reads `/metrics`: an address and a port of its own, which the keys of the gateway do not guard.
    /// Default: nowhere.
    pub(in crate::config) metrics_listen: Option<Text>,
    /// How long runs under way may go on to a rest when the server is stopped, in seconds. Then they are laid down between
    /// two steps, and another process drives them on. Default: 30.
    #[schemars(schema_with = "crate::config::written::seconds")]
    pub(in crate::config) drain_s: Option<Text>,
    /// How many runs it takes on.
    pub(in crate::config) runs: Option<Placed<Runs>>,
}
