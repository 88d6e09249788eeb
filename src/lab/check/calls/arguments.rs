//! Arguments from a schema: the smallest valid ones, and bad ones that differ from them in one place.

use std::cell::Cell;

use serde_json::{Map, Value, json};

/// The deepest schema that arguments are made from.
const MAX_DEPTH: usize = 12;
const MAX_TEXT: usize = 10_000;
/// The largest arguments: values and the bytes of texts, in all. Lists of lists multiply them.
const MAX_SIZE: usize = 200_000;
const EXTRA: &str = "with a member that does not exist";

/// Arguments that are wrong in one way.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BadArguments {
    /// What is wrong, to follow "arguments".
    pub(super) what: String,
    /// `None` leaves the member `arguments` out.
    pub(super) value: Option<Value>,
    /// Whether the schema forbids them. Otherwise they must only not crash the server.
    pub(super) is_invalid: bool,
}

/// The smallest arguments that fit; `None` if there are none to be found.
pub(super) fn minimal(schema: &Value) -> Option<Value> {
    let value = Generator { root: schema, size: Cell::new(0) }.value(schema, 0)?;
    let value = if value.is_object() { value } else { json!({}) };
    fits(schema, &value).then_some(value)
}

fn fits(schema: &Value, value: &Value) -> bool {
    jsonschema::options()
        .offline()
        .should_validate_formats(true)
        .build(schema)
        .is_ok_and(|validator| validator.is_valid(value))
}

/// Generator of values for the parts of one schema.
struct Generator<'a> {
    root: &'a Value,
    /// The size of what was generated so far.
    size: Cell<usize>,
}

impl Generator<'_> {
    /// The value, unless all values together become too large.
    fn sized(&self, value: Value) -> Option<Value> {
        let size = match &value {
            Value::String(text) => text.len(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 1,
            // A default or an example, written in the schema.
            Value::Array(_) | Value::Object(_) => value.to_string().len(),
        };
        self.size.set(self.size.get() + size);
        (self.size.get() <= MAX_SIZE).then_some(value)
    }

    fn value(&self, schema: &Value, depth: usize) -> Option<Value> {
        let members = match schema {
            Value::Object(members) if depth <= MAX_DEPTH => members,
            Value::Bool(true) => return self.sized(json!("text")),
            Value::Object(_)
            | Value::Bool(false)
            | Value::Null
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => {
                return None;
            }
        };
        let listed = || ["examples", "enum"].iter().find_map(|key| members.get(*key)?.as_array()?.first());
        let default = || members.get("default").filter(|value| !value.is_null());
        if let Some(value) = members.get("const").or_else(default).or_else(listed) {
            return self.sized(value.clone());
        }
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            return self.value(self.root.pointer(reference.strip_prefix('#')?)?, depth + 1);
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(branches) = members.get(keyword).and_then(Value::as_array)
                && !members.contains_key("type")
            {
                return branches.iter().find_map(|branch| self.value(branch, depth + 1));
            }
        }
        let kind = match members.get("type") {
            Some(Value::String(kind)) => kind.as_str(),
            Some(Value::Array(kinds)) => {
                kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("null")
            }
            Some(_) | None if members.contains_key("properties") => "object",
            Some(_) | None if members.contains_key("items") => "array",
            Some(_) | None => "string",
        };
        match kind {
            "object" => self.object(members, depth),
            "array" => self.array(members, depth),
            "string" => self.sized(text(members).into()),
            "integer" | "number" => self.sized(number(members, kind == "integer")),
            "boolean" => self.sized(false.into()),
            _ => self.sized(Value::Null),
        }
    }

    fn object(&self, members: &Map<String, Value>, depth: usize) -> Option<Value> {
        let mut object = Map::new();
        let required = members.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            let properties = members.get("properties");
            let schema = properties.and_then(|properties| properties.get(name)).unwrap_or(&Value::Bool(true));
            object.insert(name.to_owned(), self.value(schema, depth + 1)?);
        }
        for branch in members.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            if let Some(Value::Object(more)) = self.value(branch, depth + 1) {
                object.extend(more);
            }
        }
        Some(Value::Object(object))
    }

    fn array(&self, members: &Map<String, Value>, depth: usize) -> Option<Value> {
        let least = members.get("minItems").and_then(Value::as_u64).unwrap_or(0).min(100);
        let items = members.get("items").unwrap_or(&Value::Bool(true));
        // A list of empty lists has a size as well.
        let values: Option<Vec<Value>> =
            (0..least).map(|_| self.sized(Value::Null).and_then(|_| self.value(items, depth + 1))).collect();
        values.map(Value::Array)
    }
}

fn text(members: &Map<String, Value>) -> String {
    let example = match members.get("format").and_then(Value::as_str) {
        Some("date-time") => "2026-01-02T03:04:05Z",
        Some("date") => "2026-01-02",
        Some("time") => "03:04:05Z",
        Some("email") => "check@example.com",
        Some("uri" | "url" | "iri") => "https://example.com/",
        Some("uuid") => "00000000-0000-4000-8000-000000000000",
        Some("ipv4") => "192.0.2.1",
        Some("ipv6") => "2001:db8::1",
        Some("hostname") => "example.com",
        Some("duration") => "PT1S",
        Some(_) | None => "text",
    };
    let bound = |key: &str| members.get(key).and_then(Value::as_u64).and_then(|bound| usize::try_from(bound).ok());
    let shortest = bound("minLength").unwrap_or(0).min(MAX_TEXT);
    let mut text = example.to_owned();
    while text.chars().count() < shortest {
        text.push('x');
    }
    text.chars().take(bound("maxLength").unwrap_or(MAX_TEXT).max(shortest)).collect()
}

fn number(members: &Map<String, Value>, is_integer: bool) -> Value {
    let bound = |key: &str| members.get(key).and_then(Value::as_f64);
    let low = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|low| low + 1.0));
    let high = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|high| high - 1.0));
    let mut value = match (low, high) {
        (Some(low), _) => low.max(1.0_f64.min(high.unwrap_or(1.0))),
        (None, Some(high)) => high.min(1.0),
        (None, None) => 1.0,
    };
    if let Some(step) = bound("multipleOf").filter(|step| *step > 0.0) {
        value = (value / step).ceil() * step;
    }
    if is_integer || value.fract() == 0.0 { json!(value.ceil() as i64) } else { json!(value) }
}

/// Bad arguments for a tool, made from valid ones where there are some.
pub(super) fn bad(schema: &Value, valid: Option<&Value>) -> Vec<BadArguments> {
    let valid = valid.cloned().unwrap_or_else(|| json!({}));
    let properties = schema.get("properties").and_then(Value::as_object);
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let mut all = vec![("without any member".to_owned(), Some(json!({}))), ("that are missing".to_owned(), None)];
    if let Some(name) = required.first() {
        let mut value = valid.clone();
        if let Some(members) = value.as_object_mut() {
            members.remove(*name);
        }
        all.push((format!("without `{name}`"), Some(value)));
    }
    let first = required.first().copied().or_else(|| properties?.keys().next().map(String::as_str));
    if let Some((name, inner)) = first.and_then(|name| Some((name, properties?.get(name)?))) {
        let wrong = [json!({"toolgate": [1]}), json!(["toolgate"]), json!(17), json!("toolgate"), Value::Null];
        let wrong = wrong.into_iter().map(|wrong| with(&valid, name, wrong)).find(|value| !fits(schema, value));
        all.extend(wrong.map(|value| (format!("with `{name}` of a wrong type"), Some(value))));
        all.extend(
            out_of_range(inner).map(|value| (format!("with `{name}` out of range"), Some(with(&valid, name, value)))),
        );
    }
    all.push((EXTRA.to_owned(), Some(with(&valid, "toolgate_no_such_member", json!("x")))));
    if let Some(name) = first_text(schema) {
        let unicode = "\u{202e}é漢字😀\u{0}'\"; DROP TABLE x; -- ${HOME} `id` ../../etc";
        all.push((format!("with unusual characters in `{name}`"), Some(with(&valid, &name, json!(unicode)))));
        all.push((format!("with 100 kB in `{name}`"), Some(with(&valid, &name, json!("x".repeat(100_000))))));
    }
    let judged = all.into_iter().map(|(what, value)| {
        // Many SDKs drop unknown members, and an agent loses nothing by that.
        let is_extra = what == EXTRA;
        let is_invalid = !is_extra && !fits(schema, value.as_ref().unwrap_or(&json!({})));
        BadArguments { what, value, is_invalid }
    });
    let mut judged: Vec<BadArguments> = judged.collect();
    judged.dedup_by(|a, b| a.value == b.value);
    judged
}

fn with(valid: &Value, name: &str, value: Value) -> Value {
    let mut members = valid.as_object().cloned().unwrap_or_default();
    members.insert(name.to_owned(), value);
    Value::Object(members)
}

fn out_of_range(schema: &Value) -> Option<Value> {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    if let Some(low) = bound("minimum").or_else(|| bound("exclusiveMinimum")) {
        return Some(json!(low - 1.0));
    }
    if let Some(high) = bound("maximum").or_else(|| bound("exclusiveMaximum")) {
        return Some(json!(high + 1.0));
    }
    if schema.get("enum").is_some() {
        return Some(json!("toolgate-no-such-value"));
    }
    let longest = schema.get("maxLength").and_then(Value::as_u64).filter(|longest| *longest < 100_000)?;
    Some(json!("x".repeat(usize::try_from(longest).ok()? + 1)))
}

fn first_text(schema: &Value) -> Option<String> {
    let properties = schema.get("properties")?.as_object()?;
    let is_text =
        |schema: &Value| schema.get("type").is_some_and(|kind| kind == "string") && schema.get("enum").is_none();
    properties.iter().find(|(_, schema)| is_text(schema)).map(|(name, _)| name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minimal_arguments_fit_their_schema() {
        for (schema, expected) in [
            (json!({"type": "object"}), json!({})),
            (
                json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 6}}, "required": ["a"]}),
                json!({"a": "textxx"}),
            ),
            (
                json!({"type": "object", "required": ["n", "e", "o"], "properties": {
                    "n": {"type": "integer", "minimum": 5}, "e": {"enum": ["x", "y"]}, "o": {"$ref": "#/$defs/o"}},
                    "$defs": {"o": {"type": "object", "required": ["d"], "properties": {"d": {"type": "string", "format": "date"}}}}}),
                json!({"n": 5, "e": "x", "o": {"d": "2026-01-02"}}),
            ),
            (
                json!({"type": "object", "required": ["a"], "properties": {"a": {"anyOf": [{"type": "array", "minItems": 1, "items": {"type": "number"}}, {"type": "null"}]}}}),
                json!({"a": [1]}),
            ),
        ] {
            assert_eq!(minimal(&schema), Some(expected));
        }
        assert_eq!(
            minimal(
                &json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "pattern": "^[0-9]{9}$"}}})
            ),
            None
        );
    }

    #[test]
    fn lists_of_lists_have_a_largest_size() {
        let list = |items: Value| json!({"type": "array", "minItems": 100, "items": items});
        let of_depth = |depth| (0..depth).fold(json!({"type": "integer"}), |items, _| list(items));
        let schema = |depth| json!({"type": "object", "required": ["a"], "properties": {"a": of_depth(depth)}});
        assert!(minimal(&schema(2)).is_some());
        assert_eq!(minimal(&schema(11)), None);
    }

    #[test]
    fn bad_arguments_violate_the_schema_in_one_place() {
        let schema =
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "maxLength": 3}}});
        let bad = bad(&schema, Some(&json!({"a": "x"})));
        let invalid: Vec<&str> = bad.iter().filter(|one| one.is_invalid).map(|one| one.what.as_str()).collect();
        for what in ["without any member", "that are missing", "with `a` of a wrong type", "with `a` out of range"] {
            assert!(invalid.contains(&what), "{what}: {invalid:?}");
        }
    }
}
