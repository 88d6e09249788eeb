//! Secret redaction in spans: removes the values of secret names and secrets of a recognizable form ([`SecretNames`]), the
//! known secrets, and the values that a run passed under secret names ([`RememberedSecrets`]), wherever a tool or a model
//! repeats them.

mod remembered;

use std::borrow::Cow;
use std::sync::Arc;

use toolgate_core::redact::{SecretNames, Secrets, SecretsBuilder};
use toolgate_core::tool::{Arguments, Toolset, secret_names};
use toolgate_ports::Recent;

use self::remembered::{RememberedSecrets, STYLE};
use super::toolset::RenderedToolset;
use super::{Span, Status, Value};

/// The most toolsets whose rendered form is kept.
const TOOLSETS: usize = 16;

/// The secrets to remove from every text of a span.
#[derive(Clone, Debug, Default)]
pub struct Redaction {
    names: SecretNames,
    secrets: Secrets,
    /// The values that this run passed under secret names.
    remembered: RememberedSecrets,
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

impl Redaction {
    /// Hides the values of names that match these patterns, and these secrets anywhere.
    pub fn new(keys: impl IntoIterator<Item = impl Into<String>>, secrets: SecretsBuilder) -> Result<Self, String> {
        Ok(Self { names: SecretNames::new(keys)?, ..Self::of_secrets(secrets) })
    }

    /// Whether it also hides secrets that are recognized by their form.
    #[must_use]
    pub fn with_recognizable(self, recognizable: bool) -> Self {
        Self { names: self.names.with_recognizable(recognizable), ..self }
    }

    /// Hides these secrets alone.
    pub fn of_secrets(secrets: SecretsBuilder) -> Self {
        Self { secrets: secrets.build(STYLE), ..Self::default() }
    }

    /// Adds the names that the schemas of these tools mark as secret ([`secret_names`]); `None` if that adds no name.
    pub(super) fn with_secrets_of(&self, tools: &Arc<Toolset>) -> Option<Self> {
        let known = self.toolsets.learned.get(|known, _| known == tools);
        let learned = known.unwrap_or_else(|| {
            let marked = tools.iter().flat_map(|tool| secret_names(&tool.input_schema));
            // What the run passed is not part of what all runs with these tools share.
            let base = || Self { secrets: self.secrets.clone(), ..Self::default() };
            let learned = self.names.and(marked).map(|names| Self { names, ..base() });
            self.toolsets.learned.insert(tools.clone(), learned.clone());
            learned
        });
        learned.map(|learned| Self { remembered: self.remembered.clone(), ..learned })
    }

    /// Also hides the values that calls pass under secret names; `None` if there are no new ones.
    pub(super) fn with_values_of<'a>(&self, calls: impl Iterator<Item = &'a Arguments>) -> Option<Self> {
        let mut values = Vec::new();
        calls.filter_map(Arguments::as_object).for_each(|members| self.names.secrets_of(members, &mut values));
        self.remembered.with(values).map(|remembered| Self { remembered, ..self.clone() })
    }

    /// The tools of a toolset without secrets, in values of at most `limit` bytes, which is the same for all runs.
    pub(super) fn rendered(&self, toolset: &Arc<Toolset>, limit: usize) -> Arc<RenderedToolset> {
        if let Some(rendered) = self.toolsets.rendered.get(|known, _| known == toolset) {
            return rendered;
        }
        let of_all_runs = Self { remembered: RememberedSecrets::default(), ..self.clone() };
        let rendered = Arc::new(RenderedToolset::new(toolset, limit, |value| of_all_runs.value(value)));
        self.toolsets.rendered.insert(toolset.clone(), rendered.clone());
        rendered
    }

    /// Removes secrets from the events and the status of a span.
    pub(super) fn apply(&self, span: &mut Span) {
        let said = span.events.iter_mut().flat_map(|event| &mut event.attributes);
        said.for_each(|(_, value)| self.value(value));
        if let Status::Error(message) = &mut span.status
            && let Some(clean) = self.cleaned(message)
        {
            *message = clean;
        }
    }

    /// The text without secrets.
    pub fn text(&self, text: String) -> String {
        self.cleaned(&text).unwrap_or(text)
    }

    /// Removes secrets from a value.
    pub(super) fn value(&self, value: &mut Value) {
        match value {
            Value::Text(text) => {
                if let Some(clean) = self.cleaned(text) {
                    *text = clean.into();
                }
            }
            Value::Texts(texts) => texts.iter_mut().for_each(|text| {
                if let Some(clean) = self.cleaned(text) {
                    *text = clean;
                }
            }),
            Value::Int(_) | Value::Float(_) | Value::Bool(_) => {}
        }
    }

    /// The text without secrets; `None` if it contains no secret.
    pub(crate) fn cleaned(&self, text: &str) -> Option<String> {
        let known = self.secrets.redacted(text);
        let known = match self.remembered.redacted(&known) {
            Some(clean) => Cow::Owned(clean),
            None => known,
        };
        self.names.redacted(&known).or(match known {
            Cow::Borrowed(_) => None,
            Cow::Owned(clean) => Some(clean),
        })
    }
}

#[cfg(test)]
mod tests;
