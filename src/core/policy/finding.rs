//! Findings: the relation of one rule to a call, with its reason.

use super::command::Comparison;
use super::{Rule, Subject};
use crate::tool::{Annotations, Origin, Tool, escape_untrusted};

/// The relation of a rule to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Every criterion holds: its verdict counts.
    Matches,
    /// Every criterion but the condition holds, and the condition cannot be evaluated for these arguments. Contains the
    /// reason.
    Unclear(String),
    /// Every criterion but the condition holds, and the condition needs arguments, which are not known yet.
    Depends,
    /// A criterion does not hold: the first such criterion.
    Misses(UnmetCriterion),
}

/// A criterion that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnmetCriterion {
    /// The name the model sees.
    Tool,
    /// The origin's name for the tool.
    ToolName,
    /// The server.
    Server,
    /// The origin.
    Origin,
    /// The agent.
    Agent,
    /// The principal.
    Principal,
    /// A hint.
    Hint(Hint),
    /// A hint that would allow, from a server that is not trusted.
    Untrusted,
    /// Whether the server is trusted.
    Trust,
    /// A name that would allow, for a tool whose server is neither trusted nor named by the rule.
    NameAlone,
    /// The command.
    Command,
    /// The condition.
    Condition,
}

/// A server's hint about its tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// `readOnlyHint`.
    ReadOnly,
    /// `destructiveHint`.
    Destructive,
    /// `idempotentHint`.
    Idempotent,
    /// `openWorldHint`.
    OpenWorld,
}

impl Hint {
    /// The server's value.
    pub(super) fn given(self, annotations: &Annotations) -> Option<bool> {
        match self {
            Self::ReadOnly => annotations.read_only_hint,
            Self::Destructive => annotations.destructive_hint,
            Self::Idempotent => annotations.idempotent_hint,
            Self::OpenWorld => annotations.open_world_hint,
        }
    }

    /// The worst case, assumed unless a trusted server says otherwise: MCP's own defaults. A tool that a trusted server
    /// declares read-only destroys nothing and may be repeated.
    pub(super) fn at_worst(self, tool: &Tool) -> bool {
        let only_reads = tool.trusted && tool.annotations.read_only_hint == Some(true);
        match self {
            Self::ReadOnly => false,
            Self::Destructive => !only_reads,
            Self::Idempotent => only_reads,
            Self::OpenWorld => true,
        }
    }

    /// Its name in a policy.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::Destructive => "destructive",
            Self::Idempotent => "idempotent",
            Self::OpenWorld => "open_world",
        }
    }
}

impl Finding {
    /// The precedence of two findings for the two names of one tool, when one of them is reported.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::Matches => 3,
            Self::Unclear(_) => 2,
            Self::Depends => 1,
            Self::Misses(_) => 0,
        }
    }

    /// Its name.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Matches => "matches",
            Self::Unclear(_) => "unclear",
            Self::Depends => "depends",
            Self::Misses(_) => "misses",
        }
    }

    /// The reason in words: the criterion of the rule, and the actual value.
    pub fn in_words(&self, rule: &Rule, subject: &Subject<'_>) -> String {
        let condition = rule.when().map_or("", |condition| condition.text());
        match self {
            Self::Matches => {
                let and_so = if rule.when().is_some() { format!(", and so does `{condition}`") } else { String::new() };
                let worst = rule.hint_at_worst(subject.tool).map(|(hint, worst)| {
                    let who =
                        if subject.tool.trusted { "its server does not say" } else { "its server is not trusted" };
                    format!("; `{}` counts as {worst}: {who}", hint.as_str())
                });
                format!("everything it asks for holds{and_so}{}", worst.unwrap_or_default())
            }
            Self::Unclear(why) => format!("`{condition}` cannot be evaluated: {why}"),
            Self::Depends => {
                let command = rule.conditions().command.as_ref().map(|command| format!("`command` {command}"));
                let condition = rule.when().map(|_| format!("`{condition}`"));
                let both: Vec<String> = [command, condition].into_iter().flatten().collect();
                format!("it depends on the arguments: {}", both.join(" and "))
            }
            Self::Misses(miss) => miss.in_words(rule, subject),
        }
    }
}

impl UnmetCriterion {
    fn in_words(self, rule: &Rule, subject: &Subject<'_>) -> String {
        let (wanted, tool) = (rule.conditions(), subject.tool);
        let differs = |what: &str, wanted: &Option<String>, found: Option<&str>| {
            let wanted = wanted.as_deref().unwrap_or_default();
            match found {
                Some(found) => format!("{what} `{found}` is not `{wanted}`"),
                None => format!("there is no {what}, and `{wanted}` is asked for"),
            }
        };
        match self {
            Self::Tool => differs("the name", &wanted.tool, Some(tool.name.as_str())),
            Self::ToolName => differs("the name at its origin", &wanted.tool_name, Some(own_name(&tool.origin))),
            Self::Server => differs("server", &wanted.server, tool.server().map(|server| server.as_str())),
            Self::Origin => differs("origin", &wanted.origin, Some(kind(&tool.origin))),
            Self::Agent => differs("agent", &wanted.agent, subject.agent.map(|agent| agent.as_str())),
            Self::Principal => differs("principal", &wanted.principal, subject.principal.map(|who| who.as_str())),
            Self::Hint(hint) => format!("the hint `{}` is another one, or there is none", hint.as_str()),
            Self::Untrusted => "its server is not trusted, and a hint of such a server allows nothing".to_owned(),
            Self::Trust if tool.trusted => {
                "its server is trusted, and the rule is about servers that are not".to_owned()
            }
            Self::Trust => "its server is not trusted".to_owned(),
            Self::NameAlone => {
                let server = tool.server().map_or("", |server| server.as_str());
                format!(
                    "its server is not trusted, and the name of a tool alone allows nothing; write `server: {}` into the rule if you mean this server",
                    escape_untrusted(server)
                )
            }
            Self::Command => match rule.compare_command(subject) {
                Comparison::Differs(why) => why,
                Comparison::Matches | Comparison::Unknown => "the command differs".to_owned(),
            },
            Self::Condition => {
                format!("`{}` does not hold", rule.when().map_or("", |condition| condition.text()))
            }
        }
    }
}

/// The name of an origin in a policy.
pub(super) fn kind(origin: &Origin) -> &'static str {
    match origin {
        Origin::Mcp { .. } => "mcp",
        Origin::External { .. } => "external",
        Origin::Builtin { .. } => "builtin",
    }
}

/// The origin's own name for the tool.
pub(super) fn own_name(origin: &Origin) -> &str {
    match origin {
        Origin::Mcp { tool, .. } | Origin::External { tool } | Origin::Builtin { tool } => tool,
    }
}
