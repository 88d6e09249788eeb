//! Span attributes: values that are cleaned and limited in size, and the list that holds them. Each name occurs once.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::Serialize;
/// The value that replaces hidden content, as OpenInference prescribes.
pub(super) use toolgate_core::redact::REDACTED;

use super::model_input::ModelInput;
use super::{SharedText, names};

/// The start of the marker at the end of a cut text; the number of missing bytes follows.
pub(super) const CUT: &str = "… [";

/// One attribute.
pub type Attribute = (SharedText, Value);

/// A value that OTLP can carry.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    Text(SharedText),
    /// Several texts.
    Texts(Box<[String]>),
    /// A whole number.
    Int(i64),
    Float(f64),
    Bool(bool),
}

impl Value {
    /// The text, if it is one.
    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Texts(_) | Self::Int(_) | Self::Float(_) | Self::Bool(_) => None,
        }
    }
}

/// Attributes under construction.
#[derive(Clone, Debug)]
pub(super) struct Attributes {
    list: Vec<Attribute>,
    /// The longest text of a value, in bytes.
    limit: usize,
    /// The number of values that were longer.
    truncated: u64,
    /// The positions of those that may have secrets. The others were cleaned once, for all the spans that repeat them.
    unclean: Vec<usize>,
}

/// A finished part of the attributes of several spans, without secrets.
#[derive(Clone, Debug, Default)]
pub(super) struct CleanAttributes {
    list: Box<[Attribute]>,
    truncated: u64,
}

impl CleanAttributes {
    /// The number of attributes.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }
}

impl Attributes {
    /// An empty list whose values have at most that many bytes.
    pub(super) fn within(limit: usize) -> Self {
        Self { list: Vec::new(), limit, truncated: 0, unclean: Vec::new() }
    }

    /// Sets a text. NUL is removed (Postgres-backed readers lose the whole span over one), and long text is cut.
    pub(super) fn text(&mut self, name: impl Into<SharedText>, text: impl AsRef<str>) {
        let text = self.bounded(text.as_ref()).into();
        self.set(name, Value::Text(SharedText::Counted(text)));
    }

    /// Sets a text under several names.
    pub(super) fn text_under(&mut self, names: impl IntoIterator<Item = &'static str>, text: &str) {
        let mut shared = None;
        for name in names {
            let text = self.bounded(text);
            let text = shared.get_or_insert_with(|| SharedText::Counted(text.into())).clone();
            self.set(name, Value::Text(text));
        }
    }

    /// Sets a word of our own.
    pub(super) fn word(&mut self, name: impl Into<SharedText>, word: &'static str) {
        self.set(name, Value::Text(word.into()));
    }

    /// Sets a text if there is one.
    pub(super) fn text_if(&mut self, name: &'static str, text: Option<impl AsRef<str>>) {
        if let Some(text) = text {
            self.text(name, text);
        }
    }

    /// Sets a list of texts.
    pub(super) fn texts(&mut self, name: &'static str, texts: impl IntoIterator<Item = String>) {
        let texts = texts.into_iter().map(|text| self.bounded(&text).into_owned()).collect();
        self.set(name, Value::Texts(texts));
    }

    /// Sets a number if it is known; one beyond OTLP's range becomes the largest possible.
    pub(super) fn int(&mut self, name: &'static str, number: impl Into<Option<u64>>) {
        if let Some(number) = number.into() {
            self.set(name, Value::Int(i64::try_from(number).unwrap_or(i64::MAX)));
        }
    }

    /// Sets any value.
    pub(super) fn set(&mut self, name: impl Into<SharedText>, value: Value) {
        self.unclean.push(self.list.len());
        self.set_clean(name, value);
    }

    /// Sets a value that has no secret.
    pub(super) fn set_clean(&mut self, name: impl Into<SharedText>, value: Value) {
        self.list.push((name.into(), value));
    }

    /// Sets a fraction if it is known.
    pub(super) fn float(&mut self, name: &'static str, number: Option<f64>) {
        if let Some(number) = number {
            self.set(name, Value::Float(number));
        }
    }

    /// Sets a text that readers parse as a JSON object. One that is too long is replaced and not cut, so that it still
    /// parses.
    pub(super) fn object(&mut self, name: impl Into<SharedText>, object: &serde_json::Value) {
        let text = json_object(object);
        let omitted = (text.len() > self.limit).then(|| serde_json::json!({ "omitted_bytes": text.len() }).to_string());
        self.truncated += u64::from(omitted.is_some());
        self.set(name, Value::Text(omitted.unwrap_or(text).into()));
    }

    /// Sets a JSON text without a size limit, because readers parse it.
    pub(super) fn json(&mut self, name: &'static str, json: &serde_json::Value) {
        self.set(name, Value::Text(json_text(json).into()));
    }

    /// Sets the input of a model, which is JSON without secrets.
    pub(super) fn model_input(&mut self, input: ModelInput) {
        self.truncated += u64::from(!input.is_whole);
        self.set_clean(names::INPUT_VALUE, Value::Text(input.json.into()));
        self.set_clean(names::INPUT_MIME, Value::Text(mime(true).into()));
    }

    /// Sets the input, or the marker that it is hidden.
    pub(super) fn input(&mut self, text: &str, hidden: bool) {
        self.value(names::INPUT_VALUE, names::INPUT_MIME, text, hidden);
    }

    /// Sets the output, or the marker that it is hidden.
    pub(super) fn output(&mut self, text: &str, hidden: bool) {
        self.value(names::OUTPUT_VALUE, names::OUTPUT_MIME, text, hidden);
    }

    /// Removes the secrets of each value that may have some.
    pub(super) fn clean(&mut self, clean: impl Fn(&mut Value)) {
        for at in self.unclean.drain(..) {
            if let Some((_, value)) = self.list.get_mut(at) {
                clean(value);
            }
        }
    }

    /// Removes further secrets from all values.
    pub(super) fn clean_again(&mut self, clean: impl Fn(&mut Value)) {
        self.list.iter_mut().for_each(|(_, value)| clean(value));
        self.unclean.clear();
    }

    /// Appends attributes without secrets.
    pub(super) fn extend_clean<'a>(&mut self, parts: impl Iterator<Item = &'a CleanAttributes> + Clone) {
        self.list.reserve(parts.clone().map(CleanAttributes::len).sum());
        for part in parts {
            self.list.extend_from_slice(&part.list);
            self.truncated += part.truncated;
        }
    }

    /// The attributes after the removal of secrets.
    pub(super) fn into_clean(mut self, clean: impl Fn(&mut Value)) -> CleanAttributes {
        self.clean(clean);
        CleanAttributes { list: self.list.into(), truncated: self.truncated }
    }

    /// The number of attributes.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// The number of values that were too long, and the finished list.
    pub(super) fn into_parts(self) -> (u64, Vec<Attribute>) {
        (self.truncated, self.list)
    }

    /// Text without NUL that is cut at the limit.
    fn bounded<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        if text.len() <= self.limit && !has_nul(text) {
            return Cow::Borrowed(text);
        }
        let mut text = without_nul(text.to_owned());
        self.truncated += u64::from(truncate(&mut text, self.limit));
        Cow::Owned(text)
    }

    fn value(&mut self, value: &'static str, mime_name: &'static str, text: &str, hidden: bool) {
        if hidden {
            self.word(value, REDACTED);
            return;
        }
        let text = self.bounded(text);
        let kind = mime(is_json(&text));
        self.set(value, Value::Text(SharedText::Counted(text.into())));
        self.word(mime_name, kind);
    }
}

/// A value as JSON text without NUL.
pub(super) fn json_text(value: &serde_json::Value) -> String {
    without_nul(value.to_string())
}

/// A JSON object as text; `{}` for another value.
fn json_object(object: &serde_json::Value) -> String {
    if object.is_object() { json_text(object) } else { "{}".to_owned() }
}

/// Whether text is a JSON object or array. Numbers and other scalars stay plain text.
fn is_json(text: &str) -> bool {
    text.starts_with(['{', '[']) && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

fn mime(is_json: bool) -> &'static str {
    if is_json { "application/json" } else { "text/plain" }
}

/// Cuts the texts of a value at the limit, and returns how many were too long.
pub(super) fn truncate_value(value: &mut Value, limit: usize) -> u64 {
    match value {
        Value::Text(text) if text.len() > limit => {
            let mut cut = text.to_string();
            truncate(&mut cut, limit);
            *text = cut.into();
            1
        }
        Value::Texts(texts) => texts.iter_mut().map(|text| u64::from(truncate(text, limit))).sum(),
        Value::Text(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_) => 0,
    }
}

/// Cuts a text at the limit on a character boundary, with a marker of the missing bytes, and returns whether it was too
/// long.
pub(super) fn truncate(text: &mut String, limit: usize) -> bool {
    if text.len() <= limit {
        return false;
    }
    let mut end = limit;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let missing = text.len() - end;
    text.truncate(end);
    let _ = write!(text, "{CUT}{missing} bytes cut by toolgate]");
    true
}

/// NUL as a JSON escape.
const ESCAPE: &str = "\\u0000";

fn has_nul(text: &str) -> bool {
    text.contains('\0') || text.contains(ESCAPE)
}

/// Text without NUL, raw or as a JSON escape.
pub(super) fn without_nul(text: String) -> String {
    if !has_nul(&text) {
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

    const LIMIT: usize = 1024;

    fn finished(set: impl FnOnce(&mut Attributes)) -> (u64, Vec<Attribute>) {
        let mut attributes = Attributes::within(LIMIT);
        set(&mut attributes);
        attributes.into_parts()
    }

    fn text_of(attribute: Option<&Attribute>) -> &str {
        match attribute {
            Some((_, Value::Text(text))) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn text_is_cut_on_a_character_boundary_with_a_marker() {
        let (truncated, list) = finished(|to| to.text("a", format!("x{}", "ä".repeat(LIMIT))));
        assert_eq!(truncated, 1);
        assert!(text_of(list.first()).ends_with("ä… [1026 bytes cut by toolgate]"), "{list:?}");
        assert_eq!(finished(|to| to.text("a", "x".repeat(LIMIT))).0, 0);
    }

    #[test]
    fn nul_never_survives_and_json_stays_json() {
        assert_eq!(without_nul("a\0b".to_owned()), "ab");
        for value in [json!({"a": "x\0y"}), json!({"a": "x\\u0000y"}), json!({"a": "\\\0"})] {
            let text = json_text(&value);
            let read: serde_json::Value = serde_json::from_str(&text).expect("still JSON");
            assert!(!read["a"].as_str().expect("text").contains('\0'), "{text}");
        }
    }

    #[test]
    fn an_object_that_is_too_long_is_replaced_by_an_object() {
        let found = finished(|to| to.object("tool.parameters", &json!({"a": "x".repeat(LIMIT)})));
        let expected = Value::Text("{\"omitted_bytes\":1032}".into());
        assert_eq!(found, (1, vec![("tool.parameters".into(), expected)]));
    }

    #[test]
    fn a_cut_text_is_not_labelled_json() {
        let (_, list) = finished(|to| to.input(&json!(["x".repeat(LIMIT)]).to_string(), false));
        assert_eq!(list.last(), Some(&("input.mime_type".into(), Value::Text("text/plain".into()))));
    }
}
