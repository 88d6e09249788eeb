//! Normalisation of a recording: call ids are numbered, and secrets are replaced.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolgate_core::redact::{Secrets, is_telling};
use toolgate_core::tool::secret_names;

/// The text in place of a secret.
pub(super) const REDACTED: &str = "[redacted]";

/// Names that look like names of credentials, and hold the position in a list.
const POSITIONS: [&str; 4] = ["page_token", "pagetoken", "next_token", "continuation"];

/// The members of a recording that define servers and tools: the names in them are no names of values.
const DEFINITIONS: [&str; 3] = ["servers", "external_tools", "output_schema"];

/// The shortest call id that is replaced in texts: a shorter one may be an ordinary word or number.
const DISTINCTIVE: usize = 8;

/// What a name hides of its value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Hidden {
    Nothing,
    /// The texts, at any depth: the name looks like one of a credential. Numbers stay, because names of numbers of tokens do too.
    Texts,
    /// Everything: the schema of the tool marks it.
    Everything,
}

/// The call ids and secrets of a run.
pub(super) struct Normaliser {
    secrets: Secrets,
    /// The number of calls.
    calls: usize,
    /// The numbered id of each call whose id is replaced in texts.
    ids: BTreeMap<String, String>,
    /// The arguments that a schema marks as secret.
    secret_names: BTreeSet<String>,
}

impl Normaliser {
    pub(super) fn new(secrets: Secrets) -> Self {
        Self { secrets, calls: 0, ids: BTreeMap::new(), secret_names: BTreeSet::new() }
    }

    /// The numbered id of the next call.
    pub(super) fn number(&mut self, id: &str) -> String {
        self.calls += 1;
        let numbered = format!("call_{}", self.calls);
        let is_numbered = id.strip_prefix("call_").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
        if id.len() >= DISTINCTIVE && id.contains(|c: char| c.is_ascii_alphabetic()) && !is_numbered {
            self.ids.insert(id.to_owned(), numbered.clone());
        }
        numbered
    }

    /// Remembers the names of the arguments that this schema marks as secret.
    pub(super) fn learn_secret_names(&mut self, schema: &Value) {
        self.secret_names.extend(secret_names(schema));
    }

    /// The same data with numbered call ids in its texts, and without secrets; `None` if it has no JSON form.
    pub(super) fn normalised<T: Serialize + DeserializeOwned>(&self, data: &T) -> Option<T> {
        let Value::Object(members) = serde_json::to_value(data).ok()? else { return None };
        let clean = |(name, member): (String, Value)| {
            let is_definition = DEFINITIONS.contains(&name.as_str());
            let member = if is_definition { self.texts(member) } else { self.value(Hidden::Nothing, member) };
            (name, member)
        };
        serde_json::from_value(Value::Object(members.into_iter().map(clean).collect())).ok()
    }

    fn value(&self, hidden: Hidden, value: Value) -> Value {
        match value {
            _ if hidden == Hidden::Everything => REDACTED.into(),
            Value::String(_) if hidden == Hidden::Texts => REDACTED.into(),
            Value::String(text) => self.text(&text).into(),
            Value::Array(items) => items.into_iter().map(|item| self.value(hidden, item)).collect(),
            Value::Object(members) => {
                let clean = |(name, member): (String, Value)| {
                    let member = self.value(hidden.max(self.hidden_by(&name)), member);
                    (self.secrets.redacted(&name).into_owned(), member)
                };
                Value::Object(members.into_iter().map(clean).collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }

    /// The value with its texts redacted, whatever the names of its members.
    fn texts(&self, value: Value) -> Value {
        match value {
            Value::String(text) => self.secrets.redacted(&text).into_owned().into(),
            Value::Array(items) => items.into_iter().map(|item| self.texts(item)).collect(),
            Value::Object(members) => members.into_iter().map(|(name, member)| (name, self.texts(member))).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }

    /// A text without secrets. In a text that is JSON, the names of its members tell what is secret.
    fn text(&self, text: &str) -> String {
        if text.trim_start().starts_with(['{', '['])
            && let Ok(parsed) = serde_json::from_str::<Value>(text)
        {
            let clean = self.value(Hidden::Nothing, parsed.clone());
            if clean != parsed {
                return clean.to_string();
            }
        }
        self.numbered(&self.secrets.redacted(text))
    }

    fn hidden_by(&self, name: &str) -> Hidden {
        let lower = name.to_ascii_lowercase();
        let is_position = POSITIONS.iter().any(|part| lower.contains(part));
        match (self.secret_names.contains(name), is_telling(name) && !is_position) {
            (true, _) => Hidden::Everything,
            (false, true) => Hidden::Texts,
            (false, false) => Hidden::Nothing,
        }
    }

    /// The text with the numbered ids in place of the original ones.
    fn numbered(&self, text: &str) -> String {
        let is_inner = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        let mut numbered = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find(is_inner) {
            let (before, word) = rest.split_at(start);
            let (word, behind) = word.split_at(word.find(|c| !is_inner(c)).unwrap_or(word.len()));
            numbered.push_str(before);
            numbered.push_str(self.ids.get(word).map_or(word, String::as_str));
            rest = behind;
        }
        numbered + rest
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_core::redact::{SecretsBuilder, Style};

    use super::*;

    fn normaliser() -> Normaliser {
        let secrets = SecretsBuilder::of_values(["sk-0123456789"]).build(Style::MESSAGE);
        let mut normaliser = Normaliser::new(secrets);
        normaliser.number("toolu_abc");
        normaliser.number("toolu_abcdef");
        normaliser
    }

    #[test]
    fn call_ids_are_numbered_wherever_they_stand() {
        let said = json!({"text": "done: toolu_abcdef, then toolu_abc.", "other": "toolu_abcx"});
        let clean: Value = normaliser().normalised(&said).unwrap();
        assert_eq!(clean, json!({"text": "done: call_2, then call_1.", "other": "toolu_abcx"}));
    }

    #[test]
    fn short_and_numbered_ids_are_no_words_of_texts() {
        let mut normaliser = Normaliser::new(Secrets::default());
        let numbers = ["0", "1", "call_0", "call_1"].map(|id| normaliser.number(id));
        assert_eq!(numbers, ["call_1", "call_2", "call_3", "call_4"]);
        let said = json!({"id": "call_1", "text": "1 of call_0"});
        assert_eq!(normaliser.normalised(&said), Some(said));
    }

    #[test]
    fn a_marked_value_of_any_type_is_redacted_and_texts_at_any_depth() {
        let mut normaliser = normaliser();
        normaliser.learn_secret_names(&json!({"properties": {"pin": {"type": "integer", "writeOnly": true}}}));
        let said = json!({"turn": {"pin": 1234, "credentials": {"user": ["ann"], "attempts": 3}, "usage": {"input_tokens": 7}}});
        let clean: Value = normaliser.normalised(&said).unwrap();
        let redacted = json!({"user": ["[redacted]"], "attempts": 3});
        let redacted = json!({"pin": "[redacted]", "credentials": redacted, "usage": {"input_tokens": 7}});
        assert_eq!(clean, json!({"turn": redacted}));
    }

    #[test]
    fn secrets_are_redacted_by_value_and_by_name() {
        let mut normaliser = normaliser();
        normaliser.learn_secret_names(&json!({"properties": {"pin": {"type": "string", "writeOnly": true}}}));
        let said = json!({
            "say": "use sk-0123456789", "arguments": {"password": "hunter2", "pin": "1234", "page_token": "p2"},
            "text": "{\"api_key\": \"abc\", \"n\": 1}",
        });
        let clean: Value = normaliser.normalised(&said).unwrap();
        assert_eq!(
            clean,
            json!({
                "say": "use [redacted]", "arguments": {"password": "[redacted]", "pin": "[redacted]", "page_token": "p2"},
                "text": "{\"api_key\":\"[redacted]\",\"n\":1}",
            })
        );
    }
}
