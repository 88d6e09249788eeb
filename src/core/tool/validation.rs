//! The treatment of arguments that do not match their tool's schema.

use serde::{Deserialize, Serialize};

/// The treatment of arguments that do not match the input schema of a server's tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Validation {
    /// The call is rejected, and the model reads the problems.
    #[default]
    Strict,
    /// The problems are recorded, and the call goes on: the server judges the arguments.
    Advisory,
}
