//! The tools as the provider reads them, rendered once per toolset: the block is byte-stable, and prompt caches live on
//! that. A tool that the provider cannot take is left out alone: one bad schema must not cost the others.

use std::sync::Arc;

use super::wire::{Declared, Wire};
use crate::core::tool::Toolset;

/// The rendered tools of the toolset that was offered last.
#[derive(Debug, Default)]
pub(super) struct ToolBlock {
    toolset: Option<Arc<Toolset>>,
    json: Option<Vec<u8>>,
}

impl ToolBlock {
    /// The tools as a JSON array; `None` if there are none.
    pub(super) fn render(
        &mut self,
        wire: &dyn Wire,
        toolset: &Arc<Toolset>,
    ) -> Result<Option<&[u8]>, serde_json::Error> {
        let is_current = self.toolset.as_ref().is_some_and(|known| Arc::ptr_eq(known, toolset));
        if !is_current {
            let mut declarations = Vec::new();
            for tool in toolset.iter() {
                match wire.declare(tool) {
                    Declared::As { json, .. } => declarations.push(json),
                    Declared::Refused(why) => {
                        tracing::warn!(tool = %tool.name, wire = wire.name(), why, "a tool is not offered to the model");
                    }
                }
            }
            self.json = (!declarations.is_empty()).then(|| serde_json::to_vec(&declarations)).transpose()?;
            self.toolset = Some(Arc::clone(toolset));
        }
        Ok(self.json.as_deref())
    }
}
