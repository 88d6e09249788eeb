//! Which tools an agent, or one run of it, may use.

use serde::{Deserialize, Serialize};

use super::ToolName;
use crate::core::pattern::NamePattern;

/// Allow and deny lists of tool names with wildcards (`mcp_github_*`). Deny wins. An empty allow list allows all.
/// A run may narrow its agent's filter; both must let a tool through, so widening is not expressible.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolFilter {
    /// Patterns of names the model may see; empty means all.
    pub allow: Vec<NamePattern>,
    /// Patterns of names it may not see.
    pub deny: Vec<NamePattern>,
}

impl ToolFilter {
    /// Whether the name passes. A pattern that cannot be read lets nothing through: it allows no name, and denies every one.
    pub fn admits(&self, name: &ToolName) -> bool {
        let is_allowed = |pattern: &NamePattern| pattern.fits(name.as_str()).unwrap_or(false);
        (self.allow.is_empty() || self.allow.iter().any(is_allowed)) && !self.denies(name)
    }

    /// Whether the name is on the deny list. That is all that speaks of toolgate's own tools, which nobody lists.
    pub fn denies(&self, name: &ToolName) -> bool {
        self.deny.iter().any(|pattern| pattern.fits(name.as_str()).unwrap_or(true))
    }
}
