//! Secret redaction in spans: removes the values of secret names, and the known secrets.
//!
//! Names are compared without case, `-` and `_`. They are found in JSON, in JSON quoted within JSON, and in text of the
//! form `name: value` or `name=value`, as in headers, environments and cut JSON. If the end of a value is unclear, the
//! redaction removes more rather than less. The schemas of tools stay: they show that a password exists, not its value.

mod plain_text;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value as Json};
use toolgate_core::pattern::Pattern;
use toolgate_core::redact::{Secrets, SecretsBuilder, Style};
use toolgate_core::tool::{Toolset, secret_names};
use toolgate_ports::Recent;

use super::attributes::{Attribute, CUT, REDACTED};
use super::toolset::RenderedToolset;
use super::{Span, Status, Value, names};

/// The common names of secrets.
pub const USUAL_KEYS: [&str; 14] = [
    "*authorization",
    "cookie",
    "set-cookie",
    "*password",
    "*passwd",
    "*passphrase",
    "*secret",
    "*secret_key",
    "*secret_access_key",
    "*api_key",
    "*private_key",
    "*access_token",
    "*refresh_token",
    "id_token",
];

/// Pieces of credentials stay: texts of conversations contain any word.
const STYLE: Style = Style { hidden: REDACTED, omissions: &[CUT], pieces: false };

/// The most toolsets whose rendered form is kept.
const TOOLSETS: usize = 16;

/// The secrets to remove from every text of a span.
#[derive(Clone, Debug, Default)]
pub struct Redaction {
    keys: Option<Arc<Keys>>,
    secrets: Secrets,
    toolsets: Arc<CleanToolsets>,
}

/// What follows from the last toolsets: runs with the same tools share it.
#[derive(Debug)]
struct CleanToolsets {
    rendered: Recent<Arc<Toolset>, Arc<RenderedToolset>>,
    /// The redaction that also hides their secret arguments, if they have some.
    learned: Recent<Arc<Toolset>, Option<Redaction>>,
}

impl Default for CleanToolsets {
    fn default() -> Self {
        Self { rendered: Recent::new(TOOLSETS), learned: Recent::new(TOOLSETS) }
    }
}

/// Patterns of secret names.
#[derive(Clone, Debug)]
struct Keys {
    written: Vec<String>,
    patterns: Vec<Pattern>,
    /// A quick check that a text has no secret name.
    hint: Option<Regex>,
}

impl Redaction {
    /// Hides the values of names that match these patterns, and these secrets anywhere.
    pub fn new(keys: impl IntoIterator<Item = impl Into<String>>, secrets: SecretsBuilder) -> Result<Self, String> {
        let keys = Keys::read(keys.into_iter().map(Into::into).collect())?;
        Ok(Self { keys, secrets: secrets.build(STYLE), toolsets: Arc::default() })
    }

    /// Hides these secrets alone.
    pub fn of_secrets(secrets: SecretsBuilder) -> Self {
        Self { keys: None, secrets: secrets.build(STYLE), toolsets: Arc::default() }
    }

    /// Adds the names that the schemas of these tools mark as secret ([`secret_names`]); `None` if that adds no name.
    pub(super) fn with_secrets_of(&self, tools: &Arc<Toolset>) -> Option<Self> {
        if let Some(learned) = self.toolsets.learned.get(|known, _| known == tools) {
            return learned;
        }
        let learned = self.learn(tools);
        self.toolsets.learned.insert(tools.clone(), learned.clone());
        learned
    }

    /// The tools of a toolset without secrets.
    pub(super) fn rendered(&self, toolset: &Arc<Toolset>) -> Arc<RenderedToolset> {
        if let Some(rendered) = self.toolsets.rendered.get(|known, _| known == toolset) {
            return rendered;
        }
        let mut rendered = RenderedToolset::new(toolset, |schema| self.text(schema));
        self.attributes(&mut rendered.attributes);
        let rendered = Arc::new(rendered);
        self.toolsets.rendered.insert(toolset.clone(), rendered.clone());
        rendered
    }

    fn learn(&self, tools: &Toolset) -> Option<Self> {
        let mut all: BTreeSet<String> = self.keys.iter().flat_map(|keys| keys.written.iter().cloned()).collect();
        let before = all.len();
        all.extend(tools.iter().flat_map(|tool| secret_names(&tool.input_schema)).map(|name| Pattern::exactly(&name)));
        if all.len() == before {
            return None;
        }
        // An exact name is always a valid pattern.
        let keys = Keys::read(all.into_iter().collect()).ok()?;
        Some(Self { keys, secrets: self.secrets.clone(), toolsets: Arc::default() })
    }

    /// Removes secrets from all texts of a span, except the attributes that were cleaned when they were rendered.
    pub(super) fn apply(&self, span: &mut Span) {
        if self.is_nothing() {
            return;
        }
        let said = span.attributes.iter_mut().filter(|(name, _)| !is_clean(name));
        let said_by_events = span.events.iter_mut().flat_map(|event| &mut event.attributes);
        said.chain(said_by_events).for_each(|(_, value)| self.value(value));
        if let Status::Error(message) = &mut span.status
            && let Some(clean) = self.clean(message)
        {
            *message = clean;
        }
    }

    /// Removes secrets from these attributes.
    pub(super) fn attributes(&self, attributes: &mut [Attribute]) {
        if !self.is_nothing() {
            attributes.iter_mut().for_each(|(_, value)| self.value(value));
        }
    }

    /// The text without secrets.
    pub(crate) fn text(&self, text: String) -> String {
        if self.is_nothing() { text } else { self.clean(&text).unwrap_or(text) }
    }

    fn is_nothing(&self) -> bool {
        self.keys.is_none() && self.secrets.is_empty()
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

    /// The text without secrets; `None` if it contains no secret.
    fn clean(&self, text: &str) -> Option<String> {
        let known = self.secrets.redacted(text);
        self.without_keys(&known).or(match known {
            Cow::Borrowed(_) => None,
            Cow::Owned(clean) => Some(clean),
        })
    }

    /// The text without the values of secret names; `None` if it contains no such value.
    fn without_keys(&self, text: &str) -> Option<String> {
        let keys = self.keys.as_ref()?;
        // JSON may write a name with escapes.
        if keys.hint.as_ref().is_some_and(|hint| !hint.is_match(text)) && !text.contains("\\u") {
            return None;
        }
        if text.starts_with(['{', '['])
            && let Ok(mut json) = serde_json::from_str::<Json>(text)
        {
            return self.json(&mut json, false).then(|| json.to_string());
        }
        plain_text::without(text, |name| self.is_secret(name))
    }

    /// Redacts a JSON value; returns whether anything was hidden. The members of a schema's `properties` are argument
    /// names with their schemas, not arguments.
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
            let is_schema_of_it = are_schemas && (value.is_object() || value.is_boolean());
            if !is_schema_of_it && !value.is_null() && self.is_secret(name) {
                hidden |= value != REDACTED;
                *value = REDACTED.into();
            } else {
                hidden |= self.json(value, is_schema && name == "properties");
            }
        }
        hidden
    }

    fn is_secret(&self, name: &str) -> bool {
        let (written, plain) = (name.to_lowercase(), plain(name));
        let fits = |pattern: &Pattern| pattern.fits(&plain) || pattern.fits(&written);
        self.keys.as_ref().is_some_and(|keys| keys.patterns.iter().any(fits))
    }
}

impl Keys {
    fn read(written: Vec<String>) -> Result<Option<Arc<Self>>, String> {
        if written.is_empty() {
            return Ok(None);
        }
        let mut patterns = Vec::new();
        for pattern in &written {
            let read = |text: &str| Pattern::parse(text).map_err(|why| format!("`{pattern}`: {why}"));
            let (as_written, plain) = (pattern.to_lowercase(), plain_pattern(pattern));
            patterns.push(read(&as_written)?);
            if plain != as_written && !plain.is_empty() {
                patterns.push(read(&plain)?);
            }
        }
        let hint = hint(&written);
        Ok(Some(Arc::new(Self { written, patterns, hint })))
    }
}

/// A regex of one literal piece of each pattern, which every matching name contains. `None` if a pattern has no useful
/// piece.
fn hint(patterns: &[String]) -> Option<Regex> {
    let pieces = patterns.iter().map(|pattern| {
        // A character class or an alternative does not occur in every name.
        let sure = pattern.split(['[', '{', '\\']).next().unwrap_or_default();
        let longest = sure.split(['*', '?']).map(plain).max_by_key(String::len).unwrap_or_default();
        let letters: Vec<String> = longest.chars().map(|letter| regex::escape(&letter.to_string())).collect();
        (longest.len() >= 2).then(|| letters.join("[-_]*"))
    });
    let pieces = pieces.collect::<Option<Vec<_>>>()?;
    RegexBuilder::new(&pieces.join("|")).case_insensitive(true).build().ok()
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

/// Whether the attribute was cleaned when it was rendered, once for all the spans that repeat it.
fn is_clean(name: &str) -> bool {
    let below = |list: &str| name.strip_prefix(list).is_some_and(|rest| rest.starts_with('.'));
    below(names::LLM_INPUT_MESSAGES)
        || below(names::LLM_TOOLS)
        || matches!(name, names::INPUT_MESSAGES | names::TOOL_DEFINITIONS)
}

/// A name in its compared form.
fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests;
