//! Parameters that a call repeats in HTTP headers (`x-mcp-header`, SEP-2243).

use serde_json::Value;

const ANNOTATION: &str = "x-mcp-header";

/// The headers of a call of this tool, in the order of its schema: names in lower case, and values before their encoding.
pub(in crate::check) fn of_call(schema: &Value, arguments: &Value) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    collect(schema, arguments, &mut headers);
    headers
}

/// Follows the chains of `properties`; an annotation elsewhere is invalid, which a rule of its own reports.
fn collect(schema: &Value, value: &Value, headers: &mut Vec<(String, String)>) {
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let Some(value) = value.get(name) else { continue };
        let plain = match value {
            Value::String(text) => Some(text.clone()),
            Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        };
        if let (Some(header), Some(plain)) = (property.get(ANNOTATION).and_then(Value::as_str), plain) {
            headers.push((format!("mcp-param-{}", header.to_ascii_lowercase()), plain));
        }
        collect(property, value, headers);
    }
}
