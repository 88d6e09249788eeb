//! Defaults of parameters, against the schema that they stand in.

use serde_json::{Map, Value};

use super::tool_judge::ToolJudge;
use super::walk::each_schema;
use crate::check::finding::one_line;
use crate::check::rules::tools as rules;

/// The most defaults that are validated; each takes a compilation.
const MAX_DEFAULTS: usize = 60;

/// Judges the defaults of a schema that is valid.
pub(super) fn judge(judge: &ToolJudge<'_>, schema: &Value) {
    let mut defaults = Vec::new();
    each_schema(schema, "/inputSchema", &mut |place| {
        if let Some(default) = place.schema.get("default") {
            defaults.push((place.schema.clone(), default.clone(), format!("{}/default", place.pointer)));
        }
    });
    for (inner, default, pointer) in defaults.into_iter().take(MAX_DEFAULTS) {
        let Some(whole) = standalone(&inner, schema) else { continue };
        let Ok(validator) = jsonschema::options().offline().build(&whole) else { continue };
        if let Err(error) = validator.validate(&default) {
            let text =
                format!("the default {} does not fit: {}", one_line(&default.to_string(), 80), error.masked_with("it"));
            judge.report(&rules::DEFAULT_MISMATCH, pointer, text);
        }
    }
}

/// A part of a schema with the definitions of the whole, so that its references have targets.
fn standalone(inner: &Value, schema: &Value) -> Option<Value> {
    let mut whole: Map<String, Value> = inner.as_object()?.clone();
    for keyword in ["$schema", "$defs", "definitions"] {
        if let Some(value) = schema.get(keyword) {
            whole.insert(keyword.to_owned(), value.clone());
        }
    }
    Some(Value::Object(whole))
}
