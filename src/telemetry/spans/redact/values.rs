//! Known secret values, found anywhere in a text.

use std::borrow::Cow;
use std::fmt;

use regex::{Regex, RegexBuilder};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value as Json;

use crate::spans::attributes::{CUT, REDACTED};

/// The shortest value that is redacted. Shorter values are ordinary words, and redacting them would garble texts.
const SHORTEST: usize = 8;

/// The shortest prefix of a secret, right before a cut, that counts as the secret.
const TELLING_START: usize = 4;

/// The known secret values.
#[derive(Clone, Default)]
pub(super) struct Values {
    /// Sorted with the longest first, because one secret may contain another.
    longest_first: Vec<SecretString>,
    /// Matches any of them in one pass.
    any: Option<Regex>,
}

impl Values {
    /// These secrets, each in all its written forms.
    pub(super) fn of(values: impl IntoIterator<Item = SecretString>) -> Result<Self, String> {
        let mut secrets: Vec<SecretString> =
            values.into_iter().flat_map(|value| forms(value.expose_secret())).collect();
        if secrets.is_empty() {
            return Ok(Self::default());
        }
        secrets.sort_by_key(|value| std::cmp::Reverse(value.expose_secret().len()));
        let words: Vec<String> = secrets.iter().map(|secret| regex::escape(secret.expose_secret())).collect();
        // At the same start, the first alternative wins, which is the longest.
        let any = RegexBuilder::new(&words.join("|")).size_limit(usize::MAX).build();
        let any = any.map_err(|_| "the secrets of the configuration are too long to search for".to_owned())?;
        Ok(Self { longest_first: secrets, any: Some(any) })
    }

    /// Whether no secret is known.
    pub(super) fn is_empty(&self) -> bool {
        self.longest_first.is_empty()
    }

    /// The text without the secrets; `None` if it contains no secret.
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

/// The length of a secret's prefix at the end of a cut text, if there is one.
fn begun(kept: &str, secret: &str) -> Option<usize> {
    let beginnings = secret.char_indices().map(|(at, _)| at).filter(|at| *at >= TELLING_START);
    beginnings.rev().find(|end| secret.get(..*end).is_some_and(|beginning| kept.ends_with(beginning)))
}

/// The forms of a value: as is, without its authorization scheme, and as JSON.
fn forms(value: &str) -> Vec<SecretString> {
    let value = value.trim();
    let bare = match value.split_once(' ') {
        Some((scheme, rest)) if scheme.chars().all(|letter| letter.is_ascii_alphabetic()) => rest.trim(),
        Some(_) | None => value,
    };
    // Each line of a multi-line key counts on its own: it may be printed line by line.
    let pieces = [value, bare].into_iter().chain(value.lines().map(str::trim));
    let mut forms: Vec<String> = pieces.filter(|piece| piece.len() >= SHORTEST).map(str::to_owned).collect();
    let quoted = |form: &String| Json::from(form.as_str()).to_string().trim_matches('"').to_owned();
    forms.extend(forms.iter().map(quoted).collect::<Vec<_>>());
    forms.sort();
    forms.dedup();
    forms.into_iter().map(SecretString::from).collect()
}
