//! Strict schemas: the subset of JSON Schema for strict declarations. Every object is closed and requires all of its
//! properties, and only some keywords and limited sizes are allowed.

use serde_json::{Map, Value};

const MAX_PROPERTIES: usize = 5_000;
const MAX_ENUM_VALUES: usize = 1_000;
const MAX_NAME_CHARS: usize = 120_000;
const MAX_LEVELS: usize = 10;

/// The allowed keywords.
const KEYWORDS: [&str; 22] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
    "$defs",
    "definitions",
    "description",
    "title",
    "pattern",
    "format",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
    "$schema",
];

/// The supported text formats.
const FORMATS: [&str; 9] = ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// Why this schema cannot be declared strict; `None` if it can.
pub(crate) fn why_not_strict(schema: &Value) -> Option<String> {
    match schema.get("type") {
        Some(root) if root == "object" => {}
        Some(_) | None => return Some("its root is not an object".into()),
    }
    if schema.get("anyOf").is_some() {
        return Some("`anyOf` is at its root".into());
    }
    let mut seen = SchemaTotals::default();
    seen.schema(schema, "the root", 0).err().or_else(|| seen.excess())
}

#[derive(Default)]
struct SchemaTotals {
    properties: usize,
    enum_values: usize,
    name_chars: usize,
}

impl SchemaTotals {
    fn excess(&self) -> Option<String> {
        let bounds = [
            ("properties", self.properties, MAX_PROPERTIES),
            ("values of enums", self.enum_values, MAX_ENUM_VALUES),
            ("characters in names and values", self.name_chars, MAX_NAME_CHARS),
        ];
        bounds.into_iter().find(|(_, seen, most)| seen > most).map(|(what, _, most)| format!("more than {most} {what}"))
    }

    /// Checks a schema and those in it; `place` names it in errors.
    fn schema(&mut self, schema: &Value, place: &str, level: usize) -> Result<(), String> {
        let Value::Object(object) = schema else { return Err(format!("{place} is not a plain schema")) };
        if level > MAX_LEVELS {
            return Err(format!("it is nested deeper than {MAX_LEVELS} levels"));
        }
        if object.contains_key("$ref") {
            return if object.len() == 1 { Ok(()) } else { Err(format!("`$ref` of {place} has sibling keywords")) };
        }
        if let Some(word) = object.keys().find(|word| !KEYWORDS.contains(&word.as_str())) {
            return Err(format!("{place} has `{word}`"));
        }
        if !["type", "anyOf"].iter().any(|word| object.contains_key(*word)) {
            return Err(format!("{place} has no `type`"));
        }
        if let Some(format) = object.get("format")
            && !format.as_str().is_some_and(|format| FORMATS.contains(&format))
        {
            return Err(format!("{place} has the format {format}"));
        }
        self.values(object);
        self.object(object, place, level)?;
        if is_of_type(object, "array") || object.contains_key("items") {
            let items = object.get("items").ok_or_else(|| format!("{place} does not declare its items"))?;
            self.schema(items, &format!("an item of {place}"), level + 1)?;
        }
        for alternative in object.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
            self.schema(alternative, &format!("an alternative of {place}"), level)?;
        }
        for definitions in ["$defs", "definitions"].iter().filter_map(|word| object.get(*word)?.as_object()) {
            for (name, definition) in definitions {
                self.name_chars += name.chars().count();
                self.schema(definition, &format!("the definition `{name}`"), 0)?;
            }
        }
        Ok(())
    }

    fn object(&mut self, object: &Map<String, Value>, place: &str, level: usize) -> Result<(), String> {
        if !is_of_type(object, "object") && !object.contains_key("properties") {
            return Ok(());
        }
        if object.get("additionalProperties") != Some(&Value::Bool(false)) {
            return Err(format!("{place} has no `additionalProperties: false`"));
        }
        let Some(properties) = object.get("properties").and_then(Value::as_object) else {
            return Err(format!("{place} has no `properties`"));
        };
        let Some(required) = object.get("required").and_then(Value::as_array) else {
            return Err(format!("{place} has no `required`"));
        };
        for (name, schema) in properties {
            if !required.iter().any(|one| one == name) {
                return Err(format!("`{name}` is not required"));
            }
            self.properties += 1;
            self.name_chars += name.chars().count();
            self.schema(schema, &format!("`{name}`"), level + 1)?;
        }
        match required.iter().find(|one| one.as_str().is_none_or(|name| !properties.contains_key(name))) {
            Some(name) => Err(format!("{name} is required but not declared")),
            None => Ok(()),
        }
    }

    fn values(&mut self, object: &Map<String, Value>) {
        let values = object.get("enum").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        self.enum_values += values.len();
        let texts = values.iter().chain(object.get("const")).filter_map(Value::as_str);
        self.name_chars += texts.map(|text| text.chars().count()).sum::<usize>();
    }
}

fn is_of_type(object: &Map<String, Value>, name: &str) -> bool {
    match object.get("type") {
        Some(Value::Array(types)) => types.iter().any(|one| one == name),
        Some(one) => one == name,
        None => false,
    }
}
