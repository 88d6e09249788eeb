//! One neutral message as the message that the API reads.
//!
//! All results stand at the beginning of one user message. A turn that this very model wrote is replayed as it wrote
//! it; any other is told in neutral form, without its reasoning. What the API cannot carry degrades to a note in
//! brackets, never to silence. It refuses blank text and empty messages, so none is sent: a message that says nothing is
//! a note that it does.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};

use super::names::{accepted_id, accepted_input, accepted_name};
use super::replay;
use crate::core::chat::{Media, Message, Part, Role};
use crate::core::id::CallId;
use crate::models::attachment::{self, ImageFormat, Limits, Unfit, is_image, is_pdf};
use crate::models::http::MediaKind;

const PDF: &str = "application/pdf";
/// The API measures the base64 of an image; a document has to leave room in a request of 32 MB. Some of the clouds that
/// serve the API take no image beyond 5 MiB, whatever Anthropic itself takes.
const LIMITS: Limits = Limits {
    images: &[ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP],
    max_image: 5 << 20,
    max_file: 30 << 20,
};
const MAX_TITLE_CHARS: usize = 500;

/// A message on the wire.
#[derive(Debug, Serialize)]
pub(super) struct WireMessage<'a> {
    role: Role,
    content: Vec<Block<'a>>,
}

/// A content block.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    /// Text that is not blank.
    Text { text: Cow<'a, str> },
    /// An image.
    Image { source: Source<'a> },
    /// A PDF or a text file.
    Document {
        source: Source<'a>,
        #[serde(skip_serializing_if = "String::is_empty")]
        title: String,
    },
    /// A call.
    ToolUse { id: Cow<'a, str>, name: Cow<'a, str>, input: Cow<'a, Map<String, Value>> },
    /// Its result.
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: Vec<Block<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    /// A block as the API wrote it.
    #[serde(untagged)]
    Raw(Cow<'a, Value>),
}

/// Where the bytes of a block are.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Source<'a> {
    /// Here.
    Base64 { media_type: &'a str, data: &'a str },
    /// Here, and they are text.
    Text { media_type: &'static str, data: &'a str },
    /// There.
    Url { url: &'a str },
}

/// Translates a message. `model` is the one that is asked, `media` what goes along as it is.
pub(super) fn translate<'a>(message: &'a Message, model: &str, media: &BTreeSet<MediaKind>) -> WireMessage<'a> {
    let parts = &message.content;
    let mut content = match message.role {
        Role::User => user(parts, media),
        Role::Assistant => replay::blocks(message, model).unwrap_or_else(|| assistant(parts)),
    };
    if content.is_empty() {
        content.push(Block::Text { text: "[empty message]".into() });
    }
    WireMessage { role: message.role, content }
}

fn user<'a>(parts: &'a [Part], media: &BTreeSet<MediaKind>) -> Vec<Block<'a>> {
    let (mut blocks, mut said) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Part::ToolResult { tool_use_id, content, is_error } => {
                blocks.push(result(tool_use_id, content, *is_error, media));
            }
            Part::Text { .. }
            | Part::Image(_)
            | Part::Audio(_)
            | Part::Resource { .. }
            | Part::Reasoning { .. }
            | Part::ToolUse { .. } => said.extend(block(part, media)),
        }
    }
    blocks.append(&mut said);
    blocks
}

/// The result of an error is text and there is some: the API takes no other.
fn result<'a>(id: &'a CallId, content: &'a [Part], is_error: bool, media: &BTreeSet<MediaKind>) -> Block<'a> {
    let mut blocks: Vec<Block<'_>> = if is_error {
        content.iter().filter_map(|part| text_block(as_text(part))).collect()
    } else {
        content.iter().filter_map(|part| block(part, media)).collect()
    };
    if is_error && blocks.is_empty() {
        blocks.push(Block::Text { text: "[error without a message]".into() });
    }
    Block::ToolResult { tool_use_id: accepted_id(id), content: blocks, is_error }
}

fn assistant<'a>(parts: &'a [Part]) -> Vec<Block<'a>> {
    let block = |part: &'a Part| match part {
        Part::ToolUse { id, name, input } => {
            Some(Block::ToolUse { id: accepted_id(id), name: accepted_name(name), input: accepted_input(input) })
        }
        Part::Reasoning { .. } => None,
        Part::Text { .. } | Part::Image(_) | Part::Audio(_) | Part::Resource { .. } | Part::ToolResult { .. } => {
            text_block(as_text(part))
        }
    };
    parts.iter().filter_map(block).collect()
}

/// A part as it is where it may go like that, else as text.
fn block<'a>(part: &'a Part, media: &BTreeSet<MediaKind>) -> Option<Block<'a>> {
    match native(part, media) {
        Ok(Some(block)) => Some(block),
        Ok(None) => text_block(as_text(part)),
        Err(why) => text_block(told(part, Some(why))),
    }
}

fn native<'a>(part: &'a Part, media: &BTreeSet<MediaKind>) -> Result<Option<Block<'a>>, Unfit> {
    let takes = |kind| media.contains(&kind);
    let (images, files) = (takes(MediaKind::Images), takes(MediaKind::Files));
    Ok(match part {
        Part::Image(image) if images => image_source(image)?.map(|source| Block::Image { source }),
        Part::Resource { uri, name, media_type, text, data } => {
            let title: String = name.as_ref().unwrap_or(uri).chars().take(MAX_TITLE_CHARS).collect();
            let document = |source| Some(Block::Document { source, title });
            match (text, data, media_type.as_deref()) {
                (Some(text), ..) if files && !is_blank(text) => {
                    document(Source::Text { media_type: "text/plain", data: text })
                }
                (None, Some(data), Some(media_type)) if files && is_pdf(media_type) => {
                    LIMITS.pdf(data)?;
                    document(Source::Base64 { media_type: PDF, data })
                }
                (None, Some(data), Some(media_type)) if images && is_image(media_type) => {
                    Some(Block::Image { source: Source::Base64 { media_type: LIMITS.image(data)?, data } })
                }
                (Some(_) | None, ..) => None,
            }
        }
        Part::Text { .. }
        | Part::Image(_)
        | Part::Audio(_)
        | Part::Reasoning { .. }
        | Part::ToolUse { .. }
        | Part::ToolResult { .. } => None,
    })
}

fn image_source(image: &Media) -> Result<Option<Source<'_>>, Unfit> {
    let Media { media_type: _, data, url } = image;
    Ok(match (data, url) {
        (Some(data), _) => Some(Source::Base64 { media_type: LIMITS.image(data)?, data }),
        (None, Some(url)) if url.starts_with("https://") => Some(Source::Url { url }),
        (None, Some(_) | None) => None,
    })
}

fn text_block(text: Cow<'_, str>) -> Option<Block<'_>> {
    (!is_blank(&text)).then_some(Block::Text { text })
}

/// Whether text is such that the API refuses it.
pub(super) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// Any part as text, if only as a note that it is there.
fn as_text(part: &Part) -> Cow<'_, str> {
    told(part, None)
}

fn told(part: &Part, why: Option<Unfit>) -> Cow<'_, str> {
    attachment::told(part, why, |content, _| Cow::Owned(content.iter().map(as_text).collect::<Vec<_>>().join("\n")))
}
