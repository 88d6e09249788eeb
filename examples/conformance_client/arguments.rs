//! Minimal arguments and answers for a JSON schema.

use serde_json::{Map, Value, json};

/// The required properties only.
pub(super) fn smallest(schema: &Value) -> Map<String, Value> {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    required.map(|name| (name.to_owned(), value(property(schema, name)))).collect()
}

/// All properties.
pub(super) fn filled_in(schema: &Value) -> Map<String, Value> {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    properties.map(|(name, schema)| (name.clone(), value(schema))).collect()
}

fn property<'a>(schema: &'a Value, name: &str) -> &'a Value {
    schema.get("properties").and_then(|properties| properties.get(name)).unwrap_or(&Value::Null)
}

fn value(schema: &Value) -> Value {
    if let Some(value) = schema.get("default").or_else(|| schema.get("enum").and_then(|values| values.get(0))) {
        return value.clone();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => Value::Object(smallest(schema)),
        _ => json!("test"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_properties_are_filled_by_type() {
        let schema = json!({"required": ["a", "b", "c", "d"], "properties": {
            "a": {"type": "number"}, "b": {"enum": ["x", "y"]}, "c": {"type": "string"}, "e": {"type": "string"},
            "d": {"type": "object", "required": ["f"], "properties": {"f": {"type": "boolean"}}},
        }});
        assert_eq!(Value::from(smallest(&schema)), json!({"a": 1, "b": "x", "c": "test", "d": {"f": true}}));
    }
}
