//! Changes of an input schema, by their effect on arguments that fitted the earlier one.
//!
//! References are followed, combined schemas are read as one, and variants are compared with each other. Keywords that are
//! not compared in detail (`not`, `if`, `pattern`, …) count as stricter when they are new or other.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Map, Value, json};
use toolgate_core::json::pointer_token;

use super::finding::one_line;

/// The deepest schema that is compared.
const MAX_DEPTH: usize = 40;
/// The most comparisons; variants of variants multiply them.
const MAX_COMPARISONS: usize = 20_000;

/// What a change means for earlier arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// The new schema does not accept some of them.
    Refused,
    /// The new schema accepts them, and a member has no meaning any more.
    Ignored,
}

/// A change at a place of the new schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SchemaChange {
    pub(super) effect: Effect,
    pub(super) pointer: String,
    pub(super) text: String,
}

/// The changes that concern earlier arguments, each place once.
pub(super) fn schema_changes(old: &Value, new: &Value) -> Vec<SchemaChange> {
    let mut comparer = SchemaComparer { old_root: old, new_root: new, compared: HashMap::new(), rest: MAX_COMPARISONS };
    let found = comparer.compare(old, new, "", 0);
    if comparer.rest == 0 {
        return vec![refused("", "", "the schema changed, and has too many variants to compare all of them")];
    }
    let mut changes: Vec<SchemaChange> = Vec::new();
    for change in found {
        if !changes.contains(&change) {
            changes.push(change);
        }
    }
    changes
}

/// Keywords of bounds, and whether the second value is stricter than the first.
type Bound = (&'static str, fn(f64, f64) -> bool);
const BOUNDS: [Bound; 10] = [
    ("minimum", |then, now| now > then),
    ("exclusiveMinimum", |then, now| now > then),
    ("minLength", |then, now| now > then),
    ("minItems", |then, now| now > then),
    ("minProperties", |then, now| now > then),
    ("maximum", |then, now| now < then),
    ("exclusiveMaximum", |then, now| now < then),
    ("maxLength", |then, now| now < then),
    ("maxItems", |then, now| now < then),
    ("maxProperties", |then, now| now < then),
];

/// Keywords that are compared as a whole.
const WHOLE: [&str; 14] = [
    "pattern",
    "format",
    "multipleOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
    "propertyNames",
    "contains",
    "prefixItems",
    "uniqueItems",
];

struct SchemaComparer<'a> {
    old_root: &'a Value,
    new_root: &'a Value,
    /// The changes between two references that were already compared. Those between references that are being compared are
    /// empty: a recursive schema differs where its own keywords do.
    compared: HashMap<(String, String), Vec<SchemaChange>>,
    /// The comparisons that are left.
    rest: usize,
}

impl SchemaComparer<'_> {
    fn compare(&mut self, old: &Value, new: &Value, at: &str, depth: usize) -> Vec<SchemaChange> {
        // Equal text may stand for other definitions.
        let has_references = depth < MAX_DEPTH && new.to_string().contains("\"$ref\"");
        if (old == new && !has_references) || *old == Value::Bool(false) || depth >= MAX_DEPTH {
            return Vec::new();
        }
        self.rest = self.rest.saturating_sub(1);
        if self.rest == 0 {
            return Vec::new();
        }
        if *new == Value::Bool(false) {
            return vec![refused(at, "", "no value is accepted now")];
        }
        let (old_target, new_target) = (target(old, self.old_root), target(new, self.new_root));
        match (old_target, new_target) {
            (Some((old_name, old)), Some((new_name, new))) => {
                let key = (old_name.to_owned(), new_name.to_owned());
                if let Some(changes) = self.compared.get(&key) {
                    return changes.clone();
                }
                self.compared.insert(key.clone(), Vec::new());
                let changes = self.compare(&old.clone(), &new.clone(), new_name, depth + 1);
                self.compared.insert(key, changes.clone());
                changes
            }
            (Some((_, old)), None) => self.compare(&old.clone(), new, at, depth + 1),
            (None, Some((new_name, new))) => self.compare(old, &new.clone(), new_name, depth + 1),
            (None, None) => {
                let (old, new) = (combined(old, self.old_root, 0), combined(new, self.new_root, 0));
                if union(&old).is_none() && union(&new).is_none() {
                    return self.compare_keywords(&old, &new, at, depth);
                }
                self.compare_variants(&old, &new, at, depth)
            }
        }
    }

    /// Compares schemas of which at least one has variants: the keywords beside the variants, and then each variant.
    fn compare_variants(&mut self, old: &Value, new: &Value, at: &str, depth: usize) -> Vec<SchemaChange> {
        if let (Some(_), Some(_)) = (union(old), union(new)) {
            let found = self.compare_keywords(old, new, at, depth);
            if !found.is_empty() {
                return found;
            }
        }
        let (before, after) = (variants(old, self.old_root), variants(new, self.new_root));
        let is_accepted = |comparer: &mut Self, one: &Value| {
            let mut changes = after.iter().map(|other| comparer.compare(one, other, at, depth + 1));
            changes.any(|changes| changes.iter().all(|change| change.effect != Effect::Refused))
        };
        let Some(lost) = before.iter().find(|variant| !is_accepted(self, variant)) else { return Vec::new() };
        let text = format!("a variant is no longer accepted: {}", one_line(&lost.to_string(), 120));
        vec![refused(at, union(new).map_or("", |(keyword, _)| keyword), text)]
    }

    fn compare_keywords(&mut self, old: &Value, new: &Value, at: &str, depth: usize) -> Vec<SchemaChange> {
        let mut found = Vec::from_iter(types_lost(old, new, at));
        found.extend(values_lost(old, new, at));
        for (keyword, is_tighter) in BOUNDS {
            let number = |schema: &Value| schema.get(keyword).and_then(Value::as_f64);
            if number(new).is_some_and(|now| number(old).is_none_or(|then| is_tighter(then, now))) {
                found.push(refused(at, keyword, format!("`{keyword}` is stricter")));
            }
        }
        for keyword in WHOLE {
            if new.get(keyword).is_some() && new.get(keyword) != old.get(keyword) {
                found.push(refused(at, keyword, format!("`{keyword}` is new or other")));
            }
        }
        found.extend(self.members(old, new, at, depth));
        if let Some(items) = new.get("items") {
            let before = old.get("items").unwrap_or(&Value::Bool(true));
            found.extend(self.compare(before, items, &format!("{at}/items"), depth + 1));
        }
        found
    }

    fn members(&mut self, old: &Value, new: &Value, at: &str, depth: usize) -> Vec<SchemaChange> {
        let mut found = Vec::new();
        let (old_names, new_names) = (properties(old), properties(new));
        for name in required(new).filter(|name| !required(old).any(|known| known == *name)) {
            found.push(refused(at, "required", format!("`{}` is now required", one_line(name, 80))));
        }
        let further = |schema: &Value| match schema.get("additionalProperties") {
            None if schema.get("unevaluatedProperties") == Some(&Value::Bool(false)) => Value::Bool(false),
            None => Value::Bool(true),
            Some(further) => further.clone(),
        };
        let (old_further, new_further) = (further(old), further(new));
        for (name, before) in old_names.iter().filter(|(name, _)| !new_names.contains_key(*name)) {
            let accepts = self.compare(before, &new_further, at, depth + 1).is_empty();
            let text = if accepts { "no longer declared, and still accepted" } else { "no longer accepted" };
            let change = refused(at, "properties", format!("`{}` is {text}", one_line(name, 80)));
            found.push(if accepts { SchemaChange { effect: Effect::Ignored, ..change } } else { change });
        }
        if !old_names.is_empty() && !self.compare(&old_further, &new_further, at, depth + 1).is_empty() {
            found.push(refused(at, "additionalProperties", "undeclared properties are no longer accepted"));
        }
        for (name, before) in &old_names {
            if let Some(after) = new_names.get(name) {
                let at = format!("{at}/properties/{}", pointer_token(name));
                found.extend(self.compare(before, after, &at, depth + 1));
            }
        }
        found
    }
}

fn refused(at: &str, keyword: &str, text: impl Into<String>) -> SchemaChange {
    let pointer = if keyword.is_empty() { at.to_owned() } else { format!("{at}/{keyword}") };
    SchemaChange { effect: Effect::Refused, pointer, text: text.into() }
}

fn types_lost(old: &Value, new: &Value, at: &str) -> Option<SchemaChange> {
    let (before, after) = (types(old), types(new));
    let admits = |kind: &str| after.iter().any(|one| *one == kind || (*one == "number" && kind == "integer"));
    let is_lost = !after.is_empty() && (before.is_empty() || !before.iter().all(|kind| admits(kind)));
    is_lost.then(|| refused(at, "type", format!("the type is now {}", after.join(" or "))))
}

fn values_lost(old: &Value, new: &Value, at: &str) -> Option<SchemaChange> {
    let allowed = values(new)?;
    let keyword = if new.get("const").is_some() { "const" } else { "enum" };
    let Some(before) = values(old) else {
        return Some(refused(at, keyword, "only some values are accepted now"));
    };
    let lost: Vec<String> =
        before.iter().filter(|value| !allowed.contains(value)).map(|value| value.to_string()).collect();
    (!lost.is_empty()).then(|| refused(at, keyword, format!("no longer accepted: {}", one_line(&lost.join(", "), 120))))
}

/// The place and the schema to which a reference points.
fn target<'s>(schema: &'s Value, root: &'s Value) -> Option<(&'s str, &'s Value)> {
    let pointer = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
    Some((pointer, root.pointer(pointer)?))
}

/// The schema with the parts of its `allOf` in it. Of a keyword that stands in several parts, properties and required
/// names are joined, and of others the first counts.
fn combined<'s>(schema: &'s Value, root: &Value, depth: usize) -> Cow<'s, Value> {
    let Some(parts) = schema.get("allOf").and_then(Value::as_array).filter(|_| depth < MAX_DEPTH) else {
        return Cow::Borrowed(schema);
    };
    let mut whole = schema.as_object().cloned().unwrap_or_default();
    whole.remove("allOf");
    for part in parts {
        let part = target(part, root).map_or(part, |(_, target)| target);
        for (keyword, value) in combined(part, root, depth + 1).as_object().into_iter().flatten() {
            match (whole.get_mut(keyword), value) {
                (Some(Value::Object(known)), Value::Object(more)) if keyword == "properties" => {
                    for (name, schema) in more {
                        known.entry(name).or_insert_with(|| schema.clone());
                    }
                }
                (Some(Value::Array(known)), Value::Array(more)) if keyword == "required" => {
                    known.extend_from_slice(more)
                }
                (Some(_), _) => {}
                (None, value) => {
                    whole.insert(keyword.clone(), value.clone());
                }
            }
        }
    }
    Cow::Owned(Value::Object(whole))
}

/// The keyword of a union, and its variants.
fn union(schema: &Value) -> Option<(&'static str, &Vec<Value>)> {
    ["anyOf", "oneOf"].into_iter().find_map(|keyword| Some((keyword, schema.get(keyword)?.as_array()?)))
}

/// The variants of a schema, each with the keywords beside them; one for each type of a schema without a union.
fn variants(schema: &Value, root: &Value) -> Vec<Value> {
    let mut base = schema.clone();
    let parts: Vec<Value> = match (union(schema), schema.get("type").and_then(Value::as_array)) {
        (Some((keyword, variants)), _) => {
            base.as_object_mut().map(|members| members.remove(keyword));
            variants.clone()
        }
        (None, Some(kinds)) => {
            base.as_object_mut().map(|members| members.remove("type"));
            kinds.iter().map(|kind| json!({"type": kind})).collect()
        }
        (None, None) => return vec![base],
    };
    parts.iter().map(|part| combined(&json!({"allOf": [part, base]}), root, 0).into_owned()).collect()
}

fn properties(schema: &Value) -> Map<String, Value> {
    schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default()
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// The only values that a schema accepts, if it names them.
fn values(schema: &Value) -> Option<Vec<&Value>> {
    match schema.get("const") {
        Some(value) => Some(vec![value]),
        None => Some(schema.get("enum")?.as_array()?.iter().collect()),
    }
}

/// The types that a schema names, or those of its only values.
fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        Some(_) | None => values(schema).unwrap_or_default().into_iter().map(type_of).collect(),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
