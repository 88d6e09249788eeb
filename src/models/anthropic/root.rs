//! Schema root: adapts the root of a tool's argument schema to the API, which requires type object, no alternatives and
//! plain property names. It accepts almost anything below the root. Only the declaration changes: arguments are
//! validated with the tool's own schema, so every rule is still enforced.

use serde_json::{Map, Value, json};

const MAX_KEY_CHARS: usize = 64;

/// The schema with a valid root, and a sentence for each rule that was dropped; or the reason why there is no such
/// schema.
pub(super) fn fit(schema: &Value) -> Result<(Value, Vec<String>), String> {
    let mut root = match schema {
        Value::Object(root) => root.clone(),
        Value::Bool(true) => Map::new(),
        Value::Null | Value::Bool(false) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Err("its argument schema is not a JSON object".into());
        }
    };
    if !allows_objects(root.get("type")) {
        return Err("its arguments are not an object, which the API requires".into());
    }
    root.insert("type".into(), json!("object"));
    // The API reads every schema as draft 2020-12.
    root.shift_remove("$schema");
    let mut lost = Vec::new();
    for keyword in ["allOf", "anyOf", "oneOf"] {
        if let Some(branches) = root.shift_remove(keyword) {
            let branches = branches.as_array().map(Vec::as_slice).unwrap_or_default();
            let branches = branches.iter().filter_map(|branch| resolved(schema, branch));
            let branches: Vec<_> = branches.filter(|branch| allows_objects(branch.get("type"))).collect();
            lost.extend(flatten(&mut root, keyword, &branches));
        }
    }
    if let Some(key) = keys(&root).find(|key| !is_plain(key)) {
        return Err(format!("the API does not accept {key:?} as an argument name"));
    }
    Ok((Value::Object(root), lost))
}

fn allows_objects(kind: Option<&Value>) -> bool {
    match kind {
        None => true,
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        Some(kind) => kind == "object",
    }
}

/// A branch, or the schema that it refers to.
fn resolved<'a>(schema: &'a Value, branch: &'a Value) -> Option<&'a Map<String, Value>> {
    let reference = branch.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
    reference.map_or(Some(branch), |pointer| schema.pointer(pointer))?.as_object()
}

/// Merges the properties of all branches into the root, where the model sees them. Returns what is lost.
fn flatten(root: &mut Map<String, Value>, keyword: &str, branches: &[&Map<String, Value>]) -> Option<String> {
    let applies_all = keyword == "allOf";
    let mut found: Map<String, Value> = Map::new();
    for (key, schema) in branches.iter().filter_map(|branch| branch.get("properties")?.as_object()).flatten() {
        let schemas = found.entry(key).or_insert_with(|| json!([]));
        if let Some(schemas) = schemas.as_array_mut().filter(|schemas| !schemas.contains(schema)) {
            schemas.push(schema.clone());
        }
    }
    let combiner = if applies_all { "allOf" } else { "anyOf" };
    let properties = root.entry("properties").or_insert_with(|| json!({}));
    for (key, schemas) in found {
        let Some(properties) = properties.as_object_mut() else { break };
        let mut schemas = schemas.as_array().cloned().unwrap_or_default();
        match properties.get(&key) {
            Some(own) if applies_all => schemas.insert(0, own.clone()),
            // The root's own schema is wider.
            Some(_) => continue,
            None => {}
        }
        let schema = if schemas.len() == 1 { schemas.swap_remove(0) } else { json!({combiner: schemas}) };
        properties.insert(key, schema);
    }
    require(root, required_by(branches, applies_all));
    let known_keys = ["type", "properties", "required", "title", "description"];
    let is_whole =
        applies_all && branches.iter().all(|branch| branch.keys().all(|key| known_keys.contains(&key.as_str())));
    (!is_whole).then(|| {
        format!(
            "the API takes no `{keyword}` at the root of a schema: the arguments of all its branches are offered, but not \
             which of them go together"
        )
    })
}

/// The properties that all branches require; with `applies_all`, those that any branch requires.
fn required_by(branches: &[&Map<String, Value>], applies_all: bool) -> Vec<Value> {
    let required = |branch: &Map<String, Value>| branch.get("required").and_then(Value::as_array).cloned();
    let lists: Vec<Vec<Value>> = branches.iter().map(|branch| required(branch).unwrap_or_default()).collect();
    let is_in_all = |name: &Value| lists.iter().all(|list| list.contains(name));
    lists.iter().flatten().filter(|name| applies_all || is_in_all(name)).cloned().collect()
}

fn require(root: &mut Map<String, Value>, names: Vec<Value>) {
    if names.is_empty() {
        return;
    }
    if let Some(required) = root.entry("required").or_insert_with(|| json!([])).as_array_mut() {
        for name in names {
            if !required.contains(&name) {
                required.push(name);
            }
        }
    }
}

fn keys(root: &Map<String, Value>) -> impl Iterator<Item = &String> {
    root.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys)
}

fn is_plain(key: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    !key.is_empty() && key.len() <= MAX_KEY_CHARS && key.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(schema: Value) -> Value {
        let (schema, lost) = fit(&schema).unwrap();
        assert_eq!(lost, Vec::<String>::new());
        schema
    }

    #[test]
    fn a_root_that_allows_objects_becomes_an_object() {
        for kind in [json!(null), json!("object"), json!(["object", "null"])] {
            let mut schema = json!({"type": kind, "properties": {"a": {"oneOf": []}}});
            if kind.is_null() {
                schema.as_object_mut().unwrap().shift_remove("type");
            }
            assert_eq!(whole(schema), json!({"type": "object", "properties": {"a": {"oneOf": []}}}));
        }
        assert_eq!(whole(json!(true)), json!({"type": "object"}));
        for refused in [json!(false), json!({"type": "string"}), json!("object")] {
            assert!(fit(&refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn an_invalid_argument_name_at_the_root_rejects_the_tool() {
        for key in ["filter[id]", "", "$top", &"x".repeat(65)] {
            let schema = json!({"type": "object", "properties": {key: {}}});
            assert!(fit(&schema).unwrap_err().contains("argument name"), "{key}");
            whole(json!({"type": "object", "properties": {"a": schema}}));
        }
    }

    #[test]
    fn a_conjunction_is_merged_into_the_root_without_loss() {
        let schema = json!({"$schema": "s", "$defs": {"b": {"properties": {"b": {"minimum": 1}}, "required": ["b"]}},
            "properties": {"a": {}, "b": {"type": "integer"}}, "required": ["a"],
            "allOf": [{"$ref": "#/$defs/b"}, {"properties": {"c": {}}}]});
        let expected = json!({"type": "object", "$defs": schema["$defs"], "required": ["a", "b"],
            "properties": {"a": {}, "b": {"allOf": [{"type": "integer"}, {"minimum": 1}]}, "c": {}}});
        assert_eq!(whole(schema), expected);
    }

    #[test]
    fn alternatives_are_merged_and_the_loss_is_reported() {
        let schema = json!({"type": "object", "oneOf": [
            {"properties": {"kind": {"const": "a"}, "x": {}}, "required": ["kind", "x"]},
            {"properties": {"kind": {"const": "b"}}, "required": ["kind"]},
        ]});
        let (fitted, lost) = fit(&schema).unwrap();
        let expected = json!({"type": "object", "required": ["kind"],
            "properties": {"kind": {"anyOf": [{"const": "a"}, {"const": "b"}]}, "x": {}}});
        assert_eq!(fitted, expected);
        assert!(matches!(lost.as_slice(), [sentence] if sentence.contains("`oneOf`")), "{lost:?}");

        let (fitted, lost) = fit(&json!({"properties": {"a": {}}, "anyOf": [{"required": ["a"]}, {}]})).unwrap();
        assert_eq!((fitted, lost.len()), (json!({"type": "object", "properties": {"a": {}}}), 1));

        let or_null =
            json!({"anyOf": [{"type": "object", "properties": {"a": {}}, "required": ["a"]}, {"type": "null"}]});
        let expected = json!({"type": "object", "properties": {"a": {}}, "required": ["a"]});
        assert_eq!(fit(&or_null).unwrap().0, expected);
    }
}
