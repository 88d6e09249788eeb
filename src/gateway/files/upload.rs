//! Upload form: `multipart/form-data` (RFC 7578) with a file, and how long to store it.

use std::time::Duration;

use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{FromRequest, Multipart, Request};
use axum::http::StatusCode;
use toolgate_core::error::ErrorCode;
use toolgate_service::NewFile;
use utoipa::ToSchema;

use crate::problem::Problem;

/// The name of a file that the form does not name.
const UNNAMED: &str = "file";

/// The most characters of a part's name that an error quotes.
const QUOTED_CHARS: usize = 64;

/// A file to upload.
#[derive(ToSchema)]
#[schema(as = NewFile)]
#[allow(dead_code)] // `UploadForm` reads it; this describes what it reads
pub(super) struct NewFileView {
    /// The file. The filename of the part becomes its name.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
    /// How long the file is stored, in seconds, at most as long as the server stores files (`gateway.files`). Default: that
    /// long.
    #[schema(minimum = 1, required = false)]
    expires_in_s: u64,
}

/// The form, read from a body that has arrived whole.
pub(super) struct UploadForm(pub(super) NewFile);

impl<S: Send + Sync> FromRequest<S> for UploadForm {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let mut form = Multipart::from_request(request, state).await.map_err(|_| {
            let detail = "send the file as `multipart/form-data` with a boundary, in a part named `file`";
            Problem::new(ErrorCode::UnsupportedMediaType, detail)
        })?;
        let (mut file, mut expires_in) = (None, None);
        while let Some(field) = form.next_field().await.map_err(unreadable)? {
            let name: String = field.name().unwrap_or_default().chars().take(QUOTED_CHARS).collect();
            let pointer = format!("/{name}");
            let is_repeated = match name.as_str() {
                "file" => file.replace(read_file(field).await?).is_some(),
                "expires_in_s" => expires_in.replace(read_seconds(field, &pointer).await?).is_some(),
                _ => {
                    let detail = format!("unknown part `{name}`, expected `file` or `expires_in_s`");
                    return Err(Problem::field(pointer, detail));
                }
            };
            if is_repeated {
                return Err(Problem::field(
                    pointer,
                    format!("the part `{name}` appears twice; upload one file a request"),
                ));
            }
        }
        let (name, bytes) = file.ok_or_else(|| Problem::field("/file", "missing part `file`"))?;
        Ok(Self(NewFile { name, bytes, expires_in }))
    }
}

/// The name and the bytes of a file.
async fn read_file(field: Field<'_>) -> Result<(String, Vec<u8>), Problem> {
    let name = field.file_name().unwrap_or(UNNAMED).to_owned();
    Ok((name, Vec::from(field.bytes().await.map_err(unreadable)?)))
}

async fn read_seconds(field: Field<'_>, pointer: &str) -> Result<Duration, Problem> {
    let text = field.text().await.map_err(unreadable)?;
    let seconds = text.trim().parse().map_err(|_| Problem::field(pointer, "this is not a number of seconds"))?;
    Ok(Duration::from_secs(seconds))
}

fn unreadable(error: MultipartError) -> Problem {
    match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            Problem::new(ErrorCode::PayloadTooLarge, "the body is larger than this server accepts")
        }
        _ => Problem::field("", format!("the form cannot be read: {}", error.body_text())),
    }
}
