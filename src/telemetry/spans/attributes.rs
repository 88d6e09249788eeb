//! Span attributes: values that are cleaned and limited in size, and the list that holds them. Each name occurs once.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::Serialize;
/// The value that replaces hidden content, as OpenInference prescribes.
pub(super) use toolgate_core::redact::REDACTED;

use super::names;

/// The longest text of a value, in bytes.
pub(super) const MAX_VALUE_BYTES: usize = 64 * 1024;

/// The start of the marker at the end of a cut text; the number of missing bytes follows.
pub(super) const CUT: &str = "… [";

/// One attribute. Name and text are shared, because each turn repeats the conversation and must not copy it.
pub type Attribute = (Arc<str>, Value);

/// A value that OTLP can carry.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    Text(Arc<str>),
    /// Several texts.
    Texts(Vec<String>),
    /// A whole number.
    Int(i64),
    Float(f64),
    Bool(bool),
}

/// Attributes under construction.
#[derive(Clone, Debug, Default)]
pub(super) struct Attributes {
    list: Vec<Attribute>,
    /// The positions of those that may have secrets. The others were cleaned once, for all the spans that repeat them.
    unclean: Vec<usize>,
}

impl Attributes {
    /// Sets a text. NUL is removed (Postgres-backed readers lose the whole span over one), and long text is cut.
    pub(super) fn text(&mut self, name: impl Into<Arc<str>>, text: impl AsRef<str>) {
        self.set(name, Value::Text(bounded(text.as_ref()).into()));
    }

    /// Sets a text if there is one.
    pub(super) fn text_if(&mut self, name: &str, text: Option<impl AsRef<str>>) {
        if let Some(text) = text {
            self.text(name, text);
        }
    }

    /// Sets a list of texts.
    pub(super) fn texts(&mut self, name: &str, texts: impl IntoIterator<Item = String>) {
        self.set(name, Value::Texts(texts.into_iter().map(|text| bounded(&text)).collect()));
    }

    /// Sets a number if it is known; one beyond OTLP's range becomes the largest possible.
    pub(super) fn int(&mut self, name: &str, number: impl Into<Option<u64>>) {
        if let Some(number) = number.into() {
            self.set(name, Value::Int(i64::try_from(number).unwrap_or(i64::MAX)));
        }
    }

    /// Sets any value.
    pub(super) fn set(&mut self, name: impl Into<Arc<str>>, value: Value) {
        self.unclean.push(self.list.len());
        self.set_clean(name, value);
    }

    /// Sets a value that has no secret.
    pub(super) fn set_clean(&mut self, name: impl Into<Arc<str>>, value: Value) {
        self.list.push((name.into(), value));
    }

    /// Sets a fraction if it is known.
    pub(super) fn float(&mut self, name: &str, number: Option<f64>) {
        if let Some(number) = number {
            self.set(name, Value::Float(number));
        }
    }

    /// Sets a text that readers parse as a JSON object. One that is too long is replaced and not cut, so that it still
    /// parses.
    pub(super) fn object(&mut self, name: impl Into<Arc<str>>, object: &serde_json::Value) {
        self.set(name, Value::Text(json_object(object).into()));
    }

    /// Sets a JSON text without a size limit, because readers parse it.
    pub(super) fn json(&mut self, name: &str, json: &serde_json::Value) {
        self.set(name, Value::Text(json_text(json).into()));
    }

    /// Sets the input from pieces without secrets that form JSON together. Pieces beyond the limit are never joined.
    pub(super) fn input_json<'a>(&mut self, pieces: impl Iterator<Item = &'a str>) {
        let (text, is_whole) = joined(pieces);
        self.set_clean(names::INPUT_VALUE, Value::Text(text.into()));
        self.set_clean(names::INPUT_MIME, Value::Text(mime(is_whole).into()));
    }

    /// Sets the input, or the marker that it is hidden.
    pub(super) fn input(&mut self, text: &str, hidden: bool) {
        self.value(names::INPUT_VALUE, names::INPUT_MIME, text, hidden);
    }

    /// Sets the output, or the marker that it is hidden.
    pub(super) fn output(&mut self, text: &str, hidden: bool) {
        self.value(names::OUTPUT_VALUE, names::OUTPUT_MIME, text, hidden);
    }

    /// The finished list.
    pub(super) fn into_vec(self) -> Vec<Attribute> {
        self.list
    }

    /// The finished list, after `clean` removed the secrets of each value that may have some.
    pub(super) fn cleaned(mut self, clean: impl Fn(&mut Value)) -> Vec<Attribute> {
        for at in self.unclean {
            if let Some((_, value)) = self.list.get_mut(at) {
                clean(value);
            }
        }
        self.list
    }

    /// Appends a list without secrets.
    pub(super) fn extend_clean(&mut self, other: &[Attribute]) {
        self.list.extend_from_slice(other);
    }

    fn value(&mut self, value: &str, mime_name: &str, text: &str, hidden: bool) {
        if hidden {
            self.text(value, REDACTED);
            return;
        }
        let text = bounded(text);
        let kind = mime(is_json(&text));
        self.set(value, Value::Text(text.into()));
        self.text(mime_name, kind);
    }
}

/// A value as JSON text without NUL.
pub(super) fn json_text(value: &serde_json::Value) -> String {
    without_nul(value.to_string())
}

/// A JSON object as text; one beyond the limit is replaced by an object that states its length.
fn json_object(object: &serde_json::Value) -> String {
    let text = json_text(object);
    match object {
        serde_json::Value::Object(_) if text.len() <= MAX_VALUE_BYTES => text,
        serde_json::Value::Object(_) => serde_json::json!({ "omitted_bytes": text.len() }).to_string(),
        serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::String(_)
        | serde_json::Value::Array(_) => "{}".to_owned(),
    }
}

/// Whether text is a JSON object or array. Numbers and other scalars stay plain text.
fn is_json(text: &str) -> bool {
    text.starts_with(['{', '[']) && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

fn mime(is_json: bool) -> &'static str {
    if is_json { "application/json" } else { "text/plain" }
}

/// Pieces without NUL as one text, cut at the limit with a marker of the missing bytes, and whether it is complete.
fn joined<'a>(pieces: impl Iterator<Item = &'a str>) -> (String, bool) {
    let (mut text, mut missing) = (String::new(), 0);
    for piece in pieces {
        let mut room = if missing == 0 { (MAX_VALUE_BYTES - text.len()).min(piece.len()) } else { 0 };
        while !piece.is_char_boundary(room) {
            room -= 1;
        }
        let (kept, cut) = piece.split_at(room);
        text.push_str(kept);
        missing += cut.len();
    }
    if missing > 0 {
        let _ = write!(text, "{CUT}{missing} bytes cut by toolgate]");
    }
    (text, missing == 0)
}

/// Text without NUL, cut at the limit on a character boundary with a marker of the missing bytes.
pub(super) fn bounded(text: &str) -> String {
    let text = without_nul(text.to_owned());
    if text.len() <= MAX_VALUE_BYTES {
        return text;
    }
    let mut end = MAX_VALUE_BYTES;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let (kept, cut) = text.split_at(end);
    let mut kept = kept.to_owned();
    let _ = write!(kept, "{CUT}{} bytes cut by toolgate]", cut.len());
    kept
}

/// Text without NUL, raw or as a JSON escape.
fn without_nul(text: String) -> String {
    const ESCAPE: &str = "\\u0000";
    if !text.contains('\0') && !text.contains(ESCAPE) {
        return text;
    }
    let text = text.replace('\0', "");
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(found) = rest.find(ESCAPE) {
        let (before, after) = rest.split_at(found);
        clean.push_str(before);
        let escaped_backslash = clean.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1;
        let (escape, after) = after.split_at(ESCAPE.len());
        if escaped_backslash {
            // `\\u0000` is a backslash and five characters; a space keeps readers from decoding it as NUL
            clean.push_str(escape.get(..1).unwrap_or_default());
            clean.push(' ');
            clean.push_str(escape.get(1..).unwrap_or_default());
        }
        rest = after;
    }
    clean.push_str(rest);
    clean
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_is_cut_on_a_character_boundary_with_a_marker() {
        let text = bounded(&"ä".repeat(MAX_VALUE_BYTES));
        assert!(text.ends_with("ä… [65536 bytes cut by toolgate]"), "{}", &text[text.len() - 60..]);
    }

    #[test]
    fn nul_never_survives_and_json_stays_json() {
        assert_eq!(bounded("a\0b"), "ab");
        for value in [json!({"a": "x\0y"}), json!({"a": "x\\u0000y"}), json!({"a": "\\\0"})] {
            let text = json_text(&value);
            let read: serde_json::Value = serde_json::from_str(&text).expect("still JSON");
            assert!(!read["a"].as_str().expect("text").contains('\0'), "{text}");
        }
    }

    #[test]
    fn an_object_that_is_too_long_is_replaced_by_an_object() {
        let mut attributes = Attributes::default();
        attributes.object("tool.parameters", &json!({"a": "x".repeat(MAX_VALUE_BYTES)}));
        let expected = Value::Text("{\"omitted_bytes\":65544}".into());
        assert_eq!(attributes.into_vec(), vec![(Arc::from("tool.parameters"), expected)]);
    }

    #[test]
    fn a_cut_text_is_not_labelled_json() {
        let mut attributes = Attributes::default();
        attributes.input(&json!(["x".repeat(MAX_VALUE_BYTES)]).to_string(), false);
        let mime = attributes.into_vec().pop().expect("mime type");
        assert_eq!(mime, (Arc::from("input.mime_type"), Value::Text("text/plain".into())));
    }

    #[test]
    fn joined_pieces_are_cut_like_one_text() {
        let long = "ä".repeat(MAX_VALUE_BYTES / 2 - 1);
        for pieces in [vec!["[1,", "2]"], vec!["x", long.as_str(), "ää", "b", "ö"], vec![long.as_str(), &long]] {
            let (text, is_whole) = joined(pieces.iter().copied());
            assert_eq!(text, bounded(&pieces.concat()));
            assert_eq!(is_whole, pieces.concat().len() <= MAX_VALUE_BYTES);
        }
    }
}
