//! Settings of the builtin tool `ask_human`.

use serde::{Deserialize, Serialize};

/// Settings of the model's questions to the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AskHuman {
    /// Seconds for an answer; without it, as long as the run lives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_s: Option<u64>,
}
