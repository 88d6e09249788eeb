//! Resolved links of paths: what a condition about folders knows beside the text of a path (decision 0015).

use std::collections::BTreeMap;

/// Where the links of paths lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Links {
    /// Only texts are compared. For examples and for calls that are not about to run.
    Ignored,
    /// They cannot be resolved. Why not.
    Unresolvable(String),
    /// Each path with the path its links lead to, or why that is not known.
    Resolved(BTreeMap<String, Result<String, String>>),
}
