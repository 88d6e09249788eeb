//! The tools as the provider reads them, rendered once per toolset: the block is byte-stable, and prompt caches live on
//! that. A tool that the provider cannot take is left out alone: one bad schema must not cost the others.

use std::collections::BTreeSet;
use std::sync::{Arc, Once};

use super::settings::ToolChoice;
use super::wire::{Declared, Wire};
use crate::core::tool::Toolset;

/// The rendered tools of the toolset that was offered last.
#[derive(Debug, Default)]
pub(super) struct ToolBlock {
    toolset: Option<Arc<Toolset>>,
    names: Names,
    json: Option<Vec<u8>>,
}

/// The names of the tools that are declared.
#[derive(Debug)]
pub(in crate::models) struct Names {
    declared: BTreeSet<String>,
    complained: Once,
}

impl ToolBlock {
    /// Brings the block up to date.
    pub(super) fn update(&mut self, wire: &dyn Wire, toolset: &Arc<Toolset>) -> Result<(), serde_json::Error> {
        if self.toolset.as_ref().is_some_and(|known| Arc::ptr_eq(known, toolset)) {
            return Ok(());
        }
        let (mut names, mut declarations) = (BTreeSet::new(), Vec::new());
        for tool in toolset.iter() {
            match wire.declare(tool) {
                Declared::As { json, .. } => {
                    names.insert(tool.name.to_string());
                    declarations.push(json);
                }
                Declared::Refused(why) => {
                    tracing::warn!(tool = %tool.name, wire = wire.name(), why, "a tool is not offered to the model");
                }
            }
        }
        self.json = (!declarations.is_empty()).then(|| serde_json::to_vec(&declarations)).transpose()?;
        self.names = Names::new(names);
        self.toolset = Some(Arc::clone(toolset));
        Ok(())
    }

    /// The tools as a JSON array; `None` if there are none.
    pub(super) fn json(&self) -> Option<&[u8]> {
        self.json.as_deref()
    }

    /// Their names.
    pub(super) fn names(&self) -> &Names {
        &self.names
    }
}

impl Names {
    fn new(declared: BTreeSet<String>) -> Self {
        Self { declared, complained: Once::new() }
    }

    /// The choice as it can be sent: providers refuse a request that names a tool which it does not declare.
    pub(super) fn sendable<'a>(&self, choice: &'a ToolChoice) -> &'a ToolChoice {
        match choice {
            ToolChoice::Tool(name) if !self.declared.contains(name) => {
                let complain = || tracing::warn!(tool = name, "the tool that tool_choice names is not on offer");
                self.complained.call_once(complain);
                &ToolChoice::Auto
            }
            ToolChoice::Tool(_) | ToolChoice::Auto | ToolChoice::Required => choice,
        }
    }
}

impl Default for Names {
    fn default() -> Self {
        Self::new(BTreeSet::new())
    }
}
