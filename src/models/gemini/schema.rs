//! Schema adaptation: the part of JSON Schema that this API supports. "While the full JSON Schema may be sent, not all
//! features are supported", with a list of the supported ones (`GenerationConfig.responseJsonSchema`, which says the
//! same of schemas in general; also "If `$ref` is set on a sub-schema, no other properties, except for those starting
//! as a `$`, may be set"). Rules with an equivalent supported form are rewritten. The rest is left out, because a later
//! version may reject keywords that this one ignores.

use serde_json::{Map, Value, json};

use super::references::settle;

/// Keywords that are sent unchanged.
const PLAIN: [&str; 12] = [
    "$id",
    "$anchor",
    "type",
    "format",
    "title",
    "description",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "required",
    "propertyOrdering",
];

/// Keywords that do not constrain values.
const SILENT: [&str; 3] = ["$schema", "$comment", "$vocabulary"];

/// The schema of a tool's arguments, and a sentence for each rule that was dropped; `None` if it does not describe an
/// object.
pub(super) fn of_arguments(schema: &Value) -> Option<(Value, Vec<String>)> {
    let mut root = schema.as_object()?.clone();
    match root.get("type") {
        None => {}
        Some(Value::String(name)) if name == "object" => {}
        Some(Value::Array(names)) if names.iter().any(|name| name == "object") => {}
        Some(_) => return None,
    }
    root.insert("type".into(), json!("object"));
    let mut lost = Vec::new();
    let mut schema = object(&root, "#", &mut lost);
    settle(&mut schema, &mut lost);
    Some((schema, lost))
}

/// The schema of an answer. It is a hint: answers are validated with the original schema.
pub(super) fn of_output(schema: &Value) -> Value {
    let mut lost = Vec::new();
    let mut schema = fit(schema, "#", &mut lost);
    settle(&mut schema, &mut lost);
    schema
}

fn fit(schema: &Value, path: &str, lost: &mut Vec<String>) -> Value {
    match schema {
        Value::Object(fields) => object(fields, path, lost),
        // `true` allows any value; `false` has no equivalent.
        Value::Bool(true) => json!({}),
        Value::Null | Value::Bool(false) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            lost.push(format!("{path} is sent as any value"));
            json!({})
        }
    }
}

fn object(fields: &Map<String, Value>, path: &str, lost: &mut Vec<String>) -> Value {
    let mut out = Map::new();
    for (keyword, value) in fields {
        let at = format!("{path}/{keyword}");
        match (keyword.as_str(), value) {
            (plain, _) if PLAIN.contains(&plain) => put(&mut out, plain, value.clone()),
            (silent, _) if SILENT.contains(&silent) => {}
            ("properties", Value::Object(named)) => put(&mut out, "properties", each(named, &at, lost)),
            // The name before 2019.
            ("$defs" | "definitions", Value::Object(named)) => merge(&mut out, "$defs", each(named, &at, lost)),
            ("anyOf" | "oneOf" | "prefixItems", Value::Array(schemas)) => {
                put(&mut out, keyword, list(schemas, &at, lost));
            }
            // A tuple before 2020.
            ("items", Value::Array(schemas)) => put(&mut out, "prefixItems", list(schemas, &at, lost)),
            // An `allOf` of one schema equals an `anyOf` of one. Schemas use it to add a description to a reference.
            ("allOf", Value::Array(schemas)) if schemas.len() == 1 && !fields.contains_key("anyOf") => {
                put(&mut out, "anyOf", list(schemas, &at, lost));
            }
            ("items", schema) => put(&mut out, "items", fit(schema, &at, lost)),
            ("additionalProperties", Value::Bool(_)) => put(&mut out, keyword, value.clone()),
            ("additionalProperties", schema) => put(&mut out, keyword, fit(schema, &at, lost)),
            ("const", Value::String(_) | Value::Number(_)) => put(&mut out, "enum", json!([value])),
            ("enum", Value::Array(values)) if !fields.contains_key("const") => choices(values, &at, &mut out, lost),
            ("$ref", Value::String(target)) if target.starts_with('#') => {
                put(&mut out, "$ref", target.replacen("#/definitions/", "#/$defs/", 1).into());
            }
            _ => lost.push(format!("{at} is left out: Gemini does not support it")),
        }
    }
    if !out.contains_key("type") && all_strings(out.get("enum")) {
        put(&mut out, "type", json!("string"));
    }
    Value::Object(alone(out, path, lost))
}

/// The enum. The API supports only strings and numbers in it; the type expresses a null.
fn choices(values: &[Value], at: &str, out: &mut Map<String, Value>, lost: &mut Vec<String>) {
    let literals: Vec<&Value> = values.iter().filter(|value| value.is_string() || value.is_number()).collect();
    if literals.len() < values.len() {
        lost.push(format!("{at} is sent with only its strings and numbers"));
    }
    if !literals.is_empty() {
        put(out, "enum", json!(literals));
    }
}

/// Moves a reference down one level if other keywords are next to it: only keywords with a `$` may be.
fn alone(mut out: Map<String, Value>, path: &str, lost: &mut Vec<String>) -> Map<String, Value> {
    if out.keys().all(|keyword| keyword.starts_with('$')) {
        return out;
    }
    let Some(target) = out.shift_remove("$ref") else { return out };
    if out.contains_key("anyOf") {
        lost.push(format!("{path}/$ref is left out: Gemini allows no keywords next to it"));
    } else {
        put(&mut out, "anyOf", json!([{ "$ref": target }]));
    }
    out
}

fn each(named: &Map<String, Value>, path: &str, lost: &mut Vec<String>) -> Value {
    let fitted = named.iter().map(|(name, schema)| (name.clone(), fit(schema, &format!("{path}/{name}"), lost)));
    Value::Object(fitted.collect())
}

fn list(schemas: &[Value], path: &str, lost: &mut Vec<String>) -> Value {
    schemas.iter().enumerate().map(|(index, schema)| fit(schema, &format!("{path}/{index}"), lost)).collect()
}

fn put(out: &mut Map<String, Value>, keyword: &str, value: Value) {
    out.insert(keyword.to_owned(), value);
}

fn merge(out: &mut Map<String, Value>, keyword: &str, value: Value) {
    match (out.get_mut(keyword), value) {
        (Some(Value::Object(into)), Value::Object(from)) => into.extend(from),
        (_, value) => put(out, keyword, value),
    }
}

fn all_strings(values: Option<&Value>) -> bool {
    values.and_then(Value::as_array).is_some_and(|values| values.iter().all(Value::is_string))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(schema: Value) -> (Value, Vec<String>) {
        of_arguments(&schema).unwrap()
    }

    #[test]
    fn supported_keywords_stay_unchanged() {
        let schema = json!({"type": "object", "title": "T", "additionalProperties": false, "required": ["a"],
            "properties": {
                "a": {"type": ["string", "null"], "format": "date", "enum": ["2026-01-01"]},
                "b": {"type": "array", "items": {"$ref": "#/$defs/B"}, "minItems": 1, "maxItems": 9},
                "c": {"oneOf": [{"type": "integer", "minimum": 0, "maximum": 9}, {"type": "boolean"}]},
                "d": {"type": "object", "additionalProperties": {"type": "number"}}},
            "$defs": {"B": {"anyOf": [{"type": "string"}, {"$ref": "#"}]}}});
        assert_eq!(arguments(schema.clone()), (schema, vec![]));
    }

    #[test]
    fn dropped_keywords_are_reported_with_their_path() {
        let (schema, lost) = arguments(json!({"$schema": "x", "type": "object", "not": {}, "properties": {
            "a": {"type": "string", "pattern": "^a", "default": "a"},
            "pattern": {"type": "array", "items": {"type": "string", "minLength": 2}},
            "on": {"const": true}, "far": {"$ref": "https://h/x.json"}, "never": false, "any": true}}));
        let expected = json!({"type": "object", "properties": {"a": {"type": "string"},
            "pattern": {"type": "array", "items": {"type": "string"}}, "on": {}, "far": {}, "never": {}, "any": {}}});
        assert_eq!(schema, expected);
        let places: Vec<&str> = lost.iter().map(|sentence| sentence.split(' ').next().unwrap()).collect();
        let expected = [
            "#/not",
            "#/properties/a/pattern",
            "#/properties/a/default",
            "#/properties/pattern/items/minLength",
            "#/properties/on/const",
            "#/properties/far/$ref",
            "#/properties/never",
        ];
        assert_eq!(places, expected);
    }

    #[test]
    fn rules_with_an_equivalent_are_rewritten() {
        for (schema, expected) in [
            (json!({"const": "x"}), json!({"enum": ["x"], "type": "string"})),
            (json!({"type": "integer", "const": 3}), json!({"type": "integer", "enum": [3]})),
            (json!({"items": [{"type": "string"}]}), json!({"prefixItems": [{"type": "string"}]})),
            (
                json!({"allOf": [{"$ref": "#/definitions/A"}], "description": "d"}),
                json!({"anyOf": [{"$ref": "#/$defs/A"}], "description": "d"}),
            ),
            (
                json!({"$ref": "#/$defs/A", "description": "d"}),
                json!({"description": "d", "anyOf": [{"$ref": "#/$defs/A"}]}),
            ),
            (json!({"$ref": "#/definitions/A"}), json!({"$ref": "#/$defs/A"})),
            (json!({"definitions": {"A": {}}}), json!({"$defs": {"A": {}}})),
        ] {
            let mut lost = Vec::new();
            assert_eq!(fit(&schema, "#", &mut lost), expected, "{schema}");
            assert_eq!(lost, Vec::<String>::new(), "{schema}");
        }
    }

    #[test]
    fn null_in_an_enum_is_expressed_by_the_type() {
        let (schema, lost) = arguments(json!({"properties": {"a": {"type": ["string", "null"], "enum": ["x", null]}}}));
        assert_eq!(schema["properties"]["a"], json!({"type": ["string", "null"], "enum": ["x"]}));
        assert_eq!(lost, ["#/properties/a/enum is sent with only its strings and numbers"]);
    }

    #[test]
    fn arguments_must_be_an_object() {
        assert_eq!(arguments(json!({})).0, json!({"type": "object"}));
        assert_eq!(arguments(json!({"type": ["object", "null"]})).0, json!({"type": "object"}));
        assert_eq!(arguments(json!({"$ref": "#/$defs/A"})).0, json!({"type": "object", "anyOf": [{}]}));
        assert_eq!(of_arguments(&json!({"type": "string"})), None);
        assert_eq!(of_arguments(&json!(true)), None);
    }
}
