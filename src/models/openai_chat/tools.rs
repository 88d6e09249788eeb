//! Tools as this API declares them.

use serde_json::json;

use crate::core::tool::Tool;
use crate::models::http::Declared;

/// The declaration of a tool.
pub(super) fn declare(tool: &Tool) -> Declared {
    let Tool { name, description, input_schema, .. } = tool;
    let function = json!({"name": name, "description": description, "parameters": input_schema});
    Declared::As { json: json!({"type": "function", "function": function}), lost: Vec::new() }
}
