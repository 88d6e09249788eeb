//! Nested schemas. Below the root nearly all schemas are supported. Arrays must declare their items, and tuples use the
//! newer form; neither changes the meaning of the schema. References must point to a place within the schema.

use serde_json::{Map, Value, json};

/// Fixes this schema and those in it.
pub(super) fn normalize(schema: &mut Value) {
    let Value::Object(object) = schema else { return };
    if let Some(Value::Array(tuple)) = object.get_mut("items") {
        let prefix = std::mem::take(tuple);
        let rest = object.remove("additionalItems").unwrap_or_else(|| json!({}));
        object.insert("items".into(), rest);
        object.insert("prefixItems".into(), prefix.into());
    }
    if is_array(object) && !object.contains_key("items") {
        object.insert("items".into(), json!({}));
    }
    each_in(object, &mut normalize);
}

/// Drops dangling references, whether or not the rewritten root caused them; reports each once.
pub(super) fn drop_dangling(schema: &mut Value, lost: &mut Vec<String>) {
    let whole = schema.clone();
    drop_dangling_in(schema, &whole, lost);
    lost.dedup();
}

fn drop_dangling_in(schema: &mut Value, whole: &Value, lost: &mut Vec<String>) {
    let Value::Object(object) = schema else { return };
    let leads_nowhere = |reference: &Value| {
        let pointer = reference.as_str().and_then(|reference| reference.strip_prefix('#'));
        pointer.and_then(|pointer| whole.pointer(pointer)).is_none()
    };
    if let Some(reference) = object.get("$ref").filter(|reference| leads_nowhere(reference)) {
        lost.push(format!("A reference to {reference} is left out."));
        object.remove("$ref");
    }
    each_in(object, &mut |schema| drop_dangling_in(schema, whole, lost));
}

/// Visits the schemas directly in this one.
fn each_in(object: &mut Map<String, Value>, visit: &mut dyn FnMut(&mut Value)) {
    for (word, value) in object.iter_mut() {
        match (word.as_str(), value) {
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                Value::Object(schemas),
            ) => {
                schemas.values_mut().for_each(&mut *visit);
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(&mut *visit);
            }
            (
                "items"
                | "additionalProperties"
                | "unevaluatedProperties"
                | "unevaluatedItems"
                | "propertyNames"
                | "contains"
                | "not"
                | "if"
                | "then"
                | "else",
                schema,
            ) => visit(schema),
            _ => {}
        }
    }
}

fn is_array(object: &Map<String, Value>) -> bool {
    match object.get("type") {
        Some(Value::Array(types)) => types.iter().any(|one| one == "array"),
        Some(one) => one == "array",
        None => false,
    }
}
