//! Walk through the schemas of a schema. Values of `enum`, `const`, `default` and `examples` are no schemas.

use serde_json::Value;
use toolgate_core::json::pointer_token;

/// The deepest schema that is visited.
const MAX_DEPTH: usize = 64;

/// A schema, and where it is.
pub(super) struct Place<'a> {
    pub(super) schema: &'a Value,
    /// JSON pointer to it.
    pub(super) pointer: String,
    /// Whether it is a branch of a combination: such a branch may state a part of the rules only.
    pub(super) is_branch: bool,
}

/// Visits a schema and all schemas in it.
pub(super) fn each_schema(schema: &Value, pointer: &str, visit: &mut dyn FnMut(&Place<'_>)) {
    walk(schema, pointer.to_owned(), false, 0, visit);
}

fn walk(schema: &Value, pointer: String, is_branch: bool, depth: usize, visit: &mut dyn FnMut(&Place<'_>)) {
    let Value::Object(members) = schema else { return };
    if depth > MAX_DEPTH {
        return;
    }
    let place = Place { schema, pointer, is_branch };
    visit(&place);
    for (keyword, value) in members {
        let at = format!("{}/{}", place.pointer, pointer_token(keyword));
        match (keyword.as_str(), value) {
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                Value::Object(named),
            ) => {
                let is_branch = keyword == "dependentSchemas";
                for (name, inner) in named {
                    walk(inner, format!("{at}/{}", pointer_token(name)), is_branch, depth + 1, visit);
                }
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Value::Array(schemas)) => {
                let is_branch = keyword.ends_with("Of");
                for (index, inner) in schemas.iter().enumerate() {
                    walk(inner, format!("{at}/{index}"), is_branch, depth + 1, visit);
                }
            }
            ("not" | "if" | "then" | "else", inner) => walk(inner, at, true, depth + 1, visit),
            (
                "items"
                | "additionalItems"
                | "additionalProperties"
                | "unevaluatedProperties"
                | "unevaluatedItems"
                | "propertyNames"
                | "contains",
                inner,
            ) => walk(inner, at, false, depth + 1, visit),
            _ => {}
        }
    }
}
