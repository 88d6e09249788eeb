//! JSON for columns that must be read back.

use std::fmt::Display;

use serde::Serialize;
use toolgate_ports::StoreError;

/// Serializes a value. Rejects a value that could not be read back; `what` names it in the error.
pub(super) fn to_json(what: impl Display, value: &impl Serialize) -> Result<String, StoreError> {
    let json = serde_json::to_string(value)
        .map_err(|error| StoreError::Corrupt(format!("{what} cannot be serialized: {error}")))?;
    match can_be_read(&json) {
        true => Ok(json),
        false => Err(StoreError::Corrupt(format!("{what} is nested too deeply to be read back"))),
    }
}

/// Whether a JSON parser accepts the nesting depth. Parsers limit the depth, serializers do not.
fn can_be_read(json: &str) -> bool {
    const LIMIT: usize = 127;
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > LIMIT {
            return false;
        }
    }
    true
}
