//! Reading of recording files.

use std::path::Path;

use super::error::TestError;
use crate::config;
use crate::lab::recording::{Format, Recording};

/// Reads a recording: YAML or JSON, or JSON lines by the extension `.jsonl`.
///
/// # Errors
/// `TestError::File` with the file, the line and the remedy; `TestError::Invalid` for a line of a JSON lines file.
pub fn read_recording(path: &Path) -> Result<Recording, TestError> {
    match Format::of_path(path) {
        Format::Yaml => Ok(config::read_data_file(path)?),
        Format::Jsonl => {
            let name = path.display();
            let unreadable = |error| TestError::invalid(format!("`{name}` cannot be read: {error}"));
            let text = std::fs::read_to_string(path).map_err(unreadable)?;
            Recording::from_jsonl(&text).map_err(|error| TestError::invalid(format!("{name}:{error}")))
        }
    }
}
