//! Segment: a part of the conversation of a session.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::transcript::say;
use crate::blob::BlobHandle;
use crate::chat::Message;

/// A part of a conversation: what one ended run added, or the whole conversation before a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// Its messages up to the last answered turn, results included, without toolgate's notes about a budget. Empty if
    /// no turn was answered.
    pub messages: Vec<Arc<Message>>,
    /// The blobs that its replies and results name.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub blobs: BTreeSet<BlobHandle>,
    /// Whether a result was too large to be shown in full.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_cut_results: bool,
}

impl Segment {
    /// The conversation of successive segments, oldest first. Its messages alternate strictly.
    pub fn join(segments: impl IntoIterator<Item = Self>) -> Self {
        let mut conversation = Self::default();
        for Self { messages, blobs, has_cut_results } in segments {
            for message in messages {
                say(&mut conversation.messages, message);
            }
            conversation.blobs.extend(blobs);
            conversation.has_cut_results |= has_cut_results;
        }
        conversation
    }
}
