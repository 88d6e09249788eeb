//! The tools that the model sees: all that are listed, without hidden ones that no grant covers; and the definitions
//! that were listed first.

use std::sync::Arc;

use super::Run;
use crate::tool::{ToolName, Toolset};

impl Run {
    /// The tools that the model sees in this turn.
    pub fn shown_tools(&self) -> &Arc<Toolset> {
        &self.shown_tools
    }

    /// Keeps the definitions of the tools that the run had not listed before. Runs that list the same tools share them.
    pub(super) fn pin(&mut self, listed: &Toolset) {
        if self.pins.is_empty() {
            self.pins = listed.pins().clone();
        } else if listed.pins().keys().any(|origin| !self.pins.contains_key(origin)) {
            let pins = Arc::make_mut(&mut self.pins);
            for (origin, hash) in listed.pins().iter() {
                pins.entry(origin.clone()).or_insert_with(|| hash.clone());
            }
        }
    }

    /// Adds the hidden tools that a grant covers. A toolset that stays the same stays the same value, so that adapters do not
    /// render it again.
    pub(super) fn show_granted_tools(&mut self) {
        let Some(tools) = &self.tools else { return };
        let is_granted = |name: &ToolName| self.granted.iter().any(|granted| granted.tool == *name);
        let shown = tools.shown(is_granted);
        if Arc::ptr_eq(&shown, &self.shown_tools) {
            return;
        }
        let names = |tools: &Toolset| tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>();
        if names(&shown) != names(&self.shown_tools) {
            self.shown_tools = shown;
        }
    }
}
