//! Predecessor: the run whose conversation a run continues. Its messages are not copied into the journal.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Segment;
use crate::id::RunId;

/// The run whose conversation a run continues.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Predecessor {
    /// The run.
    pub run: RunId,
    /// The length of its journal. It had ended.
    pub position: u64,
    /// The authors of the conversation: its messages contain their words.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub authors: BTreeSet<String>,
    /// The conversation, once it was read. It is not part of the journal.
    #[serde(skip)]
    pub conversation: Option<Arc<Segment>>,
}

/// Two predecessors are equal if they name the same run and position, whether the conversation was read or not.
impl PartialEq for Predecessor {
    fn eq(&self, other: &Self) -> bool {
        self.run == other.run && self.position == other.position && self.authors == other.authors
    }
}
