//! Below the root nearly everything is taken. Arrays have to say what their items are, and tuples are written the new
//! way; both change nothing of what the schema means.

use serde_json::{Map, Value, json};

/// Mends this schema and those in it.
pub(super) fn mend(schema: &mut Value) {
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
    for (word, value) in object.iter_mut() {
        match (word.as_str(), value) {
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                Value::Object(schemas),
            ) => {
                schemas.values_mut().for_each(mend);
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(mend);
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
            ) => mend(schema),
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
