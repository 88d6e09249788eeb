//! Tool arguments as HTTP headers, so that proxies can route a call without reading its body (SEP-2243,
//! `x-mcp-header`). A tool with an invalid annotation cannot be used over HTTP.
//!
//! The SDK does this too, but drops the annotations of a whole list when one tool is malformed, and leaves tools out
//! without a reason.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use toolgate_core::tool::McpTool;

const ANNOTATION: &str = "x-mcp-header";
const PREFIX: &str = "mcp-param-";

#[derive(Clone, Debug, PartialEq, Eq)]
struct HeaderArgument {
    path: Vec<String>,
    header: String,
}

/// The header annotations of the tools of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolHeaders(Arc<Mutex<HeaderIndex>>);

#[derive(Debug, Default)]
struct HeaderIndex {
    tools: BTreeMap<String, Vec<HeaderArgument>>,
    /// Invalid tools that the SDK removed from the list, with the reason.
    refused: BTreeMap<String, String>,
}

impl ToolHeaders {
    /// Records the listed tools of a server, and leaves out those that cannot be used.
    pub(super) fn register_tools(&self, tools: &mut Vec<McpTool>, left_out: &mut Vec<(Option<String>, String)>) {
        let mut known = self.known();
        known.tools.clear();
        tools.retain(|tool| match repeated(&tool.input_schema) {
            Ok(repeated) => {
                known.tools.insert(tool.name.clone(), repeated);
                true
            }
            Err(why) => {
                known.refused.insert(tool.name.clone(), why);
                false
            }
        });
        left_out.extend(std::mem::take(&mut known.refused).into_iter().map(|(name, why)| {
            let reason = format!(
                "its `{ANNOTATION}` is not allowed, and calls would be refused: {why}. Correct it in the server"
            );
            (Some(name), reason)
        }));
    }

    /// Records the invalid tools of a `tools/list` result, before the SDK removes them silently.
    pub(super) fn inspect(&self, result: &Value) {
        let tools = result.get("tools").and_then(Value::as_array);
        for tool in tools.into_iter().flatten() {
            let name = tool.get("name").and_then(Value::as_str);
            if let (Some(name), Some(Err(why))) = (name, tool.get("inputSchema").map(repeated)) {
                self.known().refused.insert(name.to_owned(), why);
            }
        }
    }

    /// The headers of a call: names in lower case, and values.
    pub(super) fn of_call(&self, tool: &str, arguments: &Value) -> Vec<(String, String)> {
        let known = self.known();
        let repeated = known.tools.get(tool).map(Vec::as_slice).unwrap_or_default();
        repeated.iter().filter_map(|repeated| repeated.in_call(arguments)).collect()
    }

    fn known(&self) -> MutexGuard<'_, HeaderIndex> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeaderArgument {
    fn in_call(&self, arguments: &Value) -> Option<(String, String)> {
        let value = self.path.iter().try_fold(arguments, |value, name| value.get(name))?;
        let plain = match value {
            Value::String(text) => text.clone(),
            Value::Bool(_) | Value::Number(_) => value.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        Some((format!("{PREFIX}{}", self.header), encoded(plain)))
    }
}

/// The annotations of a schema, or the first invalid one.
fn repeated(schema: &Value) -> Result<Vec<HeaderArgument>, String> {
    let mut found = Vec::new();
    search(schema, SchemaPosition::Root, &mut Vec::new(), &mut found)?;
    let mut seen = HashSet::new();
    match found.iter().find(|repeated| !seen.insert(repeated.header.clone())) {
        Some(twice) => Err(format!("the header `{}` is asked for twice", twice.header)),
        None => Ok(found),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum SchemaPosition {
    Root,
    /// A property that is reached through properties alone.
    Property,
    /// A place where the arguments decide whether the schema applies.
    Elsewhere,
}

fn search(
    schema: &Value,
    place: SchemaPosition,
    path: &mut Vec<String>,
    found: &mut Vec<HeaderArgument>,
) -> Result<(), String> {
    let members = match schema {
        Value::Object(members) => members,
        Value::Array(items) => {
            return items.iter().try_for_each(|item| search(item, SchemaPosition::Elsewhere, path, found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return Ok(()),
    };
    for (keyword, value) in members {
        match keyword.as_str() {
            ANNOTATION if place == SchemaPosition::Property => found.push(annotated(value, schema, path)?),
            ANNOTATION => return Err(format!("it stands beside `{}` instead of at a property", path.join("."))),
            "properties" => properties(value, place, path, found)?,
            "$defs" | "definitions" | "dependentSchemas" | "patternProperties" => {
                for schema in value.as_object().into_iter().flat_map(|schemas| schemas.values()) {
                    search(schema, SchemaPosition::Elsewhere, path, found)?;
                }
            }
            // Data, not schemas.
            "default" | "const" | "enum" | "examples" => {}
            _ => search(value, SchemaPosition::Elsewhere, path, found)?,
        }
    }
    Ok(())
}

fn properties(
    value: &Value,
    place: SchemaPosition,
    path: &mut Vec<String>,
    found: &mut Vec<HeaderArgument>,
) -> Result<(), String> {
    let below = if place == SchemaPosition::Elsewhere { SchemaPosition::Elsewhere } else { SchemaPosition::Property };
    for (name, schema) in value.as_object().into_iter().flatten() {
        path.push(name.clone());
        search(schema, below, path, found)?;
        path.pop();
    }
    Ok(())
}

fn annotated(header: &Value, schema: &Value, path: &[String]) -> Result<HeaderArgument, String> {
    let property = path.join(".");
    let Some(header) = header.as_str() else {
        return Err(format!("at `{property}` it is {header}, not a name"));
    };
    if header.is_empty() || !header.chars().all(is_token) {
        return Err(format!("at `{property}` it is `{}`, which is no name of a header", header.escape_default()));
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string" | "integer" | "boolean") => {
            Ok(HeaderArgument { path: path.to_vec(), header: header.to_ascii_lowercase() })
        }
        _ => Err(format!("`{property}` is not a string, an integer or a boolean")),
    }
}

/// RFC 9110, section 5.6.2.
fn is_token(character: char) -> bool {
    character.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(character)
}

/// The value as a header value. A value that would not survive as one is encoded.
fn encoded(plain: String) -> String {
    let survives = plain.chars().all(|character| matches!(character, ' '..='~'))
        && plain.trim() == plain
        && !(plain.starts_with("=?base64?") && plain.ends_with("?="));
    if survives { plain } else { format!("=?base64?{}?=", BASE64_STANDARD.encode(plain)) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, schema: Value) -> McpTool {
        McpTool {
            name: name.into(),
            description: String::new(),
            input_schema: schema,
            output_schema: None,
            annotations: toolgate_core::tool::Annotations::default(),
            pinned: None,
        }
    }

    #[test]
    fn arguments_that_a_tool_wants_repeated_become_headers_that_survive() {
        let schema = json!({"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "count": {"type": "integer", "x-mcp-header": "Count"},
            "loud": {"type": "boolean", "x-mcp-header": "Loud"},
            "where": {"type": "object", "properties": {"city": {"type": "string", "x-mcp-header": "City"}}},
            "plain": {"type": "string", "enum": [{"x-mcp-header": "data"}]},
        }});
        let headers = ToolHeaders::default();
        let (mut tools, mut left_out) = (vec![tool("t", schema)], Vec::new());
        headers.register_tools(&mut tools, &mut left_out);
        assert_eq!((tools.len(), left_out.len()), (1, 0));
        let sent = |arguments: Value| headers.of_call("t", &arguments);
        let pair = |name: &str, value: &str| (format!("mcp-param-{name}"), value.to_owned());
        assert_eq!(
            sent(json!({"region": "us west 1", "count": 42, "loud": false, "where": {"city": "Graz"}, "plain": "p"})),
            [pair("region", "us west 1"), pair("count", "42"), pair("loud", "false"), pair("city", "Graz")]
        );
        assert_eq!(sent(json!({"region": null, "count": [1]})), []);
        for (text, header) in [
            ("", ""),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("日本", "=?base64?5pel5pys?="),
            ("a\r\nb", "=?base64?YQ0KYg==?="),
            ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
        ] {
            assert_eq!(sent(json!({"region": text})), [pair("region", header)], "{text:?}");
        }
        assert_eq!(headers.of_call("unknown", &json!({"region": "x"})), []);
    }

    #[test]
    fn a_tool_with_an_invalid_annotation_is_left_out_alone() {
        let property = |property: Value| json!({"properties": {"p": property}});
        let wrong = [
            (property(json!({"type": "string", "x-mcp-header": ""})), "is ``, which is no name"),
            (property(json!({"type": "string", "x-mcp-header": "My Region"})), "no name of a header"),
            (property(json!({"type": "string", "x-mcp-header": "R\u{e9}gion"})), "no name of a header"),
            (property(json!({"type": "string", "x-mcp-header": 7})), "is 7, not a name"),
            (property(json!({"type": "number", "x-mcp-header": "N"})), "`p` is not a string"),
            (property(json!({"type": "object", "x-mcp-header": "N"})), "`p` is not a string"),
            (property(json!({"type": "array", "items": {"type": "string", "x-mcp-header": "N"}})), "instead of at"),
            (json!({"x-mcp-header": "Root"}), "instead of at a property"),
            (json!({"$defs": {"d": {"properties": {"p": {"type": "string", "x-mcp-header": "N"}}}}}), "instead of at"),
            (
                json!({"properties": {
                    "a": {"type": "string", "x-mcp-header": "Same"}, "b": {"type": "string", "x-mcp-header": "same"},
                }}),
                "`same` is asked for twice",
            ),
        ];
        for (schema, complaint) in wrong {
            let (mut tools, mut left_out) = (vec![tool("bad", schema.clone()), tool("good", json!({}))], Vec::new());
            ToolHeaders::default().register_tools(&mut tools, &mut left_out);
            let (name, reason) = left_out.pop().expect("left out");
            assert_eq!((tools.len(), tools[0].name.as_str(), name.as_deref()), (1, "good", Some("bad")));
            assert!(reason.contains(complaint), "{reason}");
            let seen = ToolHeaders::default();
            seen.inspect(&json!({"tools": [{"name": "bad", "inputSchema": schema}, {"name": "good"}]}));
            let mut left_out = Vec::new();
            seen.register_tools(&mut Vec::new(), &mut left_out);
            assert_eq!(left_out, [(Some("bad".to_owned()), reason)]);
        }
    }
}
