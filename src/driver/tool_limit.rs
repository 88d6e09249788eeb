//! Tool limit of a model: its provider rejects a request with more tools than that.

use std::collections::BTreeSet;

use toolgate_core::id::ModelName;
use toolgate_core::tool::{Tool, ToolName, Toolset};
use toolgate_ports::{Model, ToolFit};

use super::Agent;

/// The tools of a toolset that a model is not given because of its limit.
#[derive(Debug)]
pub struct ToolLimit {
    surplus: BTreeSet<ToolName>,
    reason: String,
}

impl ToolLimit {
    /// The limit of this model, applied to these tools.
    pub fn new(name: &ModelName, model: &dyn Model, tools: &Toolset) -> Self {
        let most = model.most_tools().unwrap_or(usize::MAX);
        let is_declarable = |tool: &Tool| !matches!(model.fit(tool), ToolFit::Refused(_));
        let surplus = tools.surplus(most, is_declarable).into_iter().map(|tool| tool.name.clone()).collect();
        let reason = format!(
            "model `{name}` accepts {most} tools, and this one has the lowest priority or comes last. Choose the tools \
             with `tools: {{ allow: [...] }}`, or give this one a higher priority."
        );
        Self { surplus, reason }
    }

    /// The reason why the model is not given this tool; `None` if it is.
    pub fn refusal(&self, tool: &Tool) -> Option<String> {
        self.surplus.contains(&tool.name).then(|| self.reason.clone())
    }
}

impl Agent {
    /// The toolset without the tools beyond the limit of this model, one of the agent's.
    pub fn within_tool_limit(&self, model: &ModelName, tools: Toolset) -> Toolset {
        let Some((name, model)) = self.models().find(|(name, _)| *name == model) else { return tools };
        let limit = ToolLimit::new(name, model.as_ref(), &tools);
        if limit.surplus.is_empty() { tools } else { tools.without(|tool| limit.refusal(tool)) }
    }
}
