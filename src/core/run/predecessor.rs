//! Predecessor: the run whose conversation a run continues. Its messages are not copied into the journal.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::transcript::say;
use crate::blob::BlobHandle;
use crate::chat::Message;
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
    pub conversation: Option<Arc<PriorConversation>>,
}

/// Two predecessors are equal if they name the same run and position, whether the conversation was read or not.
impl PartialEq for Predecessor {
    fn eq(&self, other: &Self) -> bool {
        self.run == other.run && self.position == other.position && self.authors == other.authors
    }
}

/// The part of a conversation that one ended run added.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// Its messages up to its last answered turn, results included, without toolgate's notes about its budget. Empty if
    /// no turn was answered.
    pub messages: Vec<Arc<Message>>,
    /// The blobs that its replies and results name.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub blobs: BTreeSet<BlobHandle>,
    /// Whether a result was too large to be shown in full.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_cut_results: bool,
}

/// The conversation before a run: the segments of its predecessors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PriorConversation {
    /// The messages, strictly alternating.
    pub messages: Vec<Arc<Message>>,
    /// The blobs that its replies and results name.
    pub blobs: BTreeSet<BlobHandle>,
    /// Whether a result was too large to be shown in full.
    pub has_cut_results: bool,
}

impl PriorConversation {
    /// The conversation of these segments, oldest first.
    pub fn of(segments: impl IntoIterator<Item = Segment>) -> Self {
        let mut conversation = Self::default();
        for Segment { messages, blobs, has_cut_results } in segments {
            for message in messages {
                say(&mut conversation.messages, message);
            }
            conversation.blobs.extend(blobs);
            conversation.has_cut_results |= has_cut_results;
        }
        conversation
    }

    /// The same as one segment.
    pub fn to_segment(&self) -> Segment {
        let Self { messages, blobs, has_cut_results } = self.clone();
        Segment { messages, blobs, has_cut_results }
    }
}
