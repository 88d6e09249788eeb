//! Secrets that stay out of spans whatever quotes them: what stands under the name of a secret, and what is known to be
//! one.
//!
//! Names are compared without regard to case, `-` and `_`. They are looked for in JSON, also in JSON that is quoted in
//! JSON, and in text that has the form `name: value` or `name=value`, as headers, environments and JSON that was cut short
//! have it. Where it is not clear where a value ends, more is hidden rather than less. The schemas of tools are left
//! alone: they say that there is a password, not which.

mod loose;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value as Json};

use super::attributes::REDACTED;
use super::{Span, Status, Value};
use crate::core::pattern::Pattern;
use crate::core::tool::Toolset;

/// The names under which secrets usually stand.
pub const USUAL_KEYS: [&str; 15] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "client_secret",
    "*secret_key",
    "*api_key",
    "access_token",
    "refresh_token",
    "id_token",
    "*private_key",
];

/// A value that is shorter is a word like any other: to blot it out would garble what it stands in.
const SHORTEST: usize = 8;

/// The beginning of a secret before a cut is taken for one from so many bytes on.
const TELLING_START: usize = 4;

/// What is blotted out of every text of a span.
#[derive(Clone, Debug, Default)]
pub struct Redaction {
    keys: Option<Arc<Keys>>,
    values: Arc<[SecretString]>,
}

/// Names of secrets.
#[derive(Clone, Debug)]
struct Keys {
    written: Vec<String>,
    patterns: Vec<Pattern>,
    /// Finds out quickly that a text has none of them.
    hint: Option<Regex>,
}

impl Redaction {
    /// Hides what stands under names that fit one of these patterns, and these values wherever they stand.
    pub fn new(
        keys: impl IntoIterator<Item = impl Into<String>>,
        values: impl IntoIterator<Item = SecretString>,
    ) -> Result<Self, String> {
        let mut values: Vec<SecretString> = values.into_iter().flat_map(|value| forms(value.expose_secret())).collect();
        // One may be a part of another.
        values.sort_by_key(|value| std::cmp::Reverse(value.expose_secret().len()));
        Ok(Self { keys: Keys::read(keys.into_iter().map(Into::into).collect())?, values: values.into() })
    }

    /// The same, and what the schemas of these tools mark as secret by `writeOnly` or `format: password`.
    pub(super) fn with_secrets_of(&self, tools: &Toolset) -> Self {
        let mut marked = BTreeSet::new();
        tools.iter().for_each(|tool| marked_in(&tool.input_schema, &mut marked));
        if marked.is_empty() {
            return self.clone();
        }
        let known = self.keys.iter().flat_map(|keys| keys.written.iter().cloned());
        let all = known.chain(marked.iter().map(|name| Pattern::exactly(name))).collect();
        match Keys::read(all) {
            Ok(keys) => Self { keys, values: Arc::clone(&self.values) },
            Err(_) => self.clone(), // an exact name is never refused
        }
    }

    /// Blots secrets out of everything a span says.
    pub(super) fn apply(&self, span: &mut Span) {
        if self.keys.is_none() && self.values.is_empty() {
            return;
        }
        let said_by_events = span.events.iter_mut().flat_map(|event| &mut event.attributes);
        span.attributes.iter_mut().chain(said_by_events).for_each(|(_, value)| self.value(value));
        if let Status::Error(message) = &mut span.status
            && let Some(clean) = self.clean(message)
        {
            *message = clean;
        }
    }

    fn value(&self, value: &mut Value) {
        match value {
            Value::Text(text) => {
                if let Some(clean) = self.clean(text) {
                    *text = clean.into();
                }
            }
            Value::Texts(texts) => texts.iter_mut().for_each(|text| {
                if let Some(clean) = self.clean(text) {
                    *text = clean;
                }
            }),
            Value::Int(_) | Value::Float(_) | Value::Bool(_) => {}
        }
    }

    /// The text without secrets; `None` if it has none.
    fn clean(&self, text: &str) -> Option<String> {
        let known = self.without_values(text);
        let named = self.without_keys(known.as_deref().unwrap_or(text));
        named.or(known)
    }

    fn without_values(&self, text: &str) -> Option<String> {
        let mut clean = None;
        for secret in self.values.iter().map(ExposeSecret::expose_secret) {
            let text: &str = clean.as_deref().unwrap_or(text);
            let whole = text.contains(secret).then(|| text.replace(secret, REDACTED));
            let text = whole.as_deref().unwrap_or(text);
            let cut = begun(text, secret).map(|place| {
                let mut text = text.to_owned();
                text.replace_range(place, REDACTED);
                text
            });
            clean = cut.or(whole).or(clean);
        }
        clean
    }

    /// The text without what stands under the names of secrets; `None` if it has nothing of the kind.
    fn without_keys(&self, text: &str) -> Option<String> {
        let keys = self.keys.as_ref()?;
        if keys.hint.as_ref().is_some_and(|hint| !hint.is_match(text)) {
            return None;
        }
        if text.starts_with(['{', '['])
            && let Ok(mut json) = serde_json::from_str::<Json>(text)
        {
            return self.json(&mut json, false).then(|| json.to_string());
        }
        loose::without(text, |name| self.is_secret(name))
    }

    /// Whether anything was hidden. The members of a schema's `properties` are names of arguments and not arguments.
    fn json(&self, json: &mut Json, are_schemas: bool) -> bool {
        match json {
            Json::Object(members) => self.members(members, are_schemas),
            Json::Array(items) => items.iter_mut().fold(false, |hidden, item| self.json(item, false) | hidden),
            Json::String(text) => {
                let clean = self.without_keys(text);
                let hidden = clean.is_some();
                *text = clean.unwrap_or_else(|| std::mem::take(text));
                hidden
            }
            Json::Null | Json::Bool(_) | Json::Number(_) => false,
        }
    }

    fn members(&self, members: &mut Map<String, Json>, are_schemas: bool) -> bool {
        let is_schema = members.get("type").is_some_and(|kind| kind == "object");
        let mut hidden = false;
        for (name, value) in members {
            if !are_schemas && !value.is_null() && self.is_secret(name) {
                hidden |= value != REDACTED;
                *value = REDACTED.into();
            } else {
                hidden |= self.json(value, is_schema && name == "properties");
            }
        }
        hidden
    }

    fn is_secret(&self, name: &str) -> bool {
        let name = plain(name);
        self.keys.as_ref().is_some_and(|keys| keys.patterns.iter().any(|pattern| pattern.fits(&name)))
    }
}

impl Keys {
    fn read(written: Vec<String>) -> Result<Option<Arc<Self>>, String> {
        if written.is_empty() {
            return Ok(None);
        }
        let read = |pattern: &String| Pattern::parse(&plain(pattern)).map_err(|why| format!("`{pattern}`: {why}"));
        let patterns = written.iter().map(read).collect::<Result<_, _>>()?;
        let hint = hint(&written);
        Ok(Some(Arc::new(Self { written, patterns, hint })))
    }
}

/// Finds the longest piece of each pattern that is plain text. `None` if one has none.
fn hint(patterns: &[String]) -> Option<Regex> {
    let pieces = patterns.iter().map(|pattern| {
        let plain = plain(pattern);
        let longest = plain.split(|c: char| !c.is_alphanumeric()).max_by_key(|piece| piece.len())?;
        let letters: Vec<String> = longest.chars().map(|letter| regex::escape(&letter.to_string())).collect();
        (longest.len() >= 2).then(|| letters.join("[-_]?"))
    });
    let pieces = pieces.collect::<Option<Vec<_>>>()?;
    RegexBuilder::new(&pieces.join("|")).case_insensitive(true).build().ok()
}

/// Where a text was cut in the middle of a secret: that is one still.
fn begun(text: &str, secret: &str) -> Option<Range<usize>> {
    let cut = text.rfind("… [")?;
    let kept = text.get(..cut)?;
    let beginnings = secret.char_indices().map(|(at, _)| at).filter(|at| *at >= TELLING_START);
    let end = beginnings.rev().find(|end| secret.get(..*end).is_some_and(|beginning| kept.ends_with(beginning)))?;
    Some(cut - end..cut)
}

/// A name as it is compared.
fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

/// A value as it is, without the word for the way it authorizes, and as it looks in JSON.
fn forms(value: &str) -> Vec<SecretString> {
    let value = value.trim();
    let bare = match value.split_once(' ') {
        Some((scheme, rest)) if scheme.chars().all(|letter| letter.is_ascii_alphabetic()) => rest.trim(),
        Some(_) | None => value,
    };
    // Of a key that has several lines, each counts for itself: it may be printed line by line.
    let pieces = [value, bare].into_iter().chain(value.lines().map(str::trim));
    let mut forms: Vec<String> = pieces.filter(|piece| piece.len() >= SHORTEST).map(str::to_owned).collect();
    let quoted = |form: &String| Json::from(form.as_str()).to_string().trim_matches('"').to_owned();
    forms.extend(forms.iter().map(quoted).collect::<Vec<_>>());
    forms.sort();
    forms.dedup();
    forms.into_iter().map(SecretString::from).collect()
}

/// The names of properties that a schema marks as secret, at any depth.
fn marked_in(schema: &Json, names: &mut BTreeSet<String>) {
    match schema {
        Json::Object(members) => {
            let properties = members.get("properties").and_then(Json::as_object);
            let marked = properties.into_iter().flatten().filter(|(_, property)| is_marked(property));
            names.extend(marked.map(|(name, _)| name.clone()));
            members.values().for_each(|value| marked_in(value, names));
        }
        Json::Array(items) => items.iter().for_each(|item| marked_in(item, names)),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}

fn is_marked(property: &Json) -> bool {
    property.get("writeOnly") == Some(&Json::Bool(true)) || property.get("format").is_some_and(|it| it == "password")
}

#[cfg(test)]
mod tests;
