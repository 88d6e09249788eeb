//! Conversations as text, for people.

use super::words::media_line;
use crate::cli::text::block;
use crate::core::chat::{Message, Part, Role};

/// The lines of a message, with an empty line after each part. Reasoning is left out.
pub(in crate::cli) fn message_lines(message: &Message) -> Vec<String> {
    message.content.iter().flat_map(|part| part_lines(part, message.role)).collect()
}

fn part_lines(part: &Part, role: Role) -> Vec<String> {
    match (part, role) {
        (Part::Text { text }, Role::User) => vec![format!("user: {}\n", block(text))],
        (Part::Text { text }, Role::Assistant) => vec![format!("assistant: {}\n", block(text))],
        (Part::ToolUse { id, name, input }, _) => vec![format!("call {id}: {name} {}\n", input.to_value())],
        (Part::ToolResult { tool_use_id, content, is_error }, _) => {
            let word = if *is_error { "error" } else { "result" };
            let text = Part::lines(content);
            let media = content.iter().filter_map(Part::as_media);
            let media = media.map(|media| format!("({})\n", media_line(&media, None)));
            [format!("{word} {tool_use_id}: {}\n", block(&text))].into_iter().chain(media).collect()
        }
        (Part::Image(media) | Part::Audio(media), _) => vec![format!("({})\n", media_line(media, None))],
        (Part::Resource { uri, .. }, _) => vec![format!("({uri})\n")],
        (Part::Reasoning { .. }, _) => Vec::new(),
    }
}
