//! Enforceable schemas: the part of JSON Schema that the API can enforce during generation. The API rejects a request
//! with any other schema in that place, so such a schema is not sent there. Of patterns and `allOf` the API supports
//! only a part; here they are not sent at all.

use serde_json::Value;

const FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];
/// The most steps to walk a schema, because references can multiply it; a schema that takes more is left out.
const MAX_STEPS: usize = 10_000;

/// Whether the API can enforce this schema.
pub(super) fn holds(schema: &Value) -> bool {
    Walk { root: schema, steps: 0, within: Vec::new() }.holds(schema)
}

/// The schema of the final answer for the request; `None` if the API cannot enforce it.
pub(super) fn output_schema(schema: &Value) -> Option<Value> {
    let mut schema = schema.clone();
    // The API reads every schema as draft 2020-12.
    schema.as_object_mut()?.shift_remove("$schema");
    holds(&schema).then_some(schema)
}

struct Walk<'a> {
    root: &'a Value,
    steps: usize,
    /// The references being followed; a reference must not lead back into itself.
    within: Vec<&'a str>,
}

impl<'a> Walk<'a> {
    fn holds(&mut self, schema: &'a Value) -> bool {
        self.steps += 1;
        let Some(schema) = schema.as_object().filter(|_| self.steps <= MAX_STEPS) else { return false };
        let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        let is_of_objects = schema.contains_key("properties")
            || schema.get("type").is_some_and(|kind| kind == "object" || has(kind, |kind| kind == "object"));
        (is_closed || !is_of_objects) && schema.iter().all(|(keyword, value)| self.keyword_holds(keyword, value))
    }

    fn keyword_holds(&mut self, keyword: &str, value: &'a Value) -> bool {
        match keyword {
            "type" | "title" | "description" | "default" | "required" => true,
            "additionalProperties" => value == &Value::Bool(false),
            "enum" => !has(value, |value| value.is_array() || value.is_object()),
            "const" => !value.is_array() && !value.is_object(),
            "format" => value.as_str().is_some_and(|format| FORMATS.contains(&format)),
            "minItems" => value.as_u64().is_some_and(|least| least <= 1),
            "properties" | "$defs" | "definitions" => {
                value.as_object().is_some_and(|schemas| schemas.values().all(|schema| self.holds(schema)))
            }
            "anyOf" => value.as_array().is_some_and(|schemas| schemas.iter().all(|schema| self.holds(schema))),
            "items" => self.holds(value),
            "$ref" => value.as_str().is_some_and(|reference| self.reference_holds(reference)),
            _ => false,
        }
    }

    fn reference_holds(&mut self, reference: &'a str) -> bool {
        let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
        let Some(target) = target.filter(|_| !self.within.contains(&reference)) else { return false };
        self.within.push(reference);
        let holds = self.holds(target);
        self.within.pop();
        holds
    }
}

/// Whether an array has a member with this property.
fn has(value: &Value, is_such: impl Fn(&Value) -> bool) -> bool {
    value.as_array().is_some_and(|members| members.iter().any(is_such))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn closed_objects_with_plain_types_can_be_enforced() {
        let schema = json!({"type": "object", "additionalProperties": false, "required": ["a"],
        "$defs": {"x": {"type": "string", "format": "date"}},
        "properties": {
            "a": {"type": ["integer", "null"], "description": "d", "default": 1},
            "b": {"enum": ["p", 1, null]},
            "c": {"type": "array", "items": {"$ref": "#/$defs/x"}, "minItems": 1},
            "d": {"anyOf": [{"const": true}, {"$ref": "#/$defs/x"}]},
        }});
        assert!(holds(&schema));
        let mut dated = schema.clone();
        dated["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
        assert_eq!(output_schema(&dated), Some(schema));
    }

    #[test]
    fn anything_else_cannot() {
        for property in [
            json!({"type": "object"}),
            json!({"properties": {}}),
            json!({"type": ["object", "null"]}),
            json!({"type": "string", "pattern": "^a"}),
            json!({"type": "string", "format": "regex"}),
            json!({"type": "integer", "minimum": 1}),
            json!({"type": "array", "minItems": 2}),
            json!({"enum": [{}]}),
            json!({"$ref": "#/properties/a"}),
            json!({"$ref": "https://example.com/x"}),
            json!(true),
        ] {
            let schema = json!({"type": "object", "additionalProperties": false, "properties": {"a": property}});
            assert!(!holds(&schema), "{schema}");
        }
    }

    #[test]
    fn a_schema_multiplied_by_references_is_left_out() {
        let mut definitions = json!({"n0": {"type": "string"}});
        for n in 1..40 {
            let below = json!({"$ref": format!("#/$defs/n{}", n - 1)});
            definitions[format!("n{n}")] = json!({"anyOf": [below, below]});
        }
        assert!(!holds(&json!({"$defs": definitions, "$ref": "#/$defs/n39"})));
    }
}
