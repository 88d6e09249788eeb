//! Progress of a call.

use serde::{Deserialize, Serialize};

/// A progress report of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The progress so far.
    pub progress: f64,
    /// The total, if known.
    #[serde(default)]
    pub total: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
