//! The HTTP gateway, as it is written.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::placed::Text;

/// The HTTP gateway.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct Gateway {
    /// Where it listens: an address and a port. Default: `127.0.0.1:8484`.
    pub(in crate::config) listen: Option<Text>,
    /// The address people know it by, such as `https://toolgate.example.com`. Default: none; links are paths.
    pub(in crate::config) public_url: Option<Text>,
}
