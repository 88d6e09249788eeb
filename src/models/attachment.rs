//! Attachment validation: checks bytes before they go to a provider. Tools and callers send arbitrary bytes under any
//! type, and a provider that cannot read one image rejects the whole conversation from then on. So bytes are sent only
//! if they are valid base64, have the claimed format and are within the size limit. Otherwise a note replaces them and
//! states the reason.

use std::borrow::Cow;
use std::fmt;

pub(super) use toolgate_core::chat::ImageFormat;
use toolgate_core::chat::{Media, Part};

/// The base64 of as many bytes as a format signature needs.
const HEAD_CHARS: usize = 24;

/// The limits of a provider. Sizes are those of the base64.
#[derive(Debug)]
pub(super) struct Limits {
    /// The image formats it can read.
    pub(super) images: &'static [ImageFormat],
    /// The largest image.
    pub(super) max_image: usize,
    /// The largest document or recording.
    pub(super) max_file: usize,
}

/// Why bytes are not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    /// The data is not valid, padded base64.
    NotBase64,
    /// The base64 is larger than this limit.
    TooLarge(usize),
    /// The bytes have none of these image formats.
    NoImage(&'static [ImageFormat]),
    /// The bytes are not a PDF.
    NoPdf,
}

impl Limits {
    /// The media type of an image, according to its bytes.
    pub(super) fn image(&self, data: &str) -> Result<&'static str, Unfit> {
        let head = head(data, self.max_image)?;
        let format = ImageFormat::detect(&head).filter(|format| self.images.contains(format));
        format.map(ImageFormat::media_type).ok_or(Unfit::NoImage(self.images))
    }

    /// Checks that this is a PDF.
    pub(super) fn pdf(&self, data: &str) -> Result<(), Unfit> {
        if head(data, self.max_file)?.starts_with(b"%PDF") { Ok(()) } else { Err(Unfit::NoPdf) }
    }

    /// Checks that this may be a recording.
    pub(super) fn recording(&self, data: &str) -> Result<(), Unfit> {
        head(data, self.max_file).map(drop)
    }
}

/// The first bytes of valid base64 text.
fn head(data: &str, max: usize) -> Result<Vec<u8>, Unfit> {
    if data.len() > max {
        return Err(Unfit::TooLarge(max));
    }
    let head = data.get(..data.len().min(HEAD_CHARS)).filter(|_| is_base64(data));
    head.and_then(Media::decode).ok_or(Unfit::NotBase64)
}

fn is_base64(data: &str) -> bool {
    let digits = data.strip_suffix("==").or_else(|| data.strip_suffix('=')).unwrap_or(data);
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !digits.is_empty() && data.len().is_multiple_of(4) && digits.bytes().all(is_digit)
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBase64 => f.write_str("its data is not base64"),
            Self::TooLarge(max) => write!(f, "it has more than {} MiB of base64", max >> 20),
            Self::NoImage(formats) => {
                let names: Vec<&str> = formats.iter().map(|format| format.name()).collect();
                write!(f, "its bytes are none of {}", names.join(", "))
            }
            Self::NoPdf => f.write_str("its bytes are not a PDF"),
        }
    }
}

/// Whether the media type claims an image.
pub(super) fn is_image(media_type: &str) -> bool {
    media_type.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("image/"))
}

/// Whether the media type claims a PDF.
pub(super) fn is_pdf(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or(media_type);
    essence.trim().eq_ignore_ascii_case("application/pdf")
}

/// Any part as text: its text, or a note that it exists with the reason why its content is missing. The wire formats
/// results itself.
pub(super) fn part_text<'a>(
    part: &'a Part,
    why: Option<Unfit>,
    of_result: impl Fn(&'a [Part], bool) -> Cow<'a, str>,
) -> Cow<'a, str> {
    match part {
        Part::Text { text } | Part::Reasoning { text } => Cow::Borrowed(text),
        Part::Image(media) => Cow::Owned(media_note("image", media, why)),
        Part::Audio(media) => Cow::Owned(media_note("audio", media, why)),
        Part::Resource { uri, text: Some(text), .. } => Cow::Owned(format!("[resource {uri}]\n{text}")),
        Part::Resource { uri, media_type, .. } => Cow::Owned(resource_note(uri, media_type.as_deref(), why)),
        Part::ToolUse { name, .. } => Cow::Owned(format!("[call of {name}]")),
        Part::ToolResult { content, is_error, .. } => of_result(content, *is_error),
    }
}

/// The note for media that is not shown; `kind` is its name in the note.
fn media_note(kind: &str, media: &Media, why: Option<Unfit>) -> String {
    let Media { media_type, url, .. } = media;
    let (place, why) = (url.as_ref().map(|url| format!(" at {url}")).unwrap_or_default(), because(why));
    format!("[{kind} {media_type}{place}, not shown here{why}]")
}

/// The note for a resource whose content is not shown.
fn resource_note(uri: &str, media_type: Option<&str>, why: Option<Unfit>) -> String {
    let (media_type, why) = (media_type.unwrap_or("unknown type"), because(why));
    format!("[resource {uri} ({media_type}), its content is not shown here{why}]")
}

fn because(why: Option<Unfit>) -> String {
    why.map(|why| format!(": {why}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        images: &[ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP],
        max_image: 1 << 20,
        max_file: 2 << 20,
    };

    fn base64(bytes: &[u8]) -> String {
        Media::inline("", bytes).data.unwrap()
    }

    #[test]
    fn an_image_format_follows_from_its_first_bytes() {
        for (bytes, expected) in [
            (&b"\x89PNG\r\n\x1a\nmore and more and more"[..], "image/png"),
            (b"\xff\xd8\xff\xe0", "image/jpeg"),
            (b"GIF87a", "image/gif"),
            (b"GIF89a....", "image/gif"),
            (b"RIFF\x01\x02\x03\x04WEBPVP8 ", "image/webp"),
        ] {
            assert_eq!(LIMITS.image(&base64(bytes)), Ok(expected));
        }
        let apple = Limits { images: &[ImageFormat::Heic, ImageFormat::Heif], ..LIMITS };
        assert_eq!(apple.image(&base64(b"\0\0\0\x18ftypheic\0\0\0\0")), Ok("image/heic"));
        assert_eq!(apple.image(&base64(b"\0\0\0\x18ftypmif1\0\0\0\0")), Ok("image/heif"));
        for bytes in [&b"<svg xmlns=''/>"[..], b"\x89PNG", b"RIFF\x01\x02\x03\x04WAVE", b"\0\0\0\x18ftypheic"] {
            assert_eq!(LIMITS.image(&base64(bytes)), Err(Unfit::NoImage(LIMITS.images)));
        }
    }

    #[test]
    fn text_that_is_not_valid_base64_is_not_an_image() {
        let png = base64(b"\x89PNG\r\n\x1a\nmore and more and more");
        let tail = |tail: &str| format!("{png}{tail}");
        for data in [
            "",
            "=",
            "====",
            "é",
            &tail("<=="),
            &tail("A"),
            &tail("AA\nA"),
            &tail("AA-_"),
            &tail("A==="),
            &tail("==AA"),
        ] {
            assert_eq!(LIMITS.image(data), Err(Unfit::NotBase64), "{data}");
        }
    }

    #[test]
    fn a_document_is_a_pdf_within_the_size_limit() {
        assert_eq!(LIMITS.pdf(&base64(b"%PDF-1.7")), Ok(()));
        assert_eq!(LIMITS.pdf(&base64(b"<html>")), Err(Unfit::NoPdf));
        assert_eq!(LIMITS.pdf("%PDF"), Err(Unfit::NotBase64));
        let image = |size: usize| LIMITS.image(&format!("iVBORw0KGgo{}", "A".repeat(size - 11)));
        assert_eq!((image(1 << 20), image((1 << 20) + 4)), (Ok("image/png"), Err(Unfit::TooLarge(1 << 20))));
        assert_eq!(LIMITS.recording(&"A".repeat((2 << 20) + 4)), Err(Unfit::TooLarge(2 << 20)));
    }

    #[test]
    fn a_note_states_the_reason() {
        let media = Media { media_type: "image/svg+xml".into(), data: Some(String::new()), url: None };
        let why = LIMITS.image(&base64(b"<svg/>")).unwrap_err();
        let note = "[image image/svg+xml, not shown here: its bytes are none of PNG, JPEG, GIF, WebP]";
        assert_eq!(media_note("image", &media, Some(why)), note);
        let note = "[resource a:b (unknown type), its content is not shown here: it has more than 5 MiB of base64]";
        assert_eq!(resource_note("a:b", None, Some(Unfit::TooLarge(5 << 20))), note);
    }
}
