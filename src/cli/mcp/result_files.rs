//! Tool result as files: one file for each medium, or else one file with the structured content or text.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cli::error::CliError;
use crate::core::chat::{Media, Part};
use crate::core::tool::ToolOutput;

/// Writes the result and returns the paths.
pub(super) fn save(output: &ToolOutput, path: &Path) -> Result<Vec<PathBuf>, CliError> {
    let contents = contents(output);
    let mut written = Vec::new();
    for (index, bytes) in contents.iter().enumerate() {
        let path = numbered(path, index);
        fs::write(&path, bytes).map_err(|error| CliError::file("cannot write", &path, &error))?;
        written.push(path);
    }
    Ok(written)
}

fn contents(output: &ToolOutput) -> Vec<Vec<u8>> {
    let media: Vec<Vec<u8>> = output.content.iter().filter_map(bytes).collect();
    if !media.is_empty() {
        return media;
    }
    let structured = output.structured.as_ref().and_then(|value| serde_json::to_string_pretty(value).ok());
    vec![structured.map_or_else(|| output.joined_text(), |json| json + "\n").into_bytes()]
}

/// The bytes of inline media.
fn bytes(part: &Part) -> Option<Vec<u8>> {
    let data = match part {
        Part::Image(media) | Part::Audio(media) => media.data.as_ref(),
        Part::Resource { data, .. } => data.as_ref(),
        Part::Text { .. } | Part::Reasoning { .. } | Part::ToolUse { .. } | Part::ToolResult { .. } => None,
    };
    data.and_then(|data| Media::decode(data))
}

/// `out.png`, `out-2.png`, and so on.
fn numbered(path: &Path, index: usize) -> PathBuf {
    if index == 0 {
        return path.to_owned();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map(|extension| format!(".{}", extension.to_string_lossy())).unwrap_or_default();
    path.with_file_name(format!("{stem}-{}{extension}", index + 1))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tempfile::TempDir;

    use super::*;

    fn saved(output: &ToolOutput) -> Vec<(String, String)> {
        let folder = TempDir::new().unwrap();
        let paths = save(output, &folder.path().join("out.bin")).unwrap();
        let read = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, String::from_utf8(fs::read(path).unwrap()).unwrap())
        };
        paths.iter().map(read).collect()
    }

    #[test]
    fn every_medium_has_a_file_of_its_own() {
        let image = |data: &str| Part::Image(Media::inline("image/png", data.as_bytes()));
        let output = ToolOutput { content: vec![image("one"), Part::text("x"), image("two")], ..ToolOutput::default() };
        assert_eq!(saved(&output), [("out.bin".into(), "one".into()), ("out-2.bin".into(), "two".into())]);
    }

    #[test]
    fn a_result_without_media_is_saved_as_json_or_text() {
        assert_eq!(saved(&ToolOutput::text("said")), [("out.bin".into(), "said".into())]);
        let structured = ToolOutput { structured: Some(json!({"a": 1})), ..ToolOutput::text("said") };
        assert_eq!(saved(&structured), [("out.bin".into(), "{\n  \"a\": 1\n}\n".into())]);
    }
}
