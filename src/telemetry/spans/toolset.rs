//! Tool definitions in spans: the tools available to a model, rendered once for each toolset.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use toolgate_core::tool::{Tool, Toolset};

use super::attributes::{Attributes, CleanAttributes, Value, json_text};
use super::model_input::text_handle;
use super::names;

/// The tools of a toolset.
#[derive(Clone, Debug)]
pub(super) struct RenderedToolset {
    /// All tools under their OpenInference names.
    pub(super) attributes: CleanAttributes,
    /// Their schemas as one JSON array.
    pub(super) schemas: Arc<str>,
    /// The same for inputs that are too long: a handle and the size, if the schemas take half of the limit.
    pub(super) short_schemas: Arc<str>,
}

impl Default for RenderedToolset {
    /// No tools.
    fn default() -> Self {
        Self { attributes: CleanAttributes::default(), schemas: "[]".into(), short_schemas: "[]".into() }
    }
}

impl RenderedToolset {
    /// The tools of a toolset, in values of at most `limit` bytes; `clean` removes secrets.
    pub(super) fn new(toolset: &Toolset, limit: usize, clean: impl Fn(&mut Value)) -> Self {
        let mut attributes = Attributes::within(limit);
        let mut schemas = Vec::new();
        for (index, tool) in toolset.iter().enumerate() {
            let schema = function_schema(tool);
            let prefix = format!("{}.{index}", names::LLM_TOOLS);
            attributes.object(format!("{prefix}.{}", names::TOOL_JSON_SCHEMA), &schema);
            attributes.text(format!("{prefix}.{}", names::TOOL_NAME), tool.name.as_str());
            attributes.text(format!("{prefix}.{}", names::TOOL_DESCRIPTION), &tool.description);
            let mut schema = Value::Text(json_text(&schema).into());
            clean(&mut schema);
            schemas.push(schema);
        }
        let schemas = schemas.iter().filter_map(Value::as_text).collect::<Vec<_>>();
        let schemas: Arc<str> = format!("[{}]", schemas.join(",")).into();
        let is_long = schemas.len() > limit / 2;
        let short_schemas = if is_long { text_handle(&schemas).to_string().into() } else { schemas.clone() };
        let attributes = attributes.into_clean(clean);
        Self { attributes, schemas, short_schemas }
    }
}

fn function_schema(tool: &Tool) -> Json {
    let parameters = match tool.input_schema.as_object() {
        Some(schema) => json!(schema),
        None => json!({ "type": "object" }),
    };
    json!({
        "type": "function",
        "function": { "name": tool.name, "description": tool.description, "parameters": parameters },
    })
}
