//! Remembered secrets: the values that a run passed to its tools under secret names. A tool or a model may repeat them
//! anywhere. They are kept for the run, in memory, and are hidden in all of its later spans.
//!
//! A short value, such as a PIN, is hidden only where it is a word of its own: its letters occur in other words.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use toolgate_core::redact::{REDACTED, Secrets, SecretsBuilder, Style};

use crate::spans::attributes::CUT;

/// Pieces of credentials stay: texts of conversations contain any word.
pub(super) const STYLE: Style = Style { hidden: REDACTED, omissions: &[CUT], pieces: false };

/// The shortest value that is remembered, in bytes.
const SHORTEST: usize = 4;
/// The shortest value that is hidden within a word, in bytes: that of known secrets.
const SHORTEST_IN_WORD: usize = 8;
/// The most values of a run, which bounds the time for a text.
const MOST: usize = 256;

/// The values of secret arguments of a run. Clones share them.
#[derive(Clone, Default)]
pub(super) struct RememberedSecrets {
    values: Arc<BTreeSet<String>>,
    long: Secrets,
}

impl RememberedSecrets {
    /// The same with these values; `None` if there are no new ones.
    pub(super) fn with(&self, values: Vec<String>) -> Option<Self> {
        let room = MOST - self.values.len();
        let is_new = |value: &String| value.len() >= SHORTEST && value != REDACTED && !self.values.contains(value);
        let fresh: Vec<String> = values.into_iter().filter(is_new).take(room).collect();
        if fresh.is_empty() {
            return None;
        }
        let values: BTreeSet<String> = self.values.iter().cloned().chain(fresh).collect();
        let long = SecretsBuilder::of_values(values.iter().map(String::as_str)).build(STYLE);
        Some(Self { values: Arc::new(values), long })
    }

    /// The text without these values; `None` if it has none.
    pub(super) fn redacted(&self, text: &str) -> Option<String> {
        let mut clean = self.long.redacted(text);
        for word in self.values.iter().filter(|value| value.len() < SHORTEST_IN_WORD) {
            if let Some(without) = without_word(&clean, word) {
                clean = Cow::Owned(without);
            }
        }
        match clean {
            Cow::Borrowed(_) => None,
            Cow::Owned(clean) => Some(clean),
        }
    }
}

fn without_word(text: &str, word: &str) -> Option<String> {
    let is_letter = |sign: Option<char>| sign.is_some_and(char::is_alphanumeric);
    let stands_alone = |(at, _): &(usize, &str)| {
        let (before, rest) = text.split_at(*at);
        let behind = rest.get(word.len()..).unwrap_or_default();
        // The letter of an escape such as `\n` does not belong to the word.
        let before_escape = before.char_indices().rev().nth(1).is_some_and(|(_, sign)| sign == '\\');
        !(is_letter(before.chars().next_back()) && !before_escape || is_letter(behind.chars().next()))
    };
    let (mut clean, mut from) = (String::new(), 0);
    for (at, _) in text.match_indices(word).filter(stands_alone) {
        clean.push_str(text.get(from..at)?);
        clean.push_str(REDACTED);
        from = at + word.len();
    }
    clean.push_str(text.get(from..)?);
    (from > 0).then_some(clean)
}

impl fmt::Debug for RememberedSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} values", self.values.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remembering(values: &[&str]) -> RememberedSecrets {
        RememberedSecrets::default().with(values.iter().map(|value| (*value).to_owned()).collect()).expect("new values")
    }

    #[test]
    fn a_long_value_is_hidden_anywhere_and_a_short_one_as_a_word() {
        let remembered = remembering(&["correct horse", "4711", "ab"]);
        for (said, left) in [
            ("xcorrect horsex", Some("x__REDACTED__x")),
            ("PIN 4711, 47110, x4711 and\\n4711", Some("PIN __REDACTED__, 47110, x4711 and\\n__REDACTED__")),
            ("{\"pin\":4711}", Some("{\"pin\":__REDACTED__}")),
            ("ab", None),
        ] {
            assert_eq!(remembered.redacted(said).as_deref(), left);
        }
    }

    #[test]
    fn known_values_are_not_new_and_are_never_printed() {
        let remembered = remembering(&["hunter2"]);
        assert!(remembered.with(vec!["hunter2".into(), REDACTED.into()]).is_none());
        assert!(!format!("{remembered:?}").contains("hunter2"));
    }
}
