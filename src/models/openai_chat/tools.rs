//! Tool declarations for this API.

use serde_json::{Value, json};
use toolgate_core::tool::Tool;

use crate::http::Declared;
use crate::openai_schema::{is_strict, project};

/// The declaration of a tool.
pub(super) fn declare(tool: &Tool, strict_tools: bool) -> Declared {
    let Tool { name, description, input_schema, .. } = tool;
    let mut projected = match project(input_schema) {
        Ok(projected) => projected,
        Err(why) => return Declared::Refused(why),
    };
    let is_strict = is_strict(&mut projected, strict_tools);
    let mut function = json!({"name": name, "description": description, "parameters": projected.schema});
    // Servers that do not support the field may reject it.
    if is_strict && let Value::Object(function) = &mut function {
        function.insert("strict".into(), true.into());
    }
    Declared::As { json: json!({"type": "function", "function": function}), lost: projected.lost }
}
