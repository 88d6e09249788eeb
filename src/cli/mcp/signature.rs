//! One-line signature of a tool, from its JSON Schema: `city: string, days?: integer = 3`. It is for reading only; the
//! schema stays authoritative.

use serde_json::{Map, Value};

use crate::cli::text::one_line;

/// The limit on enumeration values in a signature.
const VALUES: usize = 6;
/// The length limit of a default or value in a signature.
const SHORT: usize = 24;

/// The signature of a tool's arguments.
pub(super) fn signature(schema: &Value) -> String {
    let Some(properties) = schema.get("properties").and_then(Value::as_object).filter(|all| !all.is_empty()) else {
        return if is_closed(schema) { "no arguments".into() } else { "any object".into() };
    };
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let argument = |(name, schema): (&String, &Value)| {
        let mark = if required.contains(&name.as_str()) { "" } else { "?" };
        let default = schema.get("default").map(|value| format!(" = {}", short(value))).unwrap_or_default();
        format!("{name}{mark}: {}{default}", kind(schema))
    };
    one_line(&properties.iter().map(argument).collect::<Vec<_>>().join(", "), usize::MAX)
}

/// Whether an object without listed properties allows no properties at all.
fn is_closed(schema: &Value) -> bool {
    let lists_none = schema.get("properties").is_some();
    lists_none || schema.get("additionalProperties") == Some(&Value::Bool(false))
}

fn kind(schema: &Value) -> String {
    let Some(schema) = schema.as_object() else { return "any".into() };
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return reference.rsplit('/').next().unwrap_or(reference).to_owned();
    }
    if let Some(value) = schema.get("const") {
        return short(value);
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let more = if values.len() > VALUES { vec!["…".to_owned()] } else { Vec::new() };
        return values.iter().take(VALUES).map(short).chain(more).collect::<Vec<_>>().join(" | ");
    }
    if let Some(branches) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array) {
        return either(branches.iter().map(kind));
    }
    match schema.get("type") {
        Some(Value::Array(kinds)) => either(kinds.iter().filter_map(Value::as_str).map(|name| plain(name, schema))),
        Some(Value::String(name)) => plain(name, schema),
        Some(_) | None => "any".into(),
    }
}

fn plain(name: &str, schema: &Map<String, Value>) -> String {
    if name == "object"
        && let Some(title) = schema.get("title").and_then(Value::as_str)
    {
        return title.to_owned();
    }
    if name != "array" {
        return name.to_owned();
    }
    let item = schema.get("items").map_or_else(|| "any".into(), kind);
    if item.contains('|') { format!("({item})[]") } else { format!("{item}[]") }
}

fn either(types: impl Iterator<Item = String>) -> String {
    let mut different: Vec<String> = Vec::new();
    for kind in types {
        if !different.contains(&kind) {
            different.push(kind);
        }
    }
    if different.is_empty() { "any".into() } else { different.join(" | ") }
}

fn short(value: &Value) -> String {
    one_line(&value.to_string(), SHORT)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_signature_shows_type_default_and_optionality() {
        let schema = json!({
            "type": "object",
            "required": ["city", "place"],
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer", "default": 3},
                "unit": {"enum": ["c", "f"]},
                "place": {"$ref": "#/$defs/Place"},
                "tags": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
                "note": {"type": ["string", "null"], "default": null},
                "shape": {"oneOf": [{"type": "object", "title": "Box"}, {"type": "object"}, {"type": "object"}, {"const": "none"}]},
                "many": {"enum": [1, 2, 3, 4, 5, 6, 7]},
                "free": true,
            },
        });
        let expected = "city: string, days?: integer = 3, unit?: \"c\" | \"f\", place: Place, tags?: (string | null)[], \
                    note?: string | null = null, shape?: Box | object | \"none\", many?: 1 | 2 | 3 | 4 | 5 | 6 | …, free?: any";
        assert_eq!(signature(&schema), expected);
    }

    #[test]
    fn a_closed_schema_differs_from_an_open_one() {
        assert_eq!(signature(&json!({"type": "object", "properties": {}})), "no arguments");
        assert_eq!(signature(&json!({"type": "object", "additionalProperties": false})), "no arguments");
        assert_eq!(signature(&json!({"type": "object"})), "any object");
    }
}
