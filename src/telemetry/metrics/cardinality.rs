//! Cardinality limit: bounds the number of names per attribute. Every combination of attributes costs memory, here and
//! in the metrics store. Callers and providers choose names freely (tools, models), so they must not be able to choose
//! the number.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use opentelemetry::{KeyValue, Value};

use super::measurement::{AttributeValue, OTHER};

/// The most names of one attribute. Later names are recorded as `_other`.
pub(super) const MOST_NAMES: usize = 500;

/// The longest name, in bytes; a longer one is recorded as `_other` too.
const LONGEST_NAME: usize = 256;

/// The names seen so far, by attribute.
#[derive(Debug, Default)]
pub(super) struct CardinalityLimit(RwLock<HashMap<&'static str, HashSet<Arc<str>>>>);

impl CardinalityLimit {
    /// The attribute as recorded.
    pub(super) fn attribute(&self, key: &'static str, word: &AttributeValue) -> KeyValue {
        match word {
            AttributeValue::Fixed(word) => KeyValue::new(key, *word),
            AttributeValue::Name(name) => KeyValue::new(key, self.known(key, name)),
        }
    }

    fn known(&self, key: &'static str, name: &Arc<str>) -> Value {
        if let Some(known) = self.recorded(key, name) {
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

    /// The name, if it is already recorded.
    fn recorded(&self, key: &'static str, name: &Arc<str>) -> Option<Arc<str>> {
        let names = self.0.read().unwrap_or_else(PoisonError::into_inner);
        names.get(key)?.get(name).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(cardinality: &CardinalityLimit, key: &'static str, name: &str) -> String {
        cardinality.attribute(key, &AttributeValue::Name(name.into())).value.to_string()
    }

    #[test]
    fn names_beyond_the_limit_are_other_and_earlier_names_stay() {
        let cardinality = CardinalityLimit::default();
        for number in 0..MOST_NAMES {
            let name = format!("tool_{number}");
            assert_eq!(said(&cardinality, "tool", &name), name);
        }
        assert_eq!(said(&cardinality, "tool", "one_more"), "_other");
        assert_eq!(said(&cardinality, "tool", "tool_7"), "tool_7");
        assert_eq!(said(&cardinality, "model", "one_more"), "one_more", "each attribute has its own limit");
    }

    #[test]
    fn a_name_that_is_too_long_is_other() {
        assert_eq!(said(&CardinalityLimit::default(), "tool", &"x".repeat(LONGEST_NAME + 1)), "_other");
    }
}
