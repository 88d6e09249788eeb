//! Text of a recording: YAML for people, or JSON lines (the header, one line for each turn, the end) for programs.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::file::Recording;
use crate::yaml;

/// The first lines of a YAML file.
const HEADING: &str =
    "# A recorded run. Matchers such as `{ $any: true }` and the key `ignore` allow differences in a replay.\n";

/// The form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Yaml,
    Jsonl,
}

/// A line of a JSON lines file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct JsonlError {
    /// The line, from 1.
    pub line: usize,
    /// The cause in words.
    pub reason: String,
}

impl Format {
    /// The form that a file's extension selects: `.jsonl` and `.ndjson` are JSON lines, every other name is YAML.
    pub fn of_path(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("jsonl" | "ndjson") => Self::Jsonl,
            Some(_) | None => Self::Yaml,
        }
    }
}

impl Recording {
    /// The text of a file. Equal recordings have equal texts.
    ///
    /// # Errors
    /// A recording that has no JSON form, which would be a bug.
    pub fn to_text(&self, format: Format) -> serde_json::Result<String> {
        let members: Map<String, Value> = serde_json::from_value(serde_json::to_value(self)?)?;
        Ok(match format {
            Format::Yaml => HEADING.to_owned() + &yaml::write(&members),
            Format::Jsonl => jsonl(members),
        })
    }

    /// Reads JSON lines.
    ///
    /// # Errors
    /// `JsonlError` with the first line that cannot be read, and the reason.
    pub fn from_jsonl(text: &str) -> Result<Self, JsonlError> {
        let (mut members, mut turns, mut last) = (Map::new(), Vec::new(), 1);
        for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
            last = number;
            let failed = |reason: String| JsonlError { line: number, reason };
            let value: Value =
                serde_json::from_str(line).map_err(|error| failed(format!("it is not JSON: {error}")))?;
            let Value::Object(mut object) = value else { return Err(failed("it is not a JSON object".into())) };
            match object.remove("turn") {
                Some(turn) => {
                    serde_json::from_value::<super::file::RecordedTurn>(turn.clone())
                        .map_err(|error| failed(error.to_string()))?;
                    turns.push(turn);
                }
                None => members.extend(object),
            }
        }
        members.insert("turns".to_owned(), turns.into());
        serde_json::from_value(Value::Object(members))
            .map_err(|error| JsonlError { line: last, reason: error.to_string() })
    }
}

fn jsonl(mut members: Map<String, Value>) -> String {
    let turns = members.shift_remove("turns").unwrap_or_default();
    let end = members.shift_remove("end").unwrap_or_default();
    let turns = turns.as_array().cloned().unwrap_or_default().into_iter().map(|turn| json!({"turn": turn}));
    let lines = [Value::Object(members)].into_iter().chain(turns).chain([json!({"end": end})]);
    lines.map(|line| format!("{line}\n")).collect()
}
