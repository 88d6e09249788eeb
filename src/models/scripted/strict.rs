//! Transcript rules: rejects what every provider rejects. The scripted model is the fake of the whole test suite, so a
//! transcript that fails at a real provider must fail here.

use std::collections::HashSet;
use std::sync::Arc;

use toolgate_core::chat::{Message, Part, Role};
use toolgate_core::id::CallId;

/// Why a transcript is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TranscriptFault {
    /// The transcript is empty.
    #[error("the transcript is empty; it must begin with a user message")]
    Empty,
    /// Two messages of one role in a row, or a transcript that starts with the assistant.
    #[error("message {index}: the roles do not alternate, expected {expected:?}")]
    BrokenAlternation {
        /// The message, from 0.
        index: usize,
        expected: Role,
    },
    /// The last message is the assistant's.
    #[error("the last message is the assistant's; there is nothing to reply to")]
    AssistantLast,
    /// A call in a user message, or a result in an assistant message.
    #[error("message {index}: a {role:?} message cannot hold {what}")]
    Misplaced {
        /// The message, from 0.
        index: usize,
        /// The role of the message.
        role: Role,
        /// The misplaced content.
        what: &'static str,
    },
    /// A call id that an earlier call uses.
    #[error("message {index}: the call id {id} was used before")]
    DuplicateCall {
        /// The message, from 0.
        index: usize,
        id: CallId,
    },
    /// The message after the calls lacks a result.
    #[error("message {index}: the call {id} has no result in the next message")]
    Unanswered {
        /// The message that holds the call, from 0.
        index: usize,
        /// The call without a result.
        id: CallId,
    },
    /// A result for a call that the previous message does not make, or a second result for one.
    #[error("message {index}: a result for {id}, which is not an open call of the previous message")]
    Orphan {
        /// The message, from 0.
        index: usize,
        /// The call id that the result names.
        id: CallId,
    },
    /// The results are complete, but not in the order of the calls.
    #[error("message {index}: the results are not in the order of the calls")]
    OutOfOrder {
        /// The message, from 0.
        index: usize,
    },
}

/// Checks a transcript from the first message to the last.
pub fn check_transcript(messages: &[Arc<Message>]) -> Result<(), TranscriptFault> {
    let Some(last) = messages.last() else { return Err(TranscriptFault::Empty) };
    let mut seen = HashSet::new();
    let mut open: Vec<&CallId> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let expected = if index % 2 == 0 { Role::User } else { Role::Assistant };
        if message.role != expected {
            return Err(TranscriptFault::BrokenAlternation { index, expected });
        }
        match message.role {
            Role::User => {
                check_results(index, message, &open)?;
                open.clear();
            }
            Role::Assistant => open = check_calls(index, message, &mut seen)?,
        }
    }
    match last.role {
        Role::User => Ok(()),
        Role::Assistant => Err(match open.first() {
            Some(id) => TranscriptFault::Unanswered { index: messages.len() - 1, id: (*id).clone() },
            None => TranscriptFault::AssistantLast,
        }),
    }
}

fn check_calls<'a>(
    index: usize,
    message: &'a Message,
    seen: &mut HashSet<&'a CallId>,
) -> Result<Vec<&'a CallId>, TranscriptFault> {
    let mut calls = Vec::new();
    for part in &message.content {
        match part {
            Part::ToolUse { id, .. } if !seen.insert(id) => {
                return Err(TranscriptFault::DuplicateCall { index, id: id.clone() });
            }
            Part::ToolUse { id, .. } => calls.push(id),
            Part::ToolResult { .. } => {
                return Err(TranscriptFault::Misplaced { index, role: message.role, what: "a tool result" });
            }
            Part::Text { .. } | Part::Image(_) | Part::Audio(_) | Part::Resource { .. } | Part::Reasoning { .. } => {}
        }
    }
    Ok(calls)
}

fn check_results(index: usize, message: &Message, open: &[&CallId]) -> Result<(), TranscriptFault> {
    let mut answered: Vec<&CallId> = Vec::new();
    for part in &message.content {
        match part {
            Part::ToolResult { tool_use_id, .. } => {
                if !open.contains(&tool_use_id) || answered.contains(&tool_use_id) {
                    return Err(TranscriptFault::Orphan { index, id: tool_use_id.clone() });
                }
                answered.push(tool_use_id);
            }
            Part::ToolUse { .. } => {
                return Err(TranscriptFault::Misplaced { index, role: message.role, what: "a tool call" });
            }
            Part::Reasoning { .. } => {
                return Err(TranscriptFault::Misplaced { index, role: message.role, what: "reasoning" });
            }
            Part::Text { .. } | Part::Image(_) | Part::Audio(_) | Part::Resource { .. } => {}
        }
    }
    if let Some(id) = open.iter().find(|id| !answered.contains(id)) {
        return Err(TranscriptFault::Unanswered { index: index.saturating_sub(1), id: (**id).clone() });
    }
    if answered != open { Err(TranscriptFault::OutOfOrder { index }) } else { Ok(()) }
}
