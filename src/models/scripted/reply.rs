//! Scripted replies: turns a script turn into a reply. Pure.

use toolgate_core::chat::{Media, Message, Part, Reply, Stop};
use toolgate_core::id::CallId;
use toolgate_core::lifecycle::Delta;
use toolgate_core::run::ToolAccess;
use toolgate_ports::ModelRequest;

use super::{ScriptedCall, ScriptedTurn};

const LAST_RESULT: &str = "{{last_result}}";

impl ScriptedTurn {
    /// The reply of turn `number` (from 1) to a request.
    pub(super) fn reply(&self, number: usize, request: &ModelRequest<'_>) -> Reply {
        let fill = |text: &str| fill_in(text, request.messages.iter().map(|message| message.as_ref()));
        if let (ToolAccess::BudgetExhausted | ToolAccess::Stopped | ToolAccess::FinalAnswer, Some(text)) =
            (request.tool_access, &self.final_text)
        {
            return Reply { usage: self.usage, ..Reply::text(fill(text)) };
        }
        let reasoning = self.reasoning.iter().map(|text| Part::Reasoning { text: text.clone() });
        let text = self.say.iter().map(|text| Part::text(fill(text)));
        let media = self.media.iter().map(produced);
        let calls = self.calls.iter().zip(1..).map(|(call, position)| call.part(number, position));
        let by_content = if self.calls.is_empty() { Stop::End } else { Stop::ToolCalls };
        Reply {
            content: reasoning.chain(text).chain(media).chain(calls).collect(),
            stop: self.stop.unwrap_or(by_content),
            usage: self.usage,
            ..Reply::empty()
        }
    }
}

fn produced(media: &Media) -> Part {
    let media = media.clone();
    match media.media_type.split('/').next() {
        Some("image") => Part::Image(media),
        Some("audio") => Part::Audio(media),
        Some(_) | None => Part::Resource {
            uri: media.url.unwrap_or_default(),
            name: None,
            media_type: Some(media.media_type),
            text: None,
            data: media.data,
        },
    }
}

impl ScriptedCall {
    fn part(&self, turn: usize, position: usize) -> Part {
        let id = match &self.id {
            Some(id) => CallId::from(id.as_str()),
            None => CallId::from(format!("call_{turn}_{position}")),
        };
        Part::ToolUse { id, name: self.name.clone(), input: self.arguments.clone() }
    }
}

/// All text of these parts, including text inside tool results, one piece per line.
pub(super) fn all_text(parts: &[Part]) -> String {
    let mut pieces = Vec::new();
    for part in parts {
        match part {
            Part::Text { text } => pieces.push(text.clone()),
            Part::ToolResult { content, .. } => pieces.push(all_text(content)),
            Part::Resource { text, .. } => pieces.extend(text.clone()),
            Part::Image(_) | Part::Audio(_) | Part::Reasoning { .. } | Part::ToolUse { .. } => {}
        }
    }
    pieces.join("\n")
}

/// The fragments of visible text and reasoning, in order; each part is split into `count` pieces.
pub(super) fn fragments(parts: &[Part], count: usize) -> Vec<Delta> {
    let mut fragments = Vec::new();
    for part in parts {
        match part {
            Part::Text { text } => {
                fragments.extend(split(text, count).into_iter().map(|text| Delta::Text { text }));
            }
            Part::Reasoning { text } => {
                fragments.extend(split(text, count).into_iter().map(|text| Delta::Reasoning { text }));
            }
            Part::Image(_)
            | Part::Audio(_)
            | Part::Resource { .. }
            | Part::ToolUse { .. }
            | Part::ToolResult { .. } => {}
        }
    }
    fragments
}

fn split(text: &str, count: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let size = characters.len().div_ceil(count.max(1)).max(1);
    characters.chunks(size).map(|piece| piece.iter().collect()).collect()
}

fn fill_in<'a>(text: &str, messages: impl DoubleEndedIterator<Item = &'a Message>) -> String {
    if !text.contains(LAST_RESULT) {
        return text.to_owned();
    }
    let last = messages.rev().flat_map(|message| message.content.iter().rev()).find_map(Part::tool_result);
    text.replace(LAST_RESULT, &last.map(|(_, content, _)| all_text(content)).unwrap_or_default())
}
