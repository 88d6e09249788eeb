//! Normalisation of a recording: call ids are numbered, and secrets are replaced.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolgate_core::redact::{Secrets, is_telling};
use toolgate_core::tool::secret_names;

/// The text in place of a secret.
const REDACTED: &str = "[redacted]";

/// Names that look like names of credentials, and hold the position in a list.
const POSITIONS: [&str; 4] = ["page_token", "pagetoken", "next_token", "continuation"];

/// The members of a recording that define servers and tools: the names in them are no names of values.
const DEFINITIONS: [&str; 3] = ["servers", "external_tools", "output_schema"];

/// The call ids and secrets of a run.
pub(super) struct Normaliser {
    secrets: Secrets,
    /// The numbered id of each call.
    ids: BTreeMap<String, String>,
    /// The arguments that a schema marks as secret.
    secret_names: BTreeSet<String>,
}

impl Normaliser {
    pub(super) fn new(secrets: Secrets) -> Self {
        Self { secrets, ids: BTreeMap::new(), secret_names: BTreeSet::new() }
    }

    /// The numbered id of a call.
    pub(super) fn number(&mut self, id: &str) -> String {
        let next = self.ids.len() + 1;
        self.ids.entry(id.to_owned()).or_insert_with(|| format!("call_{next}")).clone()
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
            let member = if is_definition { self.texts(member) } else { self.value(None, member) };
            (name, member)
        };
        serde_json::from_value(Value::Object(members.into_iter().map(clean).collect())).ok()
    }

    fn value(&self, name: Option<&str>, value: Value) -> Value {
        match value {
            Value::String(_) if name.is_some_and(|name| self.is_secret(name)) => REDACTED.into(),
            Value::String(text) => self.text(&text).into(),
            Value::Array(items) => items.into_iter().map(|item| self.value(name, item)).collect(),
            Value::Object(members) => {
                let clean = |(name, member): (String, Value)| {
                    let member = self.value(Some(&name), member);
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
            let clean = self.value(None, parsed.clone());
            if clean != parsed {
                return clean.to_string();
            }
        }
        self.numbered(&self.secrets.redacted(text))
    }

    fn is_secret(&self, name: &str) -> bool {
        let lower = name.to_ascii_lowercase();
        let is_position = POSITIONS.iter().any(|part| lower.contains(part));
        self.secret_names.contains(name) || (is_telling(name) && !is_position)
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
