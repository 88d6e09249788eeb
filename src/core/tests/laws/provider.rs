//! A strict model provider: law 5 forbids every conversation that it would refuse.

use std::collections::BTreeSet;
use std::sync::Arc;

use toolgate_core::chat::{Message, Part, Role};
use toolgate_core::id::CallId;

/// Whether the last assistant message may have unanswered calls.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Open {
    Never,
    LastTurn,
}

/// The reason why a provider would refuse this conversation.
pub(crate) fn refusal(messages: &[Arc<Message>], open: Open) -> Option<String> {
    let mut all = BTreeSet::new();
    for (index, message) in messages.iter().enumerate() {
        let expected = if index % 2 == 0 { Role::User } else { Role::Assistant };
        if message.role != expected {
            return Some(format!("message {index} has the role {:?}", message.role));
        }
        if message.content.is_empty() && message.provider_state.is_none() {
            return Some(format!("message {index} is empty"));
        }
        let asked = calls(message);
        if message.role == Role::User && !asked.is_empty() {
            return Some(format!("user message {index} calls tools"));
        }
        if !asked.iter().all(|id| all.insert(id.clone())) {
            return Some(format!("message {index} repeats a call id"));
        }
        let answered = messages.get(index + 1).map(|next| answers(next)).unwrap_or_default();
        let may_be_open = open == Open::LastTurn && index + 2 >= messages.len();
        let fits = if may_be_open { is_subsequence(&answered, &asked) } else { answered == asked };
        if message.role == Role::Assistant && !fits {
            return Some(format!("message {index} calls {asked:?} and is answered {answered:?}"));
        }
        if index == 0 && !answers(message).is_empty() {
            return Some("the first message answers calls".into());
        }
        if !results_come_first(message) {
            return Some(format!("message {index} has results after other parts"));
        }
    }
    None
}

fn calls(message: &Message) -> Vec<CallId> {
    message
        .content
        .iter()
        .filter_map(|part| match part {
            Part::ToolUse { id, .. } => Some(id.clone()),
            _ => None,
        })
        .collect()
}

pub(crate) fn answers(message: &Message) -> Vec<CallId> {
    message
        .content
        .iter()
        .filter_map(|part| match part {
            Part::ToolResult { tool_use_id, .. } => Some(tool_use_id.clone()),
            _ => None,
        })
        .collect()
}

fn results_come_first(message: &Message) -> bool {
    let is_result = |part: &Part| matches!(part, Part::ToolResult { .. });
    let count = message.content.iter().take_while(|part| is_result(part)).count();
    count == message.content.iter().filter(|part| is_result(part)).count()
}

fn is_subsequence(part: &[CallId], whole: &[CallId]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|id| rest.any(|other| other == id))
}
