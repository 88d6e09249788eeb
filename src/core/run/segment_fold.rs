//! Fold of a segment: the part of a conversation that one run added, from its journal alone.

use std::sync::Arc;

use super::fold::BUDGET_NOTE;
use super::fork::RENEWED_NOTE;
use super::stop_conditions::STOP_NOTE;
use super::transcript::say;
use super::{CompactedSegment, Ending, Event, InvalidEvent, Run, Segment};
use crate::chat::{Message, Part, Role};
use crate::error::ErrorCode;

/// The note after the messages of a run that was cancelled in the middle of a reply, and outside of one.
const STOPPED_REPLY_NOTE: &str = "[toolgate] The reply above was stopped before it was complete.";
const STOPPED_NOTE: &str = "[toolgate] The run was stopped before the model had answered.";

/// The note in the place of a message that was refused, followed by the error code.
const REFUSED_NOTE: &str = "[toolgate] A message of the user stood here. It has no reply, because it was refused:";

impl Segment {
    /// The segment of a run: of its journal alone, whether the conversation before it was read or not. `None` for an
    /// empty journal.
    pub fn from_journal<'a>(journal: impl IntoIterator<Item = &'a Event>) -> Result<Option<Self>, InvalidEvent> {
        let mut events = journal.into_iter();
        let Some(first) = events.next() else { return Ok(None) };
        let Some(mut run) = Run::replay([&first.with_conversation(None)])? else { return Ok(None) };
        events.try_for_each(|event| run.apply(event))?;
        let unanswered = run.unanswered();
        let mut messages = answered(run.conversation());
        unanswered.iter().for_each(|message| say(&mut messages, message.clone()));
        Ok(Some(Self {
            messages,
            compacted: run.compacted_segment(unanswered),
            tokens: run.measured_tokens(),
            blobs: run.blobs().clone(),
            has_cut_results: run.has_cut_results(),
        }))
    }
}

impl Run {
    /// What models read after the run, if it compacted its conversation. The conversation before it was not read.
    fn compacted_segment(&self, unanswered: Option<Message>) -> Option<CompactedSegment> {
        let compactions = &self.compactions;
        if compactions.summary_parts == 0 {
            return None;
        }
        let mut messages = answered(&self.transcript);
        let has_reply = !messages.is_empty();
        if !has_reply {
            // A message of the user that was joined to the summary has no answer.
            messages.extend(self.transcript.first().cloned());
            let first = messages.first_mut().map(Arc::make_mut);
            first.into_iter().for_each(|first| first.content.truncate(compactions.summary_parts));
        }
        match unanswered {
            // Messages from before the run stand between the summary and this one.
            Some(message) if !has_reply && compactions.keeps_before > 0 => messages.push(message.into()),
            Some(message) => say(&mut messages, message),
            None => {}
        }
        Some(CompactedSegment { keeps: compactions.keeps_before as u64, keeps_own: compactions.keeps_own, messages })
    }

    /// The user's messages that have no reply, as one message. A note stands in the place of those that a model or its
    /// provider refused: they would have every later run of the conversation refused. Another one tells that the run was
    /// cancelled: a model would otherwise answer what the user no longer asks.
    fn unanswered(&self) -> Option<Message> {
        let mut content: Vec<Part> = self.unanswered.iter().flat_map(|message| message.content.clone()).collect();
        if let Some(code) = self.ending().and_then(|ending| ending.failure()).map(|failure| failure.code)
            && refuses_the_message(code)
            && !content.is_empty()
        {
            content = vec![Part::text(format!("{REFUSED_NOTE} {}", code.as_str()))];
        }
        if let Some(Ending::Cancelled { partial_reply, reason }) = self.ending() {
            let note = if partial_reply.is_some() { STOPPED_REPLY_NOTE } else { STOPPED_NOTE };
            let reason = reason.as_ref().map(|reason| format!(" The reason: {reason}")).unwrap_or_default();
            content.push(Part::text(format!("{note}{reason}")));
        }
        (!content.is_empty()).then(|| Message { content, ..Message::user("") })
    }
}

/// Whether a run that ends with this code may have ended because of what its message says.
fn refuses_the_message(code: ErrorCode) -> bool {
    use ErrorCode::{ContentFilter, ContextWindow, ModelRefused, ProviderRejected};
    [ContentFilter, ContextWindow, ModelRefused, ProviderRejected].contains(&code)
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
    let is_note = |part: &Part| matches!(part.as_text(), Some(BUDGET_NOTE | RENEWED_NOTE | STOP_NOTE));
    let mut message = message.clone();
    if message.content.iter().any(is_note) {
        Arc::make_mut(&mut message).content.retain(|part| !is_note(part));
    }
    message
}
