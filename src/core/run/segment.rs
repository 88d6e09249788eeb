//! Segment: a part of the conversation of a session.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::compaction::{boundary, tail};
use super::transcript::say;
use crate::blob::BlobHandle;
use crate::chat::{Message, Role};

/// A part of a conversation: what one ended run added, or the whole conversation before a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// Its messages up to the last answered turn, results included, and the user's messages after it, which have no reply.
    /// Without toolgate's notes about a budget. People read all of them.
    pub messages: Vec<Arc<Message>>,
    /// What models read up to its end, if a compaction replaced messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacted: Option<CompactedSegment>,
    /// The tokens of the conversation at its last reply, as the provider counted them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The blobs that its replies and results name.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub blobs: BTreeSet<BlobHandle>,
    /// Whether a result was too large to be shown in full.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_cut_results: bool,
}

/// What models read after a compaction: the summary, the messages from before the segment that it keeps, and the
/// segment's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CompactedSegment {
    /// The number of messages from before the segment that are kept.
    #[serde(default)]
    pub keeps: u64,
    /// Whether the first own message after the summary was kept as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_own: bool,
    /// The message with the summary, and the own messages after it.
    pub messages: Vec<Arc<Message>>,
}

impl Segment {
    /// The conversation of successive segments, oldest first. Its messages alternate strictly.
    pub fn join(segments: impl IntoIterator<Item = Self>) -> Self {
        let mut conversation = Self::default();
        segments.into_iter().for_each(|segment| conversation.append(segment));
        conversation
    }

    /// Its messages as models read them.
    pub fn read_by_models(&self) -> &[Arc<Message>] {
        self.compacted.as_ref().map_or(&self.messages, |compacted| &compacted.messages)
    }

    fn append(&mut self, next: Self) {
        let Self { messages, compacted, tokens, blobs, has_cut_results } = next;
        if compacted.is_some() || !messages.is_empty() {
            self.tokens = tokens;
        }
        if let Some(compacted) = compacted {
            let messages = compacted.after(self.read_by_models());
            self.compacted = Some(CompactedSegment { messages, ..CompactedSegment::default() });
        } else if let Some(compacted) = &mut self.compacted {
            messages.iter().for_each(|message| say(&mut compacted.messages, message.clone()));
        }
        messages.into_iter().for_each(|message| say(&mut self.messages, message));
        self.blobs.extend(blobs);
        self.has_cut_results |= has_cut_results;
    }
}

impl CompactedSegment {
    /// The messages that models read after these.
    fn after(self, before: &[Arc<Message>]) -> Vec<Arc<Message>> {
        let mut own = self.messages.into_iter();
        let mut all: Vec<Arc<Message>> = own.next().into_iter().collect();
        if self.keeps > 0 {
            // A kept own message is joined to the last one before, and counted once.
            let is_user = |message: Option<&Arc<Message>>| message.is_some_and(|message| message.role == Role::User);
            let joined = self.keeps_own && is_user(before.last()) && is_user(own.as_slice().first());
            let kept = boundary(before, tail(before, self.keeps.saturating_add(u64::from(joined))));
            before.iter().skip(kept).for_each(|message| say(&mut all, message.clone()));
        }
        own.for_each(|message| say(&mut all, message));
        all
    }
}
