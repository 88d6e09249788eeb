//! Types of files that models read: images, audio, PDF and text. The first bytes determine the type; of a text, the name
//! determines the kind.

use super::{ImageFormat, Media, Part};

/// The type of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileType {
    Image(ImageFormat),
    /// Audio of this media type.
    Audio(&'static str),
    Pdf,
    /// A UTF-8 text of this media type.
    Text(&'static str),
}

impl FileType {
    /// The types in words, for the error about another one.
    pub const KNOWN: &str = "an image (PNG, JPEG, GIF, WebP, HEIC), audio (WAV, MP3, FLAC, Ogg), a PDF or a UTF-8 text";

    const PDF: &str = "application/pdf";

    /// The type of a file; `None` if no model reads such a file.
    pub fn detect(name: &str, bytes: &[u8]) -> Option<Self> {
        if let Some(format) = ImageFormat::detect(bytes) {
            return Some(Self::Image(format));
        }
        if let Some(media_type) = audio_type(bytes) {
            return Some(Self::Audio(media_type));
        }
        if bytes.starts_with(b"%PDF-") {
            return Some(Self::Pdf);
        }
        // Text never contains NUL, and many binary files without NUL are not valid UTF-8.
        let is_text = !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok();
        is_text.then(|| Self::Text(text_type(name)))
    }

    /// Its media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Image(format) => format.media_type(),
            Self::Audio(media_type) | Self::Text(media_type) => media_type,
            Self::Pdf => Self::PDF,
        }
    }

    /// The file as a part of a message, with its content in it.
    pub fn inline(self, name: &str, bytes: Vec<u8>) -> Part {
        let media = |bytes| Media::inline(self.media_type(), bytes);
        let (text, data) = match self {
            Self::Image(_) => return Part::Image(media(&bytes)),
            Self::Audio(_) => return Part::Audio(media(&bytes)),
            Self::Pdf => (None, media(&bytes).data),
            Self::Text(_) => (Some(String::from_utf8_lossy(&bytes).into_owned()), None),
        };
        Part::Resource {
            uri: name.to_owned(),
            name: Some(name.to_owned()),
            media_type: Some(self.media_type().to_owned()),
            text,
            data,
        }
    }
}

/// The media type of audio, from its first bytes.
fn audio_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => Some("audio/wav"),
        // A tag, or the first frame of layer III.
        [b'I', b'D', b'3', 2..=4, ..] | [0xff, 0xfa | 0xfb | 0xf2 | 0xf3 | 0xe2 | 0xe3, ..] => Some("audio/mpeg"),
        [b'f', b'L', b'a', b'C', ..] => Some("audio/flac"),
        [b'O', b'g', b'g', b'S', 0, ..] => Some("audio/ogg"),
        _ => None,
    }
}

/// The media type of a text, from the extension of its name.
fn text_type(name: &str) -> &'static str {
    let (_, extension) = name.rsplit_once('.').unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "md" | "markdown" => "text/markdown",
        "csv" => "text/csv",
        "html" | "htm" => "text/html",
        "json" => "application/json",
        "yaml" | "yml" => "application/yaml",
        "xml" => "application/xml",
        _ => "text/plain",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn media_type(bytes: &[u8]) -> Option<&'static str> {
        FileType::detect("picture.txt", bytes).map(FileType::media_type)
    }

    #[test]
    fn the_first_bytes_determine_the_type_under_any_name() {
        for (bytes, expected) in [
            (&b"\x89PNG\r\n\x1a\nrest"[..], "image/png"),
            (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
            (b"GIF87arest", "image/gif"),
            (b"GIF89arest", "image/gif"),
            (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
            (b"\0\0\0\x18ftypheic\0\0\0\0", "image/heic"),
            (b"\0\0\0\x18ftypmif1\0\0\0\0", "image/heif"),
            (b"RIFF\x10\0\0\0WAVEfmt ", "audio/wav"),
            (b"ID3\x04\0\0", "audio/mpeg"),
            (b"\xff\xfb\x90\0", "audio/mpeg"),
            (b"fLaC\0", "audio/flac"),
            (b"OggS\0\x02", "audio/ogg"),
            (b"%PDF-1.7\n\xff\0", "application/pdf"),
            (b"caf\xc3\xa9", "text/plain"),
            // A file of two types has the type of its first bytes.
            (b"GIF89a;<script>alert(1)</script>", "image/gif"),
            (b"%PDF-1.7 <html><script>alert(1)</script></html>", "application/pdf"),
        ] {
            assert_eq!(media_type(bytes), Some(expected), "{bytes:?}");
        }
        for bytes in [
            &b"\x00\x01\x02"[..],
            b"caf\xe9",
            b"PK\x03\x04\0\0",
            b"RIFF\x10\0\0\0AVI ",
            b"text\0",
            b"\xff\xfe\x61\0",
            b"\x7fELF\0",
        ] {
            assert_eq!(media_type(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn a_text_stays_text_and_its_extension_names_the_type() {
        let file_type = FileType::detect("Notes.MD", b"# H\xc3\xa9").unwrap();
        let Part::Resource { uri, media_type, text, data, .. } = file_type.inline("Notes.MD", b"# H\xc3\xa9".to_vec())
        else {
            panic!("no resource")
        };
        assert_eq!((uri.as_str(), media_type.as_deref()), ("Notes.MD", Some("text/markdown")));
        assert_eq!((text.as_deref(), data), (Some("# Hé"), None));
        assert_eq!(text_type("Makefile"), "text/plain");
        assert_eq!(text_type("a.tar.json"), "application/json");
    }

    #[test]
    fn a_pdf_is_inline_as_bytes() {
        let Part::Resource { media_type, text, data, .. } = FileType::Pdf.inline("a.txt", b"%PDF-1.7\n\xff".to_vec())
        else {
            panic!("no resource")
        };
        assert_eq!((media_type.as_deref(), text), (Some("application/pdf"), None));
        assert_eq!(Media::decode(&data.unwrap()).unwrap(), b"%PDF-1.7\n\xff");
    }
}
