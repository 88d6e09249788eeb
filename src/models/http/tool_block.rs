//! Tool block: the declared tools in the provider's form, rendered once per toolset. The block is byte-stable, which
//! prompt caches depend on. A tool that the provider rejects is left out alone: one bad schema must not affect the
//! others.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use toolgate_core::tool::{Tool, ToolName, Toolset};

use super::declaration::{Declaration, Declared, Names};
use super::protocol::ProviderProtocol;

/// The rendered tools of the last toolset.
#[derive(Debug, Default)]
pub(super) struct ToolBlock {
    toolset: Option<Arc<Toolset>>,
    names: Names,
    json: Option<Vec<u8>>,
}

impl ToolBlock {
    /// Updates the block to the toolset.
    pub(super) fn update(
        &mut self,
        wire: &dyn ProviderProtocol,
        toolset: &Arc<Toolset>,
    ) -> Result<(), serde_json::Error> {
        if self.toolset.as_ref().is_some_and(|known| Arc::ptr_eq(known, toolset)) {
            return Ok(());
        }
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
        self.json = (!declarations.is_empty()).then(|| serde_json::to_vec(&declarations)).transpose()?;
        self.names = Names::new(names);
        self.toolset = Some(Arc::clone(toolset));
        Ok(())
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
