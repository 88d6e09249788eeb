//! What a rule has to do with a call, and why.

use super::command::Comparison;
use super::{Rule, Subject};
use crate::core::tool::{Annotations, Origin, Tool, visible};

/// What a rule has to do with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// All it asks for holds: its verdict counts.
    Matches,
    /// All but its condition holds, and that cannot be evaluated for these arguments. Why not.
    Unclear(String),
    /// All but its condition holds, and that needs arguments, which are not known yet.
    Depends,
    /// Something it asks for does not hold: the first such thing.
    Misses(Miss),
}

/// What does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Miss {
    /// The name the model sees.
    Tool,
    /// The origin's name for the tool.
    Named,
    /// The server.
    Server,
    /// Who runs it.
    Origin,
    /// The agent.
    Agent,
    /// On whose behalf.
    Principal,
    /// A hint.
    Hint(Hint),
    /// A hint that would allow, of a server that is not trusted.
    Untrusted,
    /// Whether the server is trusted.
    Trust,
    /// A name that would allow, of a tool whose server is neither trusted nor named by the rule.
    NameAlone,
    /// The command.
    Command,
    /// The condition.
    Condition,
}

/// A hint of a server about its tool.
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
    /// What a server says.
    pub(super) fn given(self, annotations: &Annotations) -> Option<bool> {
        match self {
            Self::ReadOnly => annotations.read_only_hint,
            Self::Destructive => annotations.destructive_hint,
            Self::Idempotent => annotations.idempotent_hint,
            Self::OpenWorld => annotations.open_world_hint,
        }
    }

    /// What has to be reckoned with where nobody who is trusted says otherwise: MCP's own defaults. A tool that only reads,
    /// as a trusted server says, destroys nothing and may be repeated.
    pub(super) fn at_worst(self, tool: &Tool) -> bool {
        let only_reads = tool.trusted && tool.annotations.read_only_hint == Some(true);
        match self {
            Self::ReadOnly => false,
            Self::Destructive => !only_reads,
            Self::Idempotent => only_reads,
            Self::OpenWorld => true,
        }
    }

    /// The word for it in a policy.
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
    /// Which of two findings, by the two names of one tool, is the one to tell of.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::Matches => 3,
            Self::Unclear(_) => 2,
            Self::Depends => 1,
            Self::Misses(_) => 0,
        }
    }

    /// The word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Matches => "matches",
            Self::Unclear(_) => "unclear",
            Self::Depends => "depends",
            Self::Misses(_) => "misses",
        }
    }

    /// Why, in words: what the rule asks for, and what is there.
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

impl Miss {
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
            Self::Named => differs("the name at its origin", &wanted.named, Some(own_name(&tool.origin))),
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
                    visible(server)
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

/// The word for an origin in a policy.
pub(super) fn kind(origin: &Origin) -> &'static str {
    match origin {
        Origin::Mcp { .. } => "mcp",
        Origin::External { .. } => "external",
        Origin::Builtin { .. } => "builtin",
    }
}

/// What an origin itself calls its tool.
pub(super) fn own_name(origin: &Origin) -> &str {
    match origin {
        Origin::Mcp { tool, .. } | Origin::External { tool } | Origin::Builtin { tool } => tool,
    }
}
