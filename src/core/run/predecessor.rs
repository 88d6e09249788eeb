//! Predecessor: the run whose conversation a run continues. Its messages are not copied into the journal.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::fold::BUDGET_NOTE;
use super::fork::RENEWED_NOTE;
use super::transcript::say;
use super::{Event, InvalidEvent, Run};
use crate::blob::BlobHandle;
use crate::chat::{Message, Part, Role};
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

impl Segment {
    /// The segment of a run: of its journal alone, whether the conversation before it was read or not. `None` for an
    /// empty journal.
    pub fn of<'a>(journal: impl IntoIterator<Item = &'a Event>) -> Result<Option<Self>, InvalidEvent> {
        let mut events = journal.into_iter();
        let Some(first) = events.next() else { return Ok(None) };
        let Some(mut run) = Run::replay([&first.with_conversation(None)])? else { return Ok(None) };
        events.try_for_each(|event| run.apply(event))?;
        Ok(Some(Self {
            messages: answered(run.transcript()),
            blobs: run.blobs().clone(),
            has_cut_results: run.has_cut_results(),
        }))
    }
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

impl Event {
    /// The first event with the conversation before the run, in place of the one it holds. Other events are unchanged.
    #[must_use]
    pub fn with_conversation(&self, conversation: Option<Arc<PriorConversation>>) -> Self {
        let mut event = self.clone();
        if let Self::Started(started) = &mut event
            && started.predecessor.is_some()
        {
            let predecessor = Arc::make_mut(started).predecessor.as_mut();
            predecessor.into_iter().for_each(|predecessor| predecessor.conversation.clone_from(&conversation));
        }
        event
    }
}

/// The messages up to the last answered turn, results included, without toolgate's notes about a budget.
fn answered(transcript: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let Some(last) = transcript.iter().rposition(|message| message.role == Role::Assistant) else {
        return Vec::new();
    };
    let calls = |message: &Arc<Message>| message.content.iter().any(|part| part.tool_use().is_some());
    let answered = last + 1 + usize::from(transcript.get(last).is_some_and(calls));
    let messages = transcript.iter().take(answered).map(without_notes);
    messages.filter(|message| !message.content.is_empty()).collect()
}

fn without_notes(message: &Arc<Message>) -> Arc<Message> {
    let is_note = |part: &Part| matches!(part.as_text(), Some(BUDGET_NOTE | RENEWED_NOTE));
    let mut message = message.clone();
    if message.content.iter().any(is_note) {
        Arc::make_mut(&mut message).content.retain(|part| !is_note(part));
    }
    message
}
