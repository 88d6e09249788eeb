//! The names that are told apart. A metric costs memory, here and at whoever stores it, for every combination of its
//! attributes; whoever may choose names freely (a caller's tools, a provider's models) must not be able to choose how much.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use opentelemetry::{KeyValue, Value};

use super::measurement::{OTHER, Word};

/// How many names of one kind are told apart. Those that come later are all called `_other`.
pub(super) const MOST_NAMES: usize = 500;

/// The longest name, in bytes; a longer one is `_other` too.
const LONGEST_NAME: usize = 256;

/// Which names were seen, by attribute.
#[derive(Debug, Default)]
pub(super) struct Vocabulary(RwLock<HashMap<&'static str, HashSet<Arc<str>>>>);

impl Vocabulary {
    /// The attribute as it is recorded.
    pub(super) fn attribute(&self, key: &'static str, word: &Word) -> KeyValue {
        match word {
            Word::Fixed(word) => KeyValue::new(key, *word),
            Word::Name(name) => KeyValue::new(key, self.known(key, name)),
        }
    }

    fn known(&self, key: &'static str, name: &Arc<str>) -> Value {
        if let Some(known) = self.seen(key, name) {
            return known.into();
        }
        let mut names = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let names = names.entry(key).or_default();
        if name.len() > LONGEST_NAME || (names.len() >= MOST_NAMES && !names.contains(name)) {
            return OTHER.as_str().to_owned().into();
        }
        names.insert(name.clone());
        name.clone().into()
    }

    fn seen(&self, key: &'static str, name: &Arc<str>) -> Option<Arc<str>> {
        let names = self.0.read().unwrap_or_else(PoisonError::into_inner);
        names.get(key)?.get(name).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(vocabulary: &Vocabulary, key: &'static str, name: &str) -> String {
        vocabulary.attribute(key, &Word::Name(name.into())).value.to_string()
    }

    #[test]
    fn names_beyond_the_most_are_not_told_apart_and_those_of_before_still_are() {
        let vocabulary = Vocabulary::default();
        for number in 0..MOST_NAMES {
            let name = format!("tool_{number}");
            assert_eq!(said(&vocabulary, "tool", &name), name);
        }
        assert_eq!(said(&vocabulary, "tool", "one_more"), "_other");
        assert_eq!(said(&vocabulary, "tool", "tool_7"), "tool_7");
        assert_eq!(said(&vocabulary, "model", "one_more"), "one_more", "another attribute has names of its own");
    }

    #[test]
    fn a_name_without_end_is_none() {
        assert_eq!(said(&Vocabulary::default(), "tool", &"x".repeat(LONGEST_NAME + 1)), "_other");
    }
}
