//! Examples of rules: test cases that the author of a rule writes and that run when the rule is loaded.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Finding, Rule, RuleError, Subject, Verdict};
use crate::id::{AgentName, Principal};
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
    /// Whether its server is trusted.
    pub trusted: bool,
    /// The agent that calls it.
    pub agent: Option<String>,
    /// The principal.
    pub principal: Option<String>,
    /// The arguments; a rule with a condition needs them.
    pub arguments: Option<Map<String, Value>>,
}

impl Rule {
    /// The examples whose result differs from the author's expectation.
    pub fn check_examples(&self) -> Vec<RuleError> {
        let (good, bad) = self.examples();
        let expectations = good.iter().map(|e| (e, true)).chain(bad.iter().map(|e| (e, false)));
        expectations.filter_map(|(example, should_match)| example.fault(self, should_match)).collect()
    }
}

impl Example {
    /// The error that the example reveals in a rule.
    fn fault(&self, rule: &Rule, should_match: bool) -> Option<RuleError> {
        let tool = self.tool();
        let (agent, principal) = (self.agent.clone().map(AgentName::from), self.principal.clone().map(Principal::from));
        let subject = Subject {
            tool: &tool,
            agent: agent.as_ref(),
            principal: principal.as_ref(),
            arguments: self.arguments.as_ref(),
        };
        let finding = rule.examine(&subject);
        let why = || finding.in_words(rule, &subject);
        let is_as_said = match &finding {
            Finding::Matches => should_match,
            Finding::Misses(_) => !should_match,
            // Neither: an example has to show the effect of the condition.
            Finding::Depends | Finding::Unclear(_) => false,
        };
        if is_as_said {
            return None;
        }
        let (rule, example) = (rule.id.clone(), tool.name.to_string());
        Some(match &finding {
            Finding::Depends => RuleError::NoArguments { rule, example },
            Finding::Unclear(_) => RuleError::Unclear { rule, example, why: why() },
            Finding::Matches | Finding::Misses(_) => RuleError::Example { rule, example, should_match, why: why() },
        })
    }

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
            hash: String::new(),
        }
    }
}
