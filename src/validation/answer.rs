//! Answer parser: reads the JSON of a final answer.

use serde_json::Value;
use toolgate_core::json::{MAX_DEPTH, is_deeper_than};

use super::problems::shortened;

/// The JSON of an answer. A code fence around the whole answer is removed, because models add it by habit. JSON within
/// prose is rejected: to extract it would be a guess.
pub(super) fn parse(answer: &str) -> Result<Value, String> {
    let text = answer.trim();
    let body = fenced(text).unwrap_or(text);
    let value = serde_json::from_str(body).map_err(|error| complaint(text, &error))?;
    match is_deeper_than(&value, MAX_DEPTH) {
        true => Err(format!("the answer is nested deeper than {MAX_DEPTH} levels; make it flatter")),
        false => Ok(value),
    }
}

fn complaint(text: &str, error: &serde_json::Error) -> String {
    if text.is_empty() {
        return "the answer is empty; answer with the JSON alone".into();
    }
    let has_prose = !text.starts_with(['{', '[', '"']) || error.to_string().starts_with("trailing characters");
    if has_prose && text.contains(['{', '[']) {
        return "there is other text besides the JSON; answer with the JSON alone, without prose or code fences".into();
    }
    if has_prose {
        return "the answer is not JSON; answer with the JSON alone, without prose or code fences".into();
    }
    format!("the answer is not valid JSON: {}; answer with the JSON alone", shortened(&error.to_string()))
}

/// The content, if one code fence encloses the whole text.
fn fenced(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("```")?.strip_suffix("```")?;
    let (language, body) = inner.split_once('\n')?;
    let is_json = ["", "json", "jsonc", "json5"].contains(&language.trim().to_ascii_lowercase().as_str());
    (is_json && !body.contains("```")).then_some(body)
}
