//! Predecessor: the run whose conversation a run continues. Its messages are not copied into the journal.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Segment;
use crate::id::RunId;

/// The run whose conversation a run continues.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Predecessor {
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

/// The end of the id under which a store has a fork's copy of the conversation before it. No run has such an id.
const COPY: &str = "/before";

impl Predecessor {
    /// The same predecessor for a fork, which has a copy of the conversation: the runs that it was copied from can be
    /// deleted.
    #[must_use]
    pub fn copied_for(self, fork: &RunId) -> Self {
        Self { run: format!("{fork}{COPY}").into(), ..self }
    }

    /// Whether it is the copy of a fork.
    pub fn is_copy(&self) -> bool {
        self.run.as_str().ends_with(COPY)
    }

    /// The run that shows the messages of this one: a fork shows those of its copy.
    pub fn shown_as(run: &RunId) -> RunId {
        run.as_str().strip_suffix(COPY).map_or_else(|| run.clone(), RunId::from)
    }
}

/// Two predecessors are equal if they name the same run and position, whether the conversation was read or not.
impl PartialEq for Predecessor {
    fn eq(&self, other: &Self) -> bool {
        self.run == other.run && self.position == other.position && self.authors == other.authors
    }
}
