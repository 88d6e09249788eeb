//! The tools as the server reads them, rendered once per toolset: the block is byte-stable, and prompt caches live on
//! that.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::core::tool::{Tool, Toolset};

/// The rendered tools of the toolset that was offered last.
#[derive(Debug, Default)]
pub(super) struct ToolBlock {
    toolset: Option<Arc<Toolset>>,
    json: Vec<u8>,
}

impl ToolBlock {
    /// The tools as a JSON array.
    pub(super) fn render(&mut self, toolset: &Arc<Toolset>) -> Result<&[u8], serde_json::Error> {
        let is_current = self.toolset.as_ref().is_some_and(|known| Arc::ptr_eq(known, toolset));
        if !is_current {
            let tools: Vec<Value> = toolset.iter().map(|tool| declaration(tool)).collect();
            self.json = serde_json::to_vec(&tools)?;
            self.toolset = Some(Arc::clone(toolset));
        }
        Ok(&self.json)
    }
}

fn declaration(tool: &Tool) -> Value {
    let Tool { name, description, input_schema, .. } = tool;
    json!({"type": "function", "function": {"name": name, "description": description, "parameters": input_schema}})
}
