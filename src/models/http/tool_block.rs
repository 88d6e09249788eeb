//! The tools as the provider reads them, rendered once per toolset: the block is byte-stable, and prompt caches live on
//! that. A tool that the provider cannot take is left out alone: one bad schema must not cost the others.

use std::collections::BTreeSet;
use std::sync::{Arc, Once};

use serde_json::Value;

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

/// A tool that is to be declared.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::models) struct Declaration {
    /// The tool's name.
    pub(in crate::models) name: String,
    /// The declaration, as the provider reads it.
    pub(in crate::models) json: Value,
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
        let mut declarations = Vec::new();
        for tool in toolset.iter() {
            match wire.declare(tool) {
                Declared::As { json, .. } => declarations.push(Declaration { name: tool.name.to_string(), json }),
                Declared::Refused(why) => {
                    tracing::warn!(tool = %tool.name, wire = wire.name(), why, "a tool is not offered to the model");
                }
            }
        }
        wire.bound(&mut declarations);
        let (names, declarations): (BTreeSet<String>, Vec<Value>) =
            declarations.into_iter().map(|Declaration { name, json }| (name, json)).unzip();
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

/// Leaves out what is more than a server takes. The order of a toolset is that of its names, so the same are left out
/// in every request.
pub(in crate::models) fn keep_first(most: usize, declarations: &mut Vec<Declaration>) {
    let left_out = declarations.len().saturating_sub(most);
    if left_out > 0 {
        declarations.truncate(most);
        tracing::warn!(most, left_out, "the server takes no more tools, so the last ones are not offered to the model");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_more_than_a_server_takes_is_left_out_from_the_end() {
        let all: Vec<Declaration> =
            ["a", "b", "c"].map(|name| Declaration { name: name.into(), json: Value::Null }).into();
        let kept = |most| {
            let mut kept = all.clone();
            keep_first(most, &mut kept);
            kept
        };
        assert_eq!((kept(3), kept(2)), (all.clone(), all[..2].to_vec()));
    }
}
