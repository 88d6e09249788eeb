//! Attachments of a message: images, PDF and text files. The first bytes determine the file type; the file name
//! determines the text type.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::error::CliError;
use crate::core::chat::{Media, Part};

/// The size limit of an attachment, in bytes. An attachment becomes part of the message, and so of the journal.
const LARGEST: u64 = 20 * 1024 * 1024;

/// Reads a file as a part of a message.
pub(super) fn attach(file: &Path) -> Result<Part, CliError> {
    let refused = |why: &str| CliError::usage(format!("`{}` cannot be attached: {why}", file.display()));
    let mut bytes = Vec::new();
    let opened = File::open(file).and_then(|opened| opened.take(LARGEST + 1).read_to_end(&mut bytes));
    opened.map_err(|error| CliError::file("cannot attach", file, &error))?;
    if bytes.len() as u64 > LARGEST {
        return Err(refused(&format!("it is larger than {} MiB", LARGEST / (1024 * 1024))));
    }
    if bytes.is_empty() {
        return Err(refused("it is empty"));
    }
    let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
    part(&name, bytes)
        .ok_or_else(|| refused("it is neither an image (PNG, JPEG, GIF, WebP), nor a PDF, nor text in UTF-8"))
}

fn part(name: &str, bytes: Vec<u8>) -> Option<Part> {
    if let Some(media_type) = image_type(&bytes) {
        return Some(Part::Image(Media::inline(media_type, &bytes)));
    }
    let resource = |media_type: &str, text, data| Part::Resource {
        uri: name.to_owned(),
        name: Some(name.to_owned()),
        media_type: Some(media_type.to_owned()),
        text,
        data,
    };
    if bytes.starts_with(b"%PDF-") {
        let media_type = "application/pdf";
        return Some(resource(media_type, None, Media::inline(media_type, &bytes).data));
    }
    // Text never contains NUL, and many binary files without NUL are not valid UTF-8.
    let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))?;
    Some(resource(text_type(name), Some(text), None))
}

/// The first bytes of each image type.
const SIGNATURES: [(&[u8], &str); 4] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
];

/// The media type of an image, from its first bytes.
fn image_type(bytes: &[u8]) -> Option<&'static str> {
    let signature = SIGNATURES.iter().find(|(signature, _)| bytes.starts_with(signature));
    // The file size is between the two words.
    let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    signature.map(|(_, media_type)| *media_type).or(is_webp.then_some("image/webp"))
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

    fn image(bytes: &[u8]) -> Option<String> {
        match part("picture", bytes.to_vec()) {
            Some(Part::Image(media)) => Some(media.media_type),
            _ => None,
        }
    }

    #[test]
    fn an_image_is_detected_by_its_first_bytes_under_any_name() {
        assert_eq!(image(b"\x89PNG\r\n\x1a\nrest").as_deref(), Some("image/png"));
        assert_eq!(image(b"\xff\xd8\xff\xe0rest").as_deref(), Some("image/jpeg"));
        assert_eq!(image(b"GIF89arest").as_deref(), Some("image/gif"));
        assert_eq!(image(b"RIFF\x10\0\0\0WEBPVP8 ").as_deref(), Some("image/webp"));
        assert_eq!(image(b"RIFF\x10\0\0\0WAVEfmt "), None);
    }

    #[test]
    fn a_text_stays_text_and_its_extension_names_the_type() {
        let Some(Part::Resource { uri, media_type, text, data, .. }) = part("Notes.MD", b"# H\xc3\xa9".to_vec()) else {
            panic!("no resource")
        };
        assert_eq!((uri.as_str(), media_type.as_deref()), ("Notes.MD", Some("text/markdown")));
        assert_eq!((text.as_deref(), data), (Some("# Hé"), None));
        assert_eq!(text_type("Makefile"), "text/plain");
        assert_eq!(text_type("a.tar.json"), "application/json");
    }

    #[test]
    fn a_pdf_is_attached_as_bytes() {
        let Some(Part::Resource { media_type, text, data, .. }) = part("a.txt", b"%PDF-1.7\n\xff".to_vec()) else {
            panic!("no resource")
        };
        assert_eq!((media_type.as_deref(), text), (Some("application/pdf"), None));
        assert_eq!(Media::decode(&data.unwrap()).unwrap(), b"%PDF-1.7\n\xff");
    }

    #[test]
    fn an_unsupported_file_is_rejected() {
        assert_eq!(part("a.bin", b"\x00\x01\x02".to_vec()), None);
        assert_eq!(part("a.txt", b"caf\xe9".to_vec()), None);
    }
}
