//! Media of a request: parts that are sent natively and parts that become a note. Only types that Google documents are
//! sent, because one unsupported type fails the whole conversation.

use std::borrow::Cow;
use std::collections::BTreeSet;

use toolgate_core::chat::Part;

use super::part::WirePart;
use crate::attachment::{self, ImageFormat, Limits, Unfit, is_image};
use crate::http::MediaKind;

/// The inline limit of a request, and so of each piece in it.
const MAX_INLINE: usize = 20 << 20;
const LIMITS: Limits = Limits {
    images: &[ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP, ImageFormat::Heic, ImageFormat::Heif],
    max_image: MAX_INLINE,
    max_file: MAX_INLINE,
};

/// The kinds that are sent natively.
#[derive(Debug)]
pub(super) struct Media(BTreeSet<MediaKind>);

/// Data of a type that the API supports.
struct SupportedMedia<'a> {
    mime_type: &'static str,
    kind: MediaKind,
    data: Option<&'a str>,
    url: Option<&'a str>,
}

impl Media {
    /// These kinds, or all that the API supports.
    pub(super) fn new(kinds: Option<&BTreeSet<MediaKind>>) -> Self {
        let all = || [MediaKind::Images, MediaKind::Files, MediaKind::Audio].into();
        Self(kinds.cloned().unwrap_or_else(all))
    }

    /// The part as media if its kind is enabled and its data valid; else as text, at least as a note.
    pub(super) fn part<'a>(&self, part: &'a Part) -> Result<WirePart<'a>, Cow<'a, str>> {
        let known = self.known(part).map_err(|why| part_text(part, Some(why)))?;
        let SupportedMedia { mime_type, kind, data, url } = known.ok_or_else(|| note(part))?;
        match (data, url) {
            (Some(data), _) => Ok(WirePart::InlineData { mime_type, data }),
            // The API fetches documents and images by URL, but not audio.
            (None, Some(url)) if kind != MediaKind::Audio && url.starts_with("https://") => {
                Ok(WirePart::FileData { mime_type, file_uri: url })
            }
            (None, _) => Err(note(part)),
        }
    }

    /// The part as media within a function response, which accepts only images and PDF, and only inline.
    pub(super) fn within_response<'a>(&self, part: &'a Part) -> Option<WirePart<'a>> {
        let known = self.known(part).ok()??;
        let may_stand = matches!(known.mime_type, "image/png" | "image/jpeg" | "image/webp" | "application/pdf");
        let data = known.data.filter(|_| may_stand)?;
        Some(WirePart::InlineData { mime_type: known.mime_type, data })
    }

    fn known<'a>(&self, part: &'a Part) -> Result<Option<SupportedMedia<'a>>, Unfit> {
        let (media_type, data, url) = match part {
            Part::Image(media) | Part::Audio(media) => (&media.media_type, media.data.as_deref(), media.url.as_deref()),
            // The URI of a resource is valid only for its own server.
            Part::Resource { media_type: Some(media_type), data: Some(data), .. } => (media_type, Some(&**data), None),
            Part::Resource { .. }
            | Part::Text { .. }
            | Part::Reasoning { .. }
            | Part::ToolUse { .. }
            | Part::ToolResult { .. } => return Ok(None),
        };
        let is_image = matches!(part, Part::Image(_)) || is_image(media_type);
        if let Some(bytes) = data.filter(|_| is_image) {
            // The type of an image follows from its bytes, not from its claimed type.
            let known = |mime_type| SupportedMedia { mime_type, kind: MediaKind::Images, data, url };
            let is_sent = self.0.contains(&MediaKind::Images);
            return is_sent.then(|| LIMITS.image(bytes).map(known)).transpose();
        }
        let known = known_type(media_type).filter(|(_, kind)| self.0.contains(kind));
        let Some((mime_type, kind)) = known else { return Ok(None) };
        match (data, kind) {
            (Some(bytes), MediaKind::Files) => LIMITS.pdf(bytes)?,
            (Some(bytes), MediaKind::Audio) => LIMITS.recording(bytes)?,
            (Some(_), MediaKind::Images) | (None, _) => {}
        }
        Ok(Some(SupportedMedia { mime_type, kind, data, url }))
    }
}

/// A type that the API documents (ai.google.dev: "Image understanding", "Audio understanding", "Document
/// understanding"), under its name there.
fn known_type(media_type: &str) -> Option<(&'static str, MediaKind)> {
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    Some(match essence.as_str() {
        "image/png" => ("image/png", MediaKind::Images),
        "image/jpeg" | "image/jpg" => ("image/jpeg", MediaKind::Images),
        "image/webp" => ("image/webp", MediaKind::Images),
        "image/heic" => ("image/heic", MediaKind::Images),
        "image/heif" => ("image/heif", MediaKind::Images),
        "application/pdf" => ("application/pdf", MediaKind::Files),
        "audio/wav" | "audio/x-wav" | "audio/wave" => ("audio/wav", MediaKind::Audio),
        "audio/mp3" | "audio/mpeg" => ("audio/mp3", MediaKind::Audio),
        "audio/aiff" | "audio/x-aiff" => ("audio/aiff", MediaKind::Audio),
        "audio/aac" => ("audio/aac", MediaKind::Audio),
        "audio/ogg" => ("audio/ogg", MediaKind::Audio),
        "audio/flac" | "audio/x-flac" => ("audio/flac", MediaKind::Audio),
        _ => return None,
    })
}

/// Any part as text, at least as a note that it exists.
pub(super) fn note(part: &Part) -> Cow<'_, str> {
    part_text(part, None)
}

fn part_text(part: &Part, why: Option<Unfit>) -> Cow<'_, str> {
    attachment::part_text(part, why, |content, _| {
        let said: Vec<Cow<'_, str>> = content.iter().map(note).collect();
        Cow::Owned(format!("[result of a call]\n{}", said.join("\n")))
    })
}
