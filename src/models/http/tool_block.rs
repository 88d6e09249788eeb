//! Tool block: the declared tools in the provider's form, rendered once per toolset for all conversations of a model.
//! The block is byte-stable, which prompt caches depend on. A tool that the provider rejects is left out alone: one bad
//! schema must not affect the others.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use toolgate_core::tool::{Tool, ToolName, Toolset};
use toolgate_ports::Recent;

use super::declaration::{Declaration, Declared, Names};
use super::protocol::ProviderProtocol;

/// The most toolsets whose blocks are kept.
const CAPACITY: usize = 64;

/// The blocks of the last toolsets of a model.
#[derive(Debug)]
pub(super) struct ToolBlocks(Recent<Arc<Toolset>, Arc<ToolBlock>>);

impl Default for ToolBlocks {
    fn default() -> Self {
        Self(Recent::new(CAPACITY))
    }
}

impl ToolBlocks {
    /// The block of a toolset.
    pub(super) fn block(
        &self,
        wire: &dyn ProviderProtocol,
        toolset: &Arc<Toolset>,
    ) -> Result<Arc<ToolBlock>, serde_json::Error> {
        if let Some(block) = self.0.get(|known, _| known == toolset) {
            return Ok(block);
        }
        let block = Arc::new(ToolBlock::new(wire, toolset)?);
        self.0.insert(toolset.clone(), block.clone());
        Ok(block)
    }
}

/// The rendered tools of a toolset.
#[derive(Debug)]
pub(super) struct ToolBlock {
    names: Names,
    json: Option<Vec<u8>>,
}

impl ToolBlock {
    fn new(wire: &dyn ProviderProtocol, toolset: &Toolset) -> Result<Self, serde_json::Error> {
        let surplus = surplus(wire, toolset);
        let mut declarations = Vec::new();
        for tool in toolset.iter().filter(|tool| !surplus.contains(&tool.name)) {
            match wire.declare(tool) {
                Declared::As { json, .. } => declarations.push(Declaration { name: tool.name.to_string(), json }),
                Declared::Refused(why) => {
                    tracing::warn!(tool = %tool.name, wire = wire.name(), why, "tool left out of the model's tools");
                }
            }
        }
        wire.bound(&mut declarations);
        let (names, declarations): (BTreeSet<String>, Vec<Value>) =
            declarations.into_iter().map(|Declaration { name, json }| (name, json)).unzip();
        let json = (!declarations.is_empty()).then(|| serde_json::to_vec(&declarations)).transpose()?;
        Ok(Self { names: Names::new(names), json })
    }

    /// The tools as a JSON array; `None` if there are no tools.
    pub(super) fn json(&self) -> Option<&[u8]> {
        self.json.as_deref()
    }

    /// The names of the declared tools.
    pub(super) fn names(&self) -> &Names {
        &self.names
    }
}

/// The tools beyond the server's limit. A run leaves out those of its preferred model; a fallback model may have a lower
/// limit.
fn surplus<'a>(wire: &dyn ProviderProtocol, toolset: &'a Toolset) -> BTreeSet<&'a ToolName> {
    let Some(most) = wire.most_tools() else { return BTreeSet::new() };
    let is_declarable = |tool: &Tool| matches!(wire.declare(tool), Declared::As { .. });
    let surplus: BTreeSet<&ToolName> =
        toolset.surplus(most, is_declarable).into_iter().map(|tool| &tool.name).collect();
    if !surplus.is_empty() {
        let tools: Vec<&str> = surplus.iter().map(|name| name.as_str()).collect();
        tracing::warn!(most, tools = tools.join(", "), "tools beyond the server's limit left out");
    }
    surplus
}
