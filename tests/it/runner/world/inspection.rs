//! Inspection of the outcome.

use serde_json::{Value, json};
use toolgate::core::chat::{Message, Part, Role};
use toolgate::core::run::JournalEntry;
use toolgate::runner::Report;

/// The names of events.
pub(crate) fn names(journal: &[JournalEntry]) -> Vec<&'static str> {
    journal.iter().map(|recorded| recorded.event.name()).collect()
}

/// The conversation, one line per part with its author.
pub(crate) fn said(report: &Report) -> Vec<String> {
    report.messages.iter().flat_map(|message| lines(message)).collect()
}

fn lines(message: &Message) -> Vec<String> {
    let who = match message.role {
        Role::User => "user",
        Role::Assistant => "model",
    };
    let line = |part: &Part| match part {
        Part::Text { text } => format!("{who}: {text}"),
        Part::ToolUse { id, name, .. } => format!("{who}: {id} = {name}()"),
        Part::ToolResult { tool_use_id, content, is_error } => {
            let text: Vec<_> = content.iter().filter_map(Part::as_text).collect();
            let mark = if *is_error { " failed" } else { "" };
            format!("{who}: {tool_use_id}{mark} -> {}", text.join(" | "))
        }
        other => format!("{who}: {other:?}"),
    };
    message.content.iter().map(line).collect()
}

/// The answer to a call as the model reads it.
pub(crate) fn answer_to(report: &Report, call: &str) -> String {
    let marks = [format!("user: {call} -> "), format!("user: {call} failed -> ")];
    let answers: Vec<String> = said(report)
        .iter()
        .filter_map(|line| marks.iter().find_map(|mark| line.strip_prefix(mark)))
        .map(str::to_owned)
        .collect();
    assert_eq!(answers.len(), 1, "call {call} has exactly one answer in {:#?}", said(report));
    answers[0].clone()
}

/// A turn with text only.
pub(crate) fn say(text: &str) -> Value {
    json!({"say": text})
}
