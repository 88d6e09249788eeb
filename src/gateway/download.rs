//! Downloads of bytes from outside: of models, tools and callers. A browser must not run them in the name of this server.

use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};
use toolgate_core::blob::Blob;
use toolgate_core::chat::Media;
use utoipa::ToSchema;

use super::state::escaped;

/// The bytes of a file.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[allow(dead_code)] // this describes what `download` sends
pub(super) struct FileBytes(Vec<u8>);

/// The bytes under this media type, to be saved under this name.
pub(super) fn download(media_type: &str, name: Option<&str>, blob: Blob) -> Response {
    let unnamed = HeaderValue::from_static("attachment");
    let disposition = name.and_then(|name| HeaderValue::from_str(&attachment(name)).ok());
    let unknown = HeaderValue::from_static(Media::UNKNOWN_TYPE);
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_str(media_type).unwrap_or(unknown)),
        (CONTENT_DISPOSITION, disposition.unwrap_or(unnamed)),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox")),
    ];
    (headers, blob.into_bytes()).into_response()
}

/// `Content-Disposition` with a name (RFC 6266): in ASCII for old clients, and whole, as RFC 8187 escapes it.
fn attachment(name: &str) -> String {
    let plain = |letter| matches!(letter, ' '..='~') && !['"', '\\', '%'].contains(&letter);
    let ascii: String = name.chars().map(|letter| if plain(letter) { letter } else { '_' }).collect();
    format!("attachment; filename=\"{ascii}\"; filename*=UTF-8''{}", escaped(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_download_has_the_name_of_its_file_in_both_forms() {
        assert_eq!(attachment("a b.pdf"), "attachment; filename=\"a b.pdf\"; filename*=UTF-8''a%20b.pdf");
        let hostile = attachment("é\"\\;%41\r\n.md");
        assert_eq!(hostile, "attachment; filename=\"___;_41__.md\"; filename*=UTF-8''%C3%A9%22%5C%3B%2541%0D%0A.md");
    }
}
