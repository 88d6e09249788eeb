//! The API view of an uploaded file.

use jiff::Timestamp;
use serde::Serialize;
use toolgate_core::json::hex;
use toolgate_core::timestamp::millis;
use toolgate_ports::StoredFile;
use utoipa::ToSchema;

/// An uploaded file.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = File)]
pub(super) struct FileView {
    /// The file's id, for `file_id` in the input of a run.
    #[schema(example = "file_0199f3a07c1e7d0a8f3c9b1d2e4f5a6b")]
    id: String,
    /// Always `file`.
    object: &'static str,
    /// The name of the file, without a path.
    #[schema(example = "report.pdf")]
    name: String,
    /// The media type, from the first bytes of the file.
    #[schema(example = "application/pdf")]
    media_type: String,
    /// The number of bytes.
    bytes: u64,
    /// The SHA-256 of the bytes: 64 hex digits.
    sha256: String,
    /// The principal of the credentials that uploaded the file.
    principal: Option<String>,
    /// When the file was uploaded.
    #[serde(serialize_with = "millis")]
    created_at: Timestamp,
    /// The caller who uploaded it.
    created_by: String,
    /// When the file expires. Runs that were started with it keep its bytes.
    #[serde(serialize_with = "millis")]
    expires_at: Timestamp,
}

impl FileView {
    pub(super) fn new(file: StoredFile) -> Self {
        Self {
            id: file.id.to_string(),
            object: "file",
            name: file.name,
            media_type: file.media_type,
            bytes: file.size,
            sha256: hex(file.handle.digest()),
            principal: file.principal.map(|principal| principal.to_string()),
            created_at: file.created_at,
            created_by: file.created_by,
            expires_at: file.expires_at,
        }
    }
}
