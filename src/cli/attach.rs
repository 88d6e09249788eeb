//! Attachments of a message: files of the types that models read ([`FileType`]).

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::error::CliError;
use crate::core::chat::{FileType, Media, Part};

/// The size limit of an attachment, in bytes. An attachment becomes part of the message, and so of the journal.
const LARGEST: u64 = Media::MAX_CONVERSATION_BYTES;

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
    let file_type = FileType::detect(&name, &bytes);
    let file_type = file_type.ok_or_else(|| refused(&format!("it is none of these: {}", FileType::KNOWN)))?;
    Ok(file_type.inline(&name, bytes))
}
