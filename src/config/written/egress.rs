//! Written form of the egress policy.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::spanned::Text;

/// The addresses that toolgate may reach: models, MCP servers over HTTP, webhooks, and media URLs. The public internet is
/// always allowed, and addresses such as cloud metadata services never are.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Egress {
    /// Whether private networks are allowed. Default: false.
    pub(crate) private: bool,
    /// Whether this machine is allowed. Default: false.
    pub(crate) loopback: bool,
    /// Hosts of models and MCP servers that may be in private networks and on this machine all the same. Default: none.
    pub(crate) hosts: Vec<Text>,
}
