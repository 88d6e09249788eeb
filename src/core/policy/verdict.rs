//! Policy verdicts: allow, ask or deny, ordered from lenient to strict.

use serde::{Deserialize, Serialize};

/// The verdict of a policy. `Deny` is stricter than `Ask`, `Ask` than `Allow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The call runs.
    Allow,
    /// The call requires approval.
    Ask,
    /// The call is refused.
    Deny,
}

impl Verdict {
    /// Its name in policies and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}
