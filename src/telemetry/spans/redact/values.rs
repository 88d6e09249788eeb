//! What is known to be a secret, found wherever it stands.

use std::borrow::Cow;
use std::fmt;

use regex::{Regex, RegexBuilder};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value as Json;

use crate::telemetry::spans::attributes::{CUT, REDACTED};

/// A value that is shorter is a word like any other: to blot it out would garble what it stands in.
const SHORTEST: usize = 8;

/// The beginning of a secret before a cut is taken for one from so many bytes on.
const TELLING_START: usize = 4;

/// What is known to be a secret.
#[derive(Clone, Default)]
pub(super) struct Values {
    /// The longest first, for one may be a part of another.
    longest_first: Vec<SecretString>,
    /// Finds any of them in one go.
    any: Option<Regex>,
}

impl Values {
    /// These, each in every form in which it may be said.
    pub(super) fn of(values: impl IntoIterator<Item = SecretString>) -> Result<Self, String> {
        let mut secrets: Vec<SecretString> =
            values.into_iter().flat_map(|value| forms(value.expose_secret())).collect();
        if secrets.is_empty() {
            return Ok(Self::default());
        }
        secrets.sort_by_key(|value| std::cmp::Reverse(value.expose_secret().len()));
        let words: Vec<String> = secrets.iter().map(|secret| regex::escape(secret.expose_secret())).collect();
        // Of several that begin at one place the first is taken, which is the longest.
        let any = RegexBuilder::new(&words.join("|")).size_limit(usize::MAX).build();
        let any = any.map_err(|_| "the secrets of the configuration are too long to be looked for".to_owned())?;
        Ok(Self { longest_first: secrets, any: Some(any) })
    }

    /// Whether nothing is known.
    pub(super) fn is_empty(&self) -> bool {
        self.longest_first.is_empty()
    }

    /// The text without any of them; `None` if there are none in it.
    pub(super) fn without(&self, text: &str) -> Option<String> {
        let any = self.any.as_ref()?;
        let mut clean = match any.replace_all(text, REDACTED) {
            Cow::Borrowed(_) => None,
            Cow::Owned(clean) => Some(clean),
        };
        let secrets = self.longest_first.iter().map(ExposeSecret::expose_secret);
        let kept = clean.as_deref().unwrap_or(text);
        if let Some(cut) = kept.rfind(CUT)
            && let Some(begun) = kept.get(..cut).and_then(|kept| secrets.filter_map(|secret| begun(kept, secret)).max())
        {
            let mut text = kept.to_owned();
            text.replace_range(cut - begun..cut, REDACTED);
            clean = Some(text);
        }
        clean
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Values").field(&self.longest_first.len()).finish()
    }
}

/// Of a text that was cut in the middle of a secret, how much is of that: it is one still.
fn begun(kept: &str, secret: &str) -> Option<usize> {
    let beginnings = secret.char_indices().map(|(at, _)| at).filter(|at| *at >= TELLING_START);
    beginnings.rev().find(|end| secret.get(..*end).is_some_and(|beginning| kept.ends_with(beginning)))
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
