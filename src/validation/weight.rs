//! How much work one check can be, before any is done.
//!
//! References may multiply: thirty definitions that each refer twice to the next make a billion checks out of one
//! kilobyte. The weight of a schema is the number of its nodes with every local reference written out.

use std::collections::HashMap;

use serde_json::Value;

/// The number of nodes with local references written out; saturates. A reference back to a definition that is being
/// counted weighs one: it goes on only as deep as the value does.
pub(super) fn of(schema: &Value) -> u64 {
    Weigher { root: schema, known: HashMap::new() }.weigh(schema)
}

struct Weigher<'a> {
    root: &'a Value,
    /// By reference; `None` while it is being counted.
    known: HashMap<&'a str, Option<u64>>,
}

impl<'a> Weigher<'a> {
    fn weigh(&mut self, node: &'a Value) -> u64 {
        match node {
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
            Value::Array(items) => items.iter().fold(0, |sum, item| sum.saturating_add(self.weigh(item))),
            Value::Object(members) => members.iter().fold(1, |sum, (key, member)| {
                // Definitions weigh where they are referred to.
                let weight = match (key.as_str(), member) {
                    ("$defs" | "definitions", _) => 0,
                    ("$ref" | "$dynamicRef", Value::String(reference)) => self.follow(reference),
                    (_, member) => self.weigh(member),
                };
                sum.saturating_add(weight)
            }),
        }
    }

    fn follow(&mut self, reference: &'a str) -> u64 {
        if let Some(known) = self.known.get(reference) {
            return known.unwrap_or(1);
        }
        let target = match reference.strip_prefix('#') {
            Some(pointer) => self.root.pointer(pointer),
            None => None,
        };
        let Some(target) = target else { return 1 };
        self.known.insert(reference, None);
        let weight = self.weigh(target);
        self.known.insert(reference, Some(weight));
        weight
    }
}
