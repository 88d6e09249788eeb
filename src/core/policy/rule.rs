//! One rule of a policy: what it matches, what it says, and examples that prove it.

use std::sync::Arc;

use globset::{Glob, GlobMatcher};
use serde_json::json;

use super::{Subject, Verdict};
use crate::core::id::AgentName;
use crate::core::tool::{Annotations, Origin, Tool, ToolName, external_name, mcp_name};

/// A rule. Build with [`Rule::new`], which compiles its patterns.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Unique within the policy; decisions name it.
    pub id: String,
    /// What it says.
    pub verdict: Verdict,
    /// Why, for the person who is asked and for the model that is refused.
    pub justification: String,
    matches: Match,
    patterns: Patterns,
    examples: (Vec<Example>, Vec<Example>),
}

/// The conditions of a rule; all that are given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// Glob over the name the model sees.
    pub tool: Option<String>,
    /// Glob over the server's configured id; an external tool has none.
    pub server: Option<String>,
    /// `mcp` or `external`.
    pub origin: Option<String>,
    /// Glob over the agent.
    pub agent: Option<String>,
    /// The tool's `readOnlyHint`.
    pub read_only: Option<bool>,
    /// The tool's `destructiveHint`.
    pub destructive: Option<bool>,
    /// The tool's `idempotentHint`.
    pub idempotent: Option<bool>,
    /// The tool's `openWorldHint`.
    pub open_world: Option<bool>,
}

/// A tool that must, or must not, match a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Example {
    /// The MCP server; without one the tool is external.
    pub server: Option<String>,
    /// The origin's name for the tool.
    pub tool: String,
    /// The hints it carries.
    pub annotations: Annotations,
    /// Whether its server is trusted.
    pub trusted: bool,
    /// The agent that calls it.
    pub agent: Option<String>,
}

/// What is wrong with a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// A pattern is no glob.
    #[error("rule `{rule}`: `{pattern}` is not a valid pattern: {reason}")]
    Pattern {
        /// The rule.
        rule: String,
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An origin that does not exist.
    #[error("rule `{rule}`: origin `{origin}` is neither `mcp` nor `external`")]
    Origin {
        /// The rule.
        rule: String,
        /// The word that was written.
        origin: String,
    },
    /// An example is not matched, or a counter-example is.
    #[error("rule `{rule}`: the example `{example}` {}", if *should_match { "should match and does not" } else { "should not match and does" })]
    Example {
        /// The rule.
        rule: String,
        /// The example's tool.
        example: String,
        /// What its author said.
        should_match: bool,
    },
}

#[derive(Clone, Debug, Default)]
struct Patterns {
    tool: Option<GlobMatcher>,
    server: Option<GlobMatcher>,
    agent: Option<GlobMatcher>,
}

impl Rule {
    /// Compiles a rule. `examples` must match it, `counter_examples` must not; [`Rule::check_examples`] tells.
    pub fn new(
        id: &str,
        verdict: Verdict,
        justification: &str,
        matches: Match,
        examples: Vec<Example>,
        counter_examples: Vec<Example>,
    ) -> Result<Self, RuleError> {
        let compile = |pattern: &Option<String>| match pattern {
            None => Ok(None),
            Some(pattern) => Glob::new(pattern).map(|glob| Some(glob.compile_matcher())).map_err(|error| {
                RuleError::Pattern { rule: id.into(), pattern: pattern.clone(), reason: error.kind().to_string() }
            }),
        };
        if let Some(origin) = matches.origin.as_ref().filter(|origin| !["mcp", "external"].contains(&origin.as_str())) {
            return Err(RuleError::Origin { rule: id.into(), origin: origin.clone() });
        }
        let patterns = Patterns {
            tool: compile(&matches.tool)?,
            server: compile(&matches.server)?,
            agent: compile(&matches.agent)?,
        };
        Ok(Self {
            id: id.into(),
            verdict,
            justification: justification.into(),
            matches,
            patterns,
            examples: (examples, counter_examples),
        })
    }

    /// Whether all conditions hold. The hints of an untrusted server may only tighten: a rule that allows because of a
    /// hint does not match a tool whose server is not trusted.
    pub fn matches(&self, subject: &Subject<'_>, name: &ToolName) -> bool {
        let tool = subject.tool;
        let globs = [
            (&self.patterns.tool, Some(name.as_str())),
            (&self.patterns.server, tool.server().map(|server| server.as_str())),
            (&self.patterns.agent, subject.agent.map(|agent| agent.as_str())),
        ];
        let globs_hold = globs.into_iter().all(|(glob, text)| match glob {
            None => true,
            Some(glob) => text.is_some_and(|text| glob.is_match(text)),
        });
        let origin_holds = match (self.matches.origin.as_deref(), &tool.origin) {
            (None, _) | (Some("mcp"), Origin::Mcp { .. }) | (Some("external"), Origin::External { .. }) => true,
            (Some(_), _) => false,
        };
        globs_hold && origin_holds && self.hints_hold(tool)
    }

    fn hints_hold(&self, tool: &Tool) -> bool {
        let hints = [
            (self.matches.read_only, tool.annotations.read_only_hint),
            (self.matches.destructive, tool.annotations.destructive_hint),
            (self.matches.idempotent, tool.annotations.idempotent_hint),
            (self.matches.open_world, tool.annotations.open_world_hint),
        ];
        let asks_for_hints = hints.iter().any(|(wanted, _)| wanted.is_some());
        if asks_for_hints && self.verdict == Verdict::Allow && !tool.trusted {
            return false;
        }
        hints.into_iter().all(|(wanted, given)| wanted.is_none() || wanted == given)
    }

    /// The examples that do not behave as their author says.
    pub fn check_examples(&self) -> Vec<RuleError> {
        let (good, bad) = &self.examples;
        let expectations = good.iter().map(|e| (e, true)).chain(bad.iter().map(|e| (e, false)));
        expectations
            .filter(|(example, should_match)| {
                let tool = example.tool();
                let agent = example.agent.clone().map(AgentName::from);
                let subject = Subject { tool: &tool, agent: agent.as_ref(), principal: None, arguments: None };
                self.matches(&subject, &tool.name) != *should_match
            })
            .map(|(example, should_match)| RuleError::Example {
                rule: self.id.clone(),
                example: example.tool().name.to_string(),
                should_match,
            })
            .collect()
    }
}

impl Example {
    fn tool(&self) -> Tool {
        let (name, origin) = match &self.server {
            Some(server) => (
                mcp_name(&server.as_str().into(), &self.tool),
                Origin::Mcp { server: server.as_str().into(), tool: self.tool.clone() },
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
