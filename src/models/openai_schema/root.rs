//! Schema root: the API requires an object without `$ref`, `allOf`, `anyOf`, `oneOf`, `enum`, `const` and `not`.
//! References and conjunctions are expanded; alternatives keep what they have in common, with everything else optional.

use serde_json::{Map, Value, json};

type Object = Map<String, Value>;

/// The deepest expansion. Schemas may refer to themselves, and a hostile one does so many times.
const MAX_DEPTH: usize = 16;
const MAX_PARTS: usize = 256;

/// A root being rewritten.
pub(super) struct Root<'a> {
    whole: &'a Value,
    parts: usize,
    lost: Vec<String>,
}

impl<'a> Root<'a> {
    /// The root of this schema.
    pub(super) fn new(whole: &'a Value) -> Self {
        Self { whole, parts: 0, lost: Vec::new() }
    }

    /// The object without keywords that are unsupported at the root, and the dropped rules.
    pub(super) fn flatten(mut self, object: Object) -> (Object, Vec<String>) {
        let object = self.part(object, 0);
        self.lost.dedup();
        (object, self.lost)
    }

    fn part(&mut self, mut object: Object, depth: usize) -> Object {
        self.parts += 1;
        if depth > MAX_DEPTH || self.parts > MAX_PARTS {
            self.lost.push("Its root refers to itself or to too many schemas: some of them are left out.".into());
            return Object::new();
        }
        if let Some(reference) = object.remove("$ref") {
            match self.target(&reference) {
                Some(target) => {
                    let target = self.part(target, depth + 1);
                    self.conjoin(&mut object, target);
                }
                None => self.lost.push(format!("`$ref` at the root has no target: {reference}.")),
            }
        }
        for branch in branches(&mut object, "allOf") {
            let branch = self.part(branch, depth + 1);
            self.conjoin(&mut object, branch);
        }
        for word in ["anyOf", "oneOf"] {
            let alternatives = branches(&mut object, word);
            let mut alternatives: Vec<Object> =
                alternatives.into_iter().map(|branch| self.part(branch, depth + 1)).collect();
            alternatives.retain(|branch| branch.get("type").is_none_or(allows_object));
            if alternatives.len() > 1 {
                self.lost.push(format!(
                    "`{word}` at the root is merged: the rules on which arguments go together are lost."
                ));
            }
            if let Some(merged) = disjoin(alternatives) {
                self.conjoin(&mut object, merged);
            }
        }
        for word in ["enum", "const", "not"] {
            if object.remove(word).is_some() {
                self.lost.push(format!("`{word}` at the root is left out."));
            }
        }
        object
    }

    fn target(&self, reference: &Value) -> Option<Object> {
        let pointer = reference.as_str()?.strip_prefix('#')?;
        self.whole.pointer(pointer)?.as_object().cloned()
    }

    /// Adds a further schema that must hold.
    fn conjoin(&mut self, object: &mut Object, other: Object) {
        let is_alone = !object.contains_key("properties");
        for (word, said) in other {
            match (word.as_str(), object.get_mut(&word), said) {
                // Definitions of a part are not reachable from here, unless they were meant as the root's own.
                ("$defs" | "definitions", Some(Value::Object(known)), Value::Object(more)) => {
                    more.into_iter().for_each(|(name, schema)| add_definition(known, name, schema));
                }
                ("properties", Some(Value::Object(known)), Value::Object(more)) => {
                    add_members(known, more);
                }
                ("required", Some(Value::Array(known)), Value::Array(more)) => {
                    known.extend(more.into_iter().filter(|name| !known.contains(name)).collect::<Vec<_>>());
                }
                // It applies to the properties next to it, and the merge adds properties.
                ("additionalProperties", None, said) if !is_alone && said != true => {
                    self.lost.push("`additionalProperties` of a part of the root is left out.".into());
                }
                ("type" | "title" | "description" | "$schema" | "$id" | "$comment" | "examples", Some(_), _) => {}
                (_, None, said) => {
                    object.insert(word, said);
                }
                (_, Some(known), said) if *known == said => {}
                (word, Some(_), _) => self.lost.push(format!("A second `{word}` at the root is left out.")),
            }
        }
    }
}

/// Whether a `type` allows objects.
pub(super) fn allows_object(types: &Value) -> bool {
    types == "object" || types.as_array().is_some_and(|types| types.iter().any(|one| one == "object"))
}

/// Removes the schemas from a combination; `true` and `{}` are ignored.
fn branches(object: &mut Object, word: &str) -> Vec<Object> {
    let Some(Value::Array(branches)) = object.remove(word) else { return Vec::new() };
    let as_object = |branch| match branch {
        Value::Object(object) => Some(object),
        Value::Bool(true) => Some(Object::new()),
        Value::Null | Value::Bool(false) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
    };
    branches.into_iter().filter_map(as_object).collect()
}

/// Adds members; one that exists with another schema must match both.
fn add_members(known: &mut Object, more: Object) {
    for (name, schema) in more {
        match known.get_mut(&name) {
            None => {
                known.insert(name, schema);
            }
            Some(known) if *known == schema => {}
            Some(known) => *known = json!({"allOf": [known.take(), schema]}),
        }
    }
}

fn add_definition(known: &mut Object, name: String, schema: Value) {
    known.entry(name).or_insert(schema);
}

/// The common part of all branches, with all other properties as optional.
fn disjoin(mut branches: Vec<Object>) -> Option<Object> {
    if branches.len() < 2 {
        return branches.pop();
    }
    let mut merged = Object::new();
    let mut properties: Map<String, Value> = Map::new();
    let is_closed = |branch: &Object| branch.get("additionalProperties") == Some(&Value::Bool(false));
    let is_required = |branch: &Object, name: &Value| {
        branch.get("required").and_then(Value::as_array).is_some_and(|names| names.contains(name))
    };
    let first_required = branches.first().and_then(|branch| branch.get("required")?.as_array().cloned());
    let required: Vec<Value> = first_required.unwrap_or_default();
    let required: Vec<Value> =
        required.into_iter().filter(|name| branches.iter().all(|branch| is_required(branch, name))).collect();
    if !required.is_empty() {
        merged.insert("required".into(), required.into());
    }
    if branches.iter().all(is_closed) {
        merged.insert("additionalProperties".into(), false.into());
    }
    for mut branch in branches {
        for word in ["$defs", "definitions"] {
            if let Some(Value::Object(definitions)) = branch.remove(word)
                && let Some(known) = merged.entry(word).or_insert_with(|| json!({})).as_object_mut()
            {
                definitions.into_iter().for_each(|(name, schema)| add_definition(known, name, schema));
            }
        }
        if let Some(Value::Object(more)) = branch.remove("properties") {
            more.into_iter().for_each(|(name, schema)| add_alternative(&mut properties, name, schema));
        }
    }
    if !properties.is_empty() {
        merged.insert("properties".into(), properties.into());
    }
    Some(merged)
}

/// Adds a property that may also match another branch's schema.
fn add_alternative(properties: &mut Object, name: String, schema: Value) {
    let Some(known) = properties.get_mut(&name) else {
        properties.insert(name, schema);
        return;
    };
    if *known == schema {
        return;
    }
    match known.get_mut("anyOf").and_then(Value::as_array_mut) {
        Some(alternatives) if !alternatives.contains(&schema) => alternatives.push(schema),
        Some(_) => {}
        None => *known = json!({"anyOf": [known.take(), schema]}),
    }
}
