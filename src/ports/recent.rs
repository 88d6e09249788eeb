//! Cache of the most recently used values (LRU), for keys that are compared and not hashed: large ones that share their
//! parts, so that equal keys are compared without their contents.

use std::fmt;
use std::sync::{Mutex, PoisonError};

/// The last values, the most recently used one last.
pub struct Recent<K, V> {
    capacity: usize,
    entries: Mutex<Vec<(K, V)>>,
}

impl<K, V: Clone> Recent<K, V> {
    /// A cache of at most so many values.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, entries: Mutex::default() }
    }

    /// The value of the key that `is_it` accepts.
    pub fn get(&self, is_it: impl Fn(&K, &V) -> bool) -> Option<V> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let place = entries.iter().rposition(|(key, value)| is_it(key, value))?;
        let entry = entries.remove(place);
        let value = entry.1.clone();
        entries.push(entry);
        Some(value)
    }

    /// Adds a value in place of the one that was not used for the longest time.
    pub fn insert(&self, key: K, value: V) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= self.capacity && !entries.is_empty() {
            entries.remove(0);
        }
        entries.push((key, value));
    }
}

impl<K, V> fmt::Debug for Recent<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recent").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_that_was_not_used_for_the_longest_time_is_replaced() {
        let recent = Recent::new(2);
        let get = |key: &str| recent.get(|known: &String, _| known == key);
        recent.insert("a".to_owned(), 1);
        recent.insert("b".to_owned(), 2);
        assert_eq!(get("a"), Some(1));
        recent.insert("c".to_owned(), 3);
        assert_eq!((get("a"), get("b"), get("c")), (Some(1), None, Some(3)));
    }
}
