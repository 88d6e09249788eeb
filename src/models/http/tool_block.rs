//! Tool block: the declared tools in the provider's form, rendered once per toolset. The block is byte-stable, which
//! prompt caches depend on. A tool that the provider rejects is left out alone: one bad schema must not affect the
//! others.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use toolgate_core::tool::Toolset;

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
        let mut declarations = Vec::new();
        for tool in toolset.iter() {
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

/// Drops the tools beyond a server's limit. A toolset is ordered by name, so every request drops the same ones.
pub(crate) fn keep_first(most: usize, declarations: &mut Vec<Declaration>) {
    let left_out = declarations.len().saturating_sub(most);
    if left_out > 0 {
        declarations.truncate(most);
        tracing::warn!(most, left_out, "tools beyond the server's limit left out");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_beyond_the_limit_are_dropped_from_the_end() {
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
