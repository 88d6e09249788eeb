//! Message translation: one neutral message in the form of the API.
//!
//! All results are at the start of one user message. A turn of the same model is replayed unchanged; any other turn is
//! sent in neutral form, without its reasoning. Content that the API cannot carry becomes a note in brackets and is
//! never dropped silently. The API rejects blank text and empty messages, so an empty message becomes a note.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Serialize;
use toolgate_core::chat::{Media, Message, Part, Role};
use toolgate_core::id::CallId;

use super::content_block::{Block, Source, is_blank};
use super::names::{accepted_id, accepted_input, accepted_name};
use super::replay;
use crate::attachment::{self, ImageFormat, Limits, Unfit, is_image, is_pdf};
use crate::http::MediaKind;

const PDF: &str = "application/pdf";
/// The API measures the base64 of an image; a document must leave room in a request of 32 MB. Some clouds that serve
/// the API reject images beyond 5 MiB, even where Anthropic itself accepts them.
const LIMITS: Limits = Limits {
    images: &[ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP],
    max_image: 5 << 20,
    max_file: 30 << 20,
};
const MAX_TITLE_CHARS: usize = 500;

/// A message in the API's form.
#[derive(Debug, Serialize)]
pub(super) struct WireMessage<'a> {
    role: Role,
    content: Vec<Block<'a>>,
}

/// Translates a message. `model` is the model to call; `media` lists the kinds sent natively.
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
        match part.tool_result() {
            Some((id, content, is_error)) => blocks.push(result(id, content, is_error, media)),
            None => said.extend(block(part, media)),
        }
    }
    blocks.append(&mut said);
    blocks
}

/// The result of a call. The API accepts only non-empty text as an error.
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

/// A part in its native form if the API accepts it, else as text.
fn block<'a>(part: &'a Part, media: &BTreeSet<MediaKind>) -> Option<Block<'a>> {
    match native(part, media) {
        Ok(Some(block)) => Some(block),
        Ok(None) => text_block(as_text(part)),
        Err(why) => text_block(part_text(part, Some(why))),
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

/// Any part as text, at least as a note that it exists.
fn as_text(part: &Part) -> Cow<'_, str> {
    part_text(part, None)
}

fn part_text(part: &Part, why: Option<Unfit>) -> Cow<'_, str> {
    attachment::part_text(part, why, |content, _| {
        Cow::Owned(content.iter().map(as_text).collect::<Vec<_>>().join("\n"))
    })
}
