//! The effect of a question that no person answers in time.

use serde::{Deserialize, Serialize};

/// The effect on a call that requires approval if there is no decision in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnTimeout {
    /// The call runs. Never for a question about something else than the rule's own criteria: a call that changed or
    /// that may have taken effect, a condition that cannot be evaluated, a claim of an untrusted server.
    Approve,
    /// The call is denied.
    Deny,
    /// The call does not run. That is not a denial.
    #[default]
    Expire,
}

impl OnTimeout {
    /// Its name in policies and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Deny => "deny",
            Self::Expire => "expire",
        }
    }

    /// The same for a question that only a person can approve.
    #[must_use]
    pub fn without_approval(self) -> Self {
        match self {
            Self::Approve => Self::Expire,
            Self::Deny | Self::Expire => self,
        }
    }

    /// Whether it is the default.
    pub fn is_expire(&self) -> bool {
        *self == Self::Expire
    }
}
