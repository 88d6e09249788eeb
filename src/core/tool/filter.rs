//! Tool filters: which tools an agent, or one run of it, may use.

use serde::{Deserialize, Serialize};

use super::ToolName;
use crate::pattern::NamePattern;

/// Allow and deny lists of tool names with wildcards (`mcp_github_*`). Deny wins. An empty allow list allows all.
/// A run may narrow its agent's filter; a tool has to pass both, so a run cannot widen it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolFilter {
    /// Patterns of names the model may see; empty means all.
    pub allow: Vec<NamePattern>,
    /// Patterns of names it may not see.
    pub deny: Vec<NamePattern>,
}

/// A name in a filter that no tool has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignName {
    /// The list: `allow` or `deny`.
    pub list: &'static str,
    /// Its index in the list.
    pub index: usize,
    pub name: String,
}

impl ToolFilter {
    /// The first name without wildcards that is not known.
    pub fn foreign_name(&self, is_known: impl Fn(&str) -> bool) -> Option<ForeignName> {
        let lists = [("allow", &self.allow), ("deny", &self.deny)].into_iter();
        let mut named = lists.flat_map(|(list, patterns)| {
            let names = patterns.iter().enumerate();
            names.filter_map(move |(index, pattern)| Some((list, index, pattern.plain_name()?)))
        });
        let (list, index, name) = named.find(|(.., name)| !is_known(name))?;
        Some(ForeignName { list, index, name: name.to_owned() })
    }

    /// Whether the name passes. An invalid pattern lets no tool pass: it allows no name, and denies every name.
    pub fn admits(&self, name: &ToolName) -> bool {
        let is_allowed = |pattern: &NamePattern| pattern.fits(name.as_str()).unwrap_or(false);
        (self.allow.is_empty() || self.allow.iter().any(is_allowed)) && !self.denies(name)
    }

    /// Whether the name is on the deny list. Builtin tools are subject to the deny list only, because allow lists omit
    /// them.
    pub fn denies(&self, name: &ToolName) -> bool {
        self.deny.iter().any(|pattern| pattern.fits(name.as_str()).unwrap_or(true))
    }
}
