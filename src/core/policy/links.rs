//! Resolved links of paths: the file system facts that path conditions need besides the text of a path (decision 0015).

use std::collections::BTreeMap;

/// The targets of the links of paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Links {
    /// Only texts are compared. For examples, and for calls that are not about to run.
    Ignored,
    /// They cannot be resolved. Contains the reason.
    Unresolvable(String),
    /// Each path with its resolved path, or the reason why that is not known.
    Resolved(BTreeMap<String, Result<String, String>>),
}
