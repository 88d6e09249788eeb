//! Schema references. Gemini follows references to the root and into `$defs`, and rejects the whole request for a loop
//! in which every step is required: "ref loops are only supported if they include optional or nullable property values,
//! or a potentially-zero-length array items". (On nullable ones its reference says the opposite, so they count as
//! required here.)

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use toolgate_core::json::pointer_token;

const ROOT: &str = "#";

/// For each place that references can target, the places it requires.
type RequiredTargets = BTreeMap<String, BTreeSet<String>>;

/// Called with a reference, the place that contains it (the root or a definition), and whether a value of that place
/// requires it.
type ReferenceVisitor<'a> = &'a mut dyn FnMut(&str, &mut Map<String, Value>, bool);

/// Rewrites every reference to one that Gemini follows; one that cannot be rewritten becomes any value and adds a
/// sentence to `lost`.
pub(super) fn settle(schema: &mut Value, lost: &mut Vec<String>) {
    let moved = move_into_definitions(schema);
    let mut needs = RequiredTargets::new();
    each_reference(schema, &mut |place, reference, is_needed| {
        let Some(target) = target(reference) else { return };
        match moved.get(&target) {
            Some(None) => {
                lost.push(format!("{place} is sent without {target}, which does not exist"));
                reference.clear();
                return;
            }
            Some(Some(now)) => drop(reference.insert("$ref".into(), now.as_str().into())),
            None => {}
        }
        if is_needed {
            let target = moved.get(&target).cloned().flatten().unwrap_or(target);
            needs.entry(place.to_owned()).or_default().insert(target);
        }
    });
    each_reference(schema, &mut |place, reference, is_needed| {
        if let Some(target) = target(reference).filter(|target| is_needed && leads_to(&needs, target, place)) {
            lost.push(format!("{place} is sent with any value for {target}, which requires itself"));
            reference.clear();
        }
    });
}

/// Moves the targets of other references into definitions. Returns their new places, or `None` for a target that does
/// not exist.
fn move_into_definitions(schema: &mut Value) -> BTreeMap<String, Option<String>> {
    let mut moved = BTreeMap::new();
    let mut targets = BTreeSet::new();
    each_reference(schema, &mut |_, reference, _| targets.extend(target(reference)));
    for target in targets {
        let found = target.strip_prefix(ROOT).and_then(|pointer| schema.pointer(pointer)).cloned();
        let is_definition = target.strip_prefix("#/$defs/").is_some_and(|name| !name.contains('/'));
        match found {
            Some(_) if target == ROOT || is_definition => {}
            Some(found) => {
                let name = define(schema, found);
                moved.insert(target, name);
            }
            None => drop(moved.insert(target, None)),
        }
    }
    moved
}

fn define(schema: &mut Value, definition: Value) -> Option<String> {
    let definitions = schema.as_object_mut()?.entry("$defs").or_insert_with(|| Map::new().into()).as_object_mut()?;
    let name = (1..).map(|number| format!("part_{number}")).find(|name| !definitions.contains_key(name))?;
    let target = format!("#/$defs/{name}");
    definitions.insert(name, definition);
    Some(target)
}

fn leads_to(needs: &RequiredTargets, from: &str, to: &str) -> bool {
    let (mut seen, mut ahead) = (BTreeSet::new(), vec![from]);
    while let Some(place) = ahead.pop() {
        if place == to {
            return true;
        }
        if seen.insert(place) {
            ahead.extend(needs.get(place).into_iter().flatten().map(String::as_str));
        }
    }
    false
}

fn target(reference: &Map<String, Value>) -> Option<String> {
    reference.get("$ref")?.as_str().map(str::to_owned)
}

fn each_reference(schema: &mut Value, visit: ReferenceVisitor<'_>) {
    let definitions = schema.as_object_mut().and_then(|root| root.shift_remove("$defs"));
    within(schema, ROOT, true, visit);
    let Some(mut definitions) = definitions else { return };
    for (name, definition) in definitions.as_object_mut().into_iter().flatten() {
        let place = format!("#/$defs/{}", pointer_token(name));
        within(definition, &place, true, visit);
    }
    if let Value::Object(root) = schema {
        root.insert("$defs".into(), definitions);
    }
}

fn within(schema: &mut Value, place: &str, is_needed: bool, visit: ReferenceVisitor<'_>) {
    let Value::Object(fields) = schema else { return };
    if fields.contains_key("$ref") {
        visit(place, fields, is_needed);
    }
    let required = fields.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let has_items = fields.get("minItems").and_then(Value::as_u64).is_some_and(|count| count > 0);
    for (keyword, value) in fields {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(named)) => {
                for (name, schema) in named {
                    let is_required = required.iter().any(|required| required == name);
                    within(schema, place, is_needed && is_required, visit);
                }
            }
            ("items", schema) => within(schema, place, is_needed && has_items, visit),
            ("additionalProperties", schema) => within(schema, place, is_needed, visit),
            ("anyOf" | "oneOf" | "prefixItems", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(|schema| within(schema, place, is_needed, visit));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn settled(schema: Value) -> (Value, Vec<String>) {
        let (mut schema, mut lost) = (schema, Vec::new());
        settle(&mut schema, &mut lost);
        (schema, lost)
    }

    /// `{child: …}`, required or not, next to the definitions.
    fn tree(child: Value, required: Value) -> Value {
        json!({"$ref": "#/$defs/Tree", "$defs": {"Tree": {"properties": {"child": child}, "required": required}}})
    }

    #[test]
    fn a_finite_loop_is_kept() {
        let reference = json!({"$ref": "#/$defs/Tree"});
        for schema in [
            tree(reference.clone(), json!([])),
            tree(json!({"type": "array", "items": reference}), json!(["child"])),
            json!({"properties": {"a": {"$ref": "#"}}}),
        ] {
            assert_eq!(settled(schema.clone()), (schema, vec![]));
        }
    }

    #[test]
    fn an_infinite_loop_is_cut() {
        let reference = json!({"$ref": "#/$defs/Tree"});
        for (child, cut) in [
            (reference.clone(), json!({})),
            (json!({"anyOf": [{"type": "string"}, reference]}), json!({"anyOf": [{"type": "string"}, {}]})),
            (
                json!({"type": "array", "minItems": 1, "items": reference}),
                json!({"type": "array", "minItems": 1, "items": {}}),
            ),
        ] {
            let (schema, lost) = settled(tree(child, json!(["child"])));
            assert_eq!(schema, tree(cut, json!(["child"])));
            assert_eq!(lost, ["#/$defs/Tree is sent with any value for #/$defs/Tree, which requires itself"]);
        }
        let (schema, lost) = settled(json!({"required": ["a"], "properties": {"a": {"$ref": "#/$defs/A"}},
            "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/B"}]}, "B": {"anyOf": [{"$ref": "#/$defs/A"}]}}}));
        assert_eq!(schema["$defs"], json!({"A": {"anyOf": [{}]}, "B": {"anyOf": [{}]}}));
        assert_eq!((&schema["properties"]["a"], lost.len()), (&json!({"$ref": "#/$defs/A"}), 2));
    }

    #[test]
    fn a_reference_to_another_place_gets_a_definition() {
        let (schema, lost) = settled(json!({"properties": {
            "data": {"type": "array", "items": {"properties": {"child": {"$ref": "#/properties/data/items"}}}},
            "more": {"$ref": "#/properties/data/items"}, "gone": {"$ref": "#/$defs/Gone"}}}));
        let item = json!({"properties": {"child": {"$ref": "#/$defs/part_1"}}});
        let expected = json!({"properties": {"data": {"type": "array", "items": item},
            "more": {"$ref": "#/$defs/part_1"}, "gone": {}}, "$defs": {"part_1": item}});
        assert_eq!(schema, expected);
        assert_eq!(lost, ["# is sent without #/$defs/Gone, which does not exist"]);
    }
}
