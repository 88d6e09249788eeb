//! Server endpoints as they are stored with tools: enough to distinguish two endpoints, and to show one to a person.
//! They contain no potential secret: variables and headers are excluded, and arguments and the query of an address are
//! only in the hash.

use serde::{Deserialize, Serialize};

/// The endpoint of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// Hash of the program with its arguments and directory, or of the address. Another hash is another server.
    pub fingerprint: String,
    /// A description in words, without potential secrets.
    pub description: String,
}

impl Endpoint {
    /// The description for an approver: in words, and the hash.
    pub fn in_words(&self) -> String {
        format!("{}; in all {}", self.description, self.fingerprint)
    }
}
