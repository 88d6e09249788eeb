//! Which tools an agent, or one run of it, may use.

use globset::{Glob, GlobMatcher};
use serde::{Deserialize, Serialize};

use super::ToolName;

/// Allow and deny lists of tool names with wildcards (`mcp_github_*`). Deny wins. An empty allow list allows all.
/// A run may narrow its agent's filter; both must let a tool through, so widening is not expressible.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolFilter {
    /// Patterns of names the model may see; empty means all.
    pub allow: Vec<String>,
    /// Patterns of names it may not see.
    pub deny: Vec<String>,
}

impl ToolFilter {
    /// Whether the name passes. A pattern that is no valid glob matches only itself, literally.
    pub fn admits(&self, name: &ToolName) -> bool {
        (self.allow.is_empty() || any(&self.allow, name)) && !self.denies(name)
    }

    /// Whether the name is on the deny list. That is all that speaks of toolgate's own tools, which nobody lists.
    pub fn denies(&self, name: &ToolName) -> bool {
        any(&self.deny, name)
    }
}

fn any(patterns: &[String], name: &ToolName) -> bool {
    patterns.iter().any(|pattern| matches(pattern, name.as_str()))
}

fn matches(pattern: &str, name: &str) -> bool {
    Glob::new(pattern)
        .map(|glob: Glob| glob.compile_matcher())
        .map_or_else(|_| pattern == name, |matcher: GlobMatcher| matcher.is_match(name))
}
