//! JSON array writer: serializes the members of an array one after the other.

use serde::Serialize;

/// An append-only buffer.
#[derive(Debug, Default)]
pub(crate) struct Members(Vec<u8>);

impl Members {
    /// Appends a member.
    pub(crate) fn push(&mut self, member: &impl Serialize) -> Result<(), serde_json::Error> {
        if !self.0.is_empty() {
            self.0.push(b',');
        }
        serde_json::to_writer(&mut self.0, member)
    }

    /// The members, separated by commas.
    pub(super) fn json(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }
}
