//! Policy mark: which policy decided, for the record.

use serde::{Deserialize, Serialize};

/// The version of a policy at some time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyMark {
    /// Its name.
    pub name: String,
    /// Hash of its text.
    pub version: String,
}
