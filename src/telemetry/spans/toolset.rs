//! Tool definitions in spans: the tools available to a model, rendered once for each toolset.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use toolgate_core::tool::{Tool, Toolset};

use super::attributes::{Attribute, Attributes, json_text};
use super::conversation::list;
use super::{Redaction, names};

#[derive(Clone, Debug, Default)]
pub(super) struct RenderedToolset {
    toolset: Option<Arc<Toolset>>,
    attributes: Vec<Attribute>,
    /// Their schemas, each as JSON.
    schemas: Vec<String>,
}

impl RenderedToolset {
    /// Updates to the current toolset and removes secrets from it. The same allocation as before is not rendered again.
    pub(super) fn update(&mut self, toolset: Option<&Arc<Toolset>>, redaction: &Redaction) {
        let is_same = match (&self.toolset, toolset) {
            (Some(known), Some(now)) => Arc::ptr_eq(known, now),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if is_same {
            return;
        }
        let mut attributes = Attributes::default();
        let mut schemas = Vec::new();
        for (index, tool) in toolset.into_iter().flat_map(|toolset| toolset.iter()).enumerate() {
            let schema = function_schema(tool);
            let prefix = format!("{}.{index}", names::LLM_TOOLS);
            attributes.object(format!("{prefix}.{}", names::TOOL_JSON_SCHEMA), &schema);
            attributes.text(format!("{prefix}.{}", names::TOOL_NAME), tool.name.as_str());
            attributes.text(format!("{prefix}.{}", names::TOOL_DESCRIPTION), &tool.description);
            schemas.push(redaction.text(json_text(&schema)));
        }
        let mut attributes = attributes.into_vec();
        redaction.attributes(&mut attributes);
        *self = Self { toolset: toolset.cloned(), attributes, schemas };
    }

    /// All tools under their OpenInference names.
    pub(super) fn attributes(&self, to: &mut Attributes) {
        to.extend(&self.attributes);
    }

    /// A list of their schemas, piece by piece.
    pub(super) fn schemas(&self) -> impl Iterator<Item = &str> {
        list(self.schemas.iter())
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
