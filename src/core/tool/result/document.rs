//! Result parts as text: the size of a part, and all parts as one document.

use serde::de::IgnoredAny;

use crate::chat::{Media, Part};

/// The size of a part besides its text, which is never zero.
const FRAME_BYTES: usize = 48;

/// The maximum length of a media type.
const MAX_TYPE_BYTES: usize = 100;

/// The size of a part in the journal and the model's context. Bytes of media are not text and do not count.
pub(super) fn weight(part: &Part) -> usize {
    let medium = |media: &Media| media.media_type.len() + media.url.as_ref().map_or(0, String::len);
    let text = match part {
        Part::Text { text } | Part::Reasoning { text } => text.len(),
        Part::Image(media) | Part::Audio(media) => medium(media),
        Part::Resource { uri, name, media_type, text, data: _ } => {
            uri.len() + [name, media_type, text].into_iter().flatten().map(String::len).sum::<usize>()
        }
        Part::ToolUse { name, input, .. } => name.len() + input.to_value().to_string().len(),
        Part::ToolResult { content, .. } => content.iter().map(weight).sum(),
    };
    text + FRAME_BYTES
}

/// The text of a part, if it can be cut without changing its meaning.
pub(super) fn text_mut(part: &mut Part) -> Option<&mut String> {
    match part {
        Part::Text { text } | Part::Reasoning { text } => Some(text),
        Part::Resource { text, .. } => text.as_mut(),
        Part::Image(_) | Part::Audio(_) | Part::ToolUse { .. } | Part::ToolResult { .. } => None,
    }
}

/// The same, read-only.
pub(super) fn text_of(part: &Part) -> Option<&str> {
    match part {
        Part::Text { text } | Part::Reasoning { text } => Some(text),
        Part::Resource { text, .. } => text.as_deref(),
        Part::Image(_) | Part::Audio(_) | Part::ToolUse { .. } | Part::ToolResult { .. } => None,
    }
}

/// All parts as one text; each takes one line or more.
pub(super) fn document(parts: &[Part]) -> String {
    parts.iter().map(describe_part).collect::<Vec<_>>().join("\n")
}

fn describe_part(part: &Part) -> String {
    let medium = |kind: &str, media: &Media| {
        let place = media.url.as_deref().unwrap_or("an unknown place");
        format!("[{kind} {} at {place}]", media.media_type)
    };
    match part {
        Part::Text { text } | Part::Reasoning { text } => text.clone(),
        Part::Image(media) => medium("image", media),
        Part::Audio(media) => medium("audio", media),
        Part::Resource { uri, text: Some(text), .. } => format!("[resource {uri}]\n{text}"),
        Part::Resource { uri, name, media_type, .. } => {
            let name = name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
            format!("[resource {uri}{name} ({})]", media_type.as_deref().unwrap_or("unknown type"))
        }
        Part::ToolUse { name, input, .. } => format!("[call of {name} with {}]", input.to_value()),
        Part::ToolResult { content, .. } => document(content),
    }
}

/// The media type of a part's text: the declared one, or a guess.
pub(super) fn media_type(part: &Part, text: &str) -> String {
    if let Part::Resource { media_type: Some(media_type), .. } = part
        && media_type.len() <= MAX_TYPE_BYTES
    {
        return media_type.clone();
    }
    let looks_like = if is_json(text) { "application/json" } else { "text/plain" };
    looks_like.to_owned()
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(text).is_ok()
}
