//! Derived ids: the same in every process.

use sha2::{Digest as _, Sha256};
use toolgate_core::json::hex;

/// An id derived from a text.
pub(super) fn following_from(named: &str) -> String {
    hex(&Sha256::digest(named)).chars().take(32).collect()
}
