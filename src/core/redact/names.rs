//! Secret names: removes the values of names that mark a secret, such as `password`, and secrets that are recognized by
//! their form.
//!
//! Names are compared without case, `-` and `_`. They are found in JSON, in JSON quoted within JSON, and in text of the
//! form `name: value` or `name=value`, as in headers, environments and cut JSON. If the end of a value is unclear, the
//! redaction removes more rather than less. The schemas of tools stay: they show that a password exists, not its value.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value as Json};

use super::prefilter::{NameFilter, plain, simple};
use super::{REDACTED, plain_text, recognizable};
use crate::pattern::Pattern;

/// The common names of secrets.
pub const USUAL_NAMES: [&str; 30] = [
    "*authorization",
    "cookie",
    "set-cookie",
    "*password",
    "*passwd",
    "*passphrase",
    "*pwd",
    "*secret",
    "*secret_key",
    "*secret_access_key",
    "*api_key",
    "*private_key",
    "token",
    "*access_token",
    "*refresh_token",
    "*id_token",
    "*auth_token",
    "*bot_token",
    "*session_token",
    "jwt",
    "bearer",
    "*credentials",
    "*connection_string",
    "*card_number",
    "*cvv",
    "*cvc",
    "*ssn",
    "*otp",
    "pin",
    "*card_pin",
];

static USUAL: LazyLock<SecretNames> =
    LazyLock::new(|| SecretNames::new(USUAL_NAMES).unwrap_or_default().with_recognizable(true));

/// Names whose values are secret. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct SecretNames {
    names: Option<Arc<Names>>,
    /// Whether secrets that are recognized by their form are hidden as well.
    recognizable: bool,
}

#[derive(Clone, Debug, Default)]
struct Names {
    written: BTreeSet<String>,
    /// Patterns without wildcards, and those with one at the beginning, in the form of plain names.
    exact: BTreeSet<String>,
    endings: Vec<String>,
    patterns: Vec<Pattern>,
    /// A quick check that a text has no secret name.
    filter: NameFilter,
}

impl SecretNames {
    /// The names that match these patterns.
    ///
    /// # Errors
    /// A pattern cannot be parsed; the text names it.
    pub fn new(patterns: impl IntoIterator<Item = impl Into<String>>) -> Result<Self, String> {
        let mut names = Names::default();
        patterns.into_iter().try_for_each(|pattern| names.add(pattern.into()))?;
        Ok(Self { names: names.finished(), recognizable: false })
    }

    /// [`USUAL_NAMES`], and the secrets that are recognized by their form.
    pub fn usual() -> Self {
        USUAL.clone()
    }

    /// Whether secrets that are recognized by their form are hidden as well.
    #[must_use]
    pub fn with_recognizable(self, recognizable: bool) -> Self {
        Self { recognizable, ..self }
    }

    /// The same with these names, as they are written; `None` if that adds no name.
    pub fn and(&self, names: impl IntoIterator<Item = String>) -> Option<Self> {
        let known = self.names.as_ref().map_or(0, |names| names.written.len());
        let mut all = self.names.as_deref().cloned().unwrap_or_default();
        // An exact name is always a valid pattern.
        names.into_iter().try_for_each(|name| all.add(Pattern::exactly(&name))).ok()?;
        (all.written.len() > known).then(|| Self { names: all.finished(), recognizable: self.recognizable })
    }

    /// Whether nothing is hidden.
    pub fn is_empty(&self) -> bool {
        self.names.is_none() && !self.recognizable
    }

    /// Whether the value of this name is secret.
    pub fn contains(&self, name: &str) -> bool {
        let Some(names) = self.names.as_ref().filter(|names| names.filter.may_end(name)) else { return false };
        let (written, plain) = (name.to_lowercase(), plain(name));
        names.exact.contains(&plain)
            || names.endings.iter().any(|ending| plain.ends_with(ending))
            || names.patterns.iter().any(|pattern| pattern.fits(&plain) || pattern.fits(&written))
    }

    /// The text without secrets; `None` if it has none.
    pub fn redacted(&self, text: &str) -> Option<String> {
        if self.may_be_in(text) { self.redacted_exactly(text) } else { None }
    }

    /// Whether a text may have a secret. Most texts have none and need no further comparison.
    pub(super) fn may_be_in(&self, text: &str) -> bool {
        let is_named = || self.names.as_ref().is_some_and(|names| names.filter.may_be_in(text));
        // JSON may write any character as such an escape.
        let is_escaped = || !self.is_empty() && text.contains("\\u");
        is_named() || (self.recognizable && recognizable::may_be_in(text)) || is_escaped()
    }

    pub(super) fn redacted_exactly(&self, text: &str) -> Option<String> {
        if text.starts_with(['{', '['])
            && let Ok(mut json) = serde_json::from_str::<Json>(text)
        {
            return self.redact(&mut json).then(|| json.to_string());
        }
        let without_values = self.names.as_ref().and_then(|_| plain_text::without(text, |name| self.contains(name)));
        let rest = without_values.as_deref().map_or(Cow::Borrowed(text), Cow::Borrowed);
        if self.recognizable { recognizable::without(&rest).or(without_values) } else { without_values }
    }

    /// Hides the secrets of a JSON value; returns whether there were any.
    pub fn redact(&self, json: &mut Json) -> bool {
        self.redact_value(json, false)
    }

    /// Collects the texts and numbers below secret names.
    pub fn secrets_of(&self, members: &Map<String, Json>, found: &mut Vec<String>) {
        members.iter().for_each(|(name, value)| self.secrets_in(value, self.contains(name), found));
    }

    fn secrets_in(&self, value: &Json, is_secret: bool, found: &mut Vec<String>) {
        match value {
            Json::Object(members) if !is_secret => self.secrets_of(members, found),
            Json::Object(members) => members.values().for_each(|value| self.secrets_in(value, true, found)),
            Json::Array(items) => items.iter().for_each(|item| self.secrets_in(item, is_secret, found)),
            Json::String(text) if is_secret => found.push(text.clone()),
            Json::Number(number) if is_secret => found.push(number.to_string()),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
        }
    }

    /// The members of a schema's `properties` are argument names with their schemas, not arguments.
    fn redact_value(&self, json: &mut Json, are_schemas: bool) -> bool {
        let clean = match json {
            Json::Object(members) => return self.members(members, are_schemas),
            Json::Array(items) => {
                return items.iter_mut().fold(false, |hidden, item| self.redact_value(item, false) | hidden);
            }
            Json::String(text) => self.redacted(text),
            Json::Number(number) if self.recognizable => recognizable::without(&number.to_string()),
            Json::Null | Json::Bool(_) | Json::Number(_) => None,
        };
        let hidden = clean.is_some();
        if let Some(clean) = clean {
            *json = clean.into();
        }
        hidden
    }

    fn members(&self, members: &mut Map<String, Json>, are_schemas: bool) -> bool {
        let is_schema = members.get("type").is_some_and(|kind| kind == "object");
        let mut hidden = false;
        for (name, value) in members {
            let is_schema_of_it = are_schemas && (value.is_object() || value.is_boolean());
            if !is_schema_of_it && !value.is_null() && self.contains(name) {
                hidden |= value != REDACTED;
                *value = REDACTED.into();
            } else {
                hidden |= self.redact_value(value, is_schema && name == "properties");
            }
        }
        hidden
    }
}

impl Names {
    fn add(&mut self, pattern: String) -> Result<(), String> {
        if self.written.contains(&pattern) {
            return Ok(());
        }
        match simple(&pattern) {
            Some((true, ending)) => self.endings.push(ending),
            Some((false, name)) => drop(self.exact.insert(name)),
            None => {
                let read = |text: &str| Pattern::parse(text).map_err(|why| format!("`{pattern}`: {why}"));
                let (as_written, plain) = (pattern.to_lowercase(), plain_pattern(&pattern));
                self.patterns.push(read(&as_written)?);
                if plain != as_written && !plain.is_empty() {
                    self.patterns.push(read(&plain)?);
                }
            }
        }
        self.written.insert(pattern);
        Ok(())
    }

    fn finished(mut self) -> Option<Arc<Self>> {
        self.filter = NameFilter::new(&self.written);
        (!self.written.is_empty()).then(|| Arc::new(self))
    }
}

/// A pattern in the form in which plain names are compared. Inside a class, `-` is a range.
fn plain_pattern(pattern: &str) -> String {
    let mut is_class = false;
    let mut signs = pattern.chars().peekable();
    let mut plain = String::new();
    while let Some(sign) = signs.next() {
        match sign {
            '\\' if !is_class && signs.next_if(|sign| matches!(sign, '-' | '_')).is_some() => {}
            '\\' => plain.extend([Some(sign), signs.next()].into_iter().flatten()),
            '-' | '_' if !is_class => {}
            _ => {
                is_class = sign == '[' || (is_class && sign != ']');
                plain.push(sign);
            }
        }
    }
    plain.to_lowercase()
}
