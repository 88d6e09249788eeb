//! Examples of rules: test cases that the author of a rule writes and that run when the rule is loaded.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::Verdict;
use crate::tool::{Annotations, Origin, Tool, ToolName, external_name, mcp_name};

/// A call, or any call of a tool, that must, or must not, match a rule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Example {
    /// The MCP server; without one the tool is external, unless it is builtin.
    pub server: Option<String>,
    /// Whether toolgate itself runs the tool.
    pub builtin: bool,
    /// The origin's name for the tool.
    pub tool: String,
    /// The hints it carries.
    pub annotations: Annotations,
    pub trusted: bool,
    pub agent: Option<String>,
    pub principal: Option<String>,
    /// The arguments; a rule with a condition needs them.
    pub arguments: Option<Map<String, Value>>,
}

impl Example {
    /// A tool of that kind, without any other property.
    pub fn tool(&self) -> Tool {
        let (name, origin) = match &self.server {
            Some(server) => (
                mcp_name(&server.as_str().into(), &self.tool),
                Origin::Mcp { server: server.as_str().into(), tool: self.tool.clone() },
            ),
            None if self.builtin => (
                ToolName::parse(&self.tool).unwrap_or_else(|| external_name(&self.tool)),
                Origin::Builtin { tool: self.tool.clone() },
            ),
            None => (external_name(&self.tool), Origin::External { tool: self.tool.clone() }),
        };
        Tool {
            name,
            own_name: None,
            origin,
            endpoint: None,
            description: String::new(),
            input_schema: Arc::new(json!({"type": "object"})),
            output_schema: None,
            annotations: self.annotations.clone(),
            trusted: self.trusted,
            priority: 0,
            deadline_s: None,
            verdict: Verdict::Ask,
            changed: false,
            hidden: false,
            hash: String::new(),
            pinned: None,
            undo: None,
        }
    }
}
