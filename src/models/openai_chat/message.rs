//! One neutral message as the messages the server reads.
//!
//! Results come first, one `tool` message each, directly after the assistant message they answer; whatever else the
//! user said follows as a `user` message. There is no error flag, so an error is said in the text. Reasoning is not
//! sent back. What this API cannot carry degrades to a note in brackets, never to silence.

use std::borrow::Cow;

use serde::Serialize;

use crate::core::chat::{Media, Message, Part, Role};
use crate::core::tool::{Arguments, ToolName};

const MAX_NAME_CHARS: usize = 64;

/// A message on the wire.
#[derive(Debug, Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub(super) enum WireMessage<'a> {
    /// What the user said.
    User { content: UserContent<'a> },
    /// What the model said.
    Assistant {
        content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireCall<'a>>,
    },
    /// The result of one call.
    Tool { tool_call_id: &'a str, content: Cow<'a, str> },
}

/// Plain text where it will do: not every server takes parts.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum UserContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<WirePart<'a>>),
}

/// A part of what the user said.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum WirePart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl<'a> },
}

/// An address, or a data URL.
#[derive(Debug, Serialize)]
pub(super) struct ImageUrl<'a> {
    url: Cow<'a, str>,
}

/// A call the model made.
#[derive(Debug, Serialize)]
pub(super) struct WireCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: WireFunction<'a>,
}

/// Its name and its arguments, as text.
#[derive(Debug, Serialize)]
pub(super) struct WireFunction<'a> {
    name: Cow<'a, str>,
    arguments: Cow<'a, str>,
}

/// Translates a message; a user message becomes one message per result and one for the rest.
pub(super) fn translate(message: &Message) -> Result<Vec<WireMessage<'_>>, serde_json::Error> {
    match message.role {
        Role::User => Ok(user(&message.content)),
        Role::Assistant => Ok(vec![assistant(&message.content)?]),
    }
}

fn user(parts: &[Part]) -> Vec<WireMessage<'_>> {
    let mut messages = Vec::new();
    let mut said = Vec::new();
    for part in parts {
        match part {
            Part::ToolResult { tool_use_id, content, is_error } => messages.push(WireMessage::Tool {
                tool_call_id: tool_use_id.as_str(),
                content: result_text(content, *is_error),
            }),
            Part::Image(image) => match image_url(image) {
                Some(url) => said.push(WirePart::ImageUrl { image_url: ImageUrl { url } }),
                None => said.push(WirePart::Text { text: as_text(part) }),
            },
            Part::Text { .. }
            | Part::Audio(_)
            | Part::Resource { .. }
            | Part::Reasoning { .. }
            | Part::ToolUse { .. } => said.push(WirePart::Text { text: as_text(part) }),
        }
    }
    if !said.is_empty() || messages.is_empty() {
        messages.push(WireMessage::User { content: UserContent::of(said) });
    }
    messages
}

impl<'a> UserContent<'a> {
    fn of(mut parts: Vec<WirePart<'a>>) -> Self {
        match (parts.pop(), parts.is_empty()) {
            (None, _) => Self::Text(Cow::Borrowed("")),
            (Some(WirePart::Text { text }), true) => Self::Text(text),
            (Some(last), _) => {
                parts.push(last);
                Self::Parts(parts)
            }
        }
    }
}

fn assistant(parts: &[Part]) -> Result<WireMessage<'_>, serde_json::Error> {
    let mut texts = Vec::new();
    let mut tool_calls = Vec::new();
    for part in parts {
        match part {
            Part::ToolUse { id, name, input } => tool_calls.push(WireCall {
                id: id.as_str(),
                r#type: "function",
                function: WireFunction { name: accepted_name(name), arguments: arguments(input)? },
            }),
            Part::Reasoning { .. } => {}
            Part::Text { .. } | Part::Image(_) | Part::Audio(_) | Part::Resource { .. } | Part::ToolResult { .. } => {
                texts.push(as_text(part));
            }
        }
    }
    let content = (!texts.is_empty() || tool_calls.is_empty()).then(|| joined(texts, ""));
    Ok(WireMessage::Assistant { content, tool_calls })
}

/// The arguments as text; what the model wrote instead of JSON is sent back as it wrote it.
fn arguments(input: &Arguments) -> Result<Cow<'_, str>, serde_json::Error> {
    match input {
        Arguments::Object(object) => serde_json::to_string(object).map(Cow::Owned),
        Arguments::Malformed(text) => Ok(Cow::Borrowed(text)),
    }
}

/// The name as the model wrote it, unless servers would refuse the whole conversation for it.
fn accepted_name(name: &str) -> Cow<'_, str> {
    if ToolName::parse(name).is_some() {
        return Cow::Borrowed(name);
    }
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let name: String = name.chars().map(safe).take(MAX_NAME_CHARS).collect();
    Cow::Owned(if name.is_empty() { "unnamed".into() } else { name })
}

fn result_text(content: &[Part], is_error: bool) -> Cow<'_, str> {
    let text = joined(content.iter().map(as_text).collect(), "\n");
    let says_so = text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error"));
    if is_error && !says_so { Cow::Owned(format!("Error: {text}")) } else { text }
}

fn joined<'a>(mut texts: Vec<Cow<'a, str>>, separator: &str) -> Cow<'a, str> {
    match (texts.pop(), texts.is_empty()) {
        (None, _) => Cow::Borrowed(""),
        (Some(only), true) => only,
        (Some(last), false) => {
            texts.push(last);
            Cow::Owned(texts.join(separator))
        }
    }
}

/// Any part as text, if only as a note that it is there.
fn as_text(part: &Part) -> Cow<'_, str> {
    match part {
        Part::Text { text } | Part::Reasoning { text } => Cow::Borrowed(text),
        Part::Image(media) => Cow::Owned(media_note("image", media)),
        Part::Audio(media) => Cow::Owned(media_note("audio", media)),
        Part::Resource { uri, text: Some(text), .. } => Cow::Owned(format!("[resource {uri}]\n{text}")),
        Part::Resource { uri, media_type, .. } => {
            let media_type = media_type.as_deref().unwrap_or("unknown type");
            Cow::Owned(format!("[resource {uri} ({media_type}), its content is not shown here]"))
        }
        Part::ToolUse { name, .. } => Cow::Owned(format!("[call of {name}]")),
        Part::ToolResult { content, is_error, .. } => result_text(content, *is_error),
    }
}

fn media_note(kind: &str, media: &Media) -> String {
    let Media { media_type, url, .. } = media;
    match url {
        Some(url) => format!("[{kind} {media_type} at {url}, not shown here]"),
        None => format!("[{kind} {media_type}, not shown here]"),
    }
}

fn image_url(image: &Media) -> Option<Cow<'_, str>> {
    match (&image.data, &image.url) {
        (Some(data), _) => Some(Cow::Owned(format!("data:{};base64,{data}", image.media_type))),
        (None, Some(url)) => Some(Cow::Borrowed(url)),
        (None, None) => None,
    }
}
