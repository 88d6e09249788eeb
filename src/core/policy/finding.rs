//! Findings: the relation of one rule to a call, with its reason.

use crate::tool::{Annotations, Origin, Tool};

/// The relation of a rule to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Every criterion holds: its verdict counts.
    Matches,
    /// Every other criterion holds, and this one cannot be evaluated for these arguments.
    Unclear(UnclearCriterion),
    /// Every criterion holds except for those that need arguments, which are not known yet.
    Depends,
    /// A criterion does not hold: the first such criterion.
    Misses(UnmetCriterion),
}

/// A criterion that cannot be evaluated for the arguments of a call, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnclearCriterion {
    /// A rule that denies may match a command that cannot be analysed.
    Command(String),
    /// The condition is an error.
    Condition(String),
    /// The limit sums an argument that is not an amount.
    Limit(String),
}

/// A criterion that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnmetCriterion {
    /// The name the model sees.
    Tool,
    /// The origin's name for the tool.
    ToolName,
    Server,
    Origin,
    Agent,
    Principal,
    Hint(Hint),
    /// A hint that would allow, from a server that is not trusted.
    Untrusted,
    /// Whether the server is trusted.
    Trust,
    /// A name that would allow, for a tool whose server is neither trusted nor named by the rule.
    NameAlone,
    Command,
    Condition,
}

/// A server's hint about its tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    ReadOnly,
    Destructive,
    Idempotent,
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

impl UnclearCriterion {
    /// Why a call requires approval because of the rule with this id and reason.
    pub(super) fn note(&self, id: &str, reason: &str) -> String {
        let of = |name: &str, why: &str| format!("the {name} of rule `{id}` cannot be evaluated for this call: {why}");
        match self {
            Self::Command(_) => format!("the command cannot be analysed, so that rule `{id}` may apply: {reason}"),
            Self::Condition(why) => of("condition", why),
            Self::Limit(why) => of("limit", why),
        }
    }

    /// Why it cannot be evaluated: the words of the command, the error of the condition, or the fault of the amount.
    pub fn reason(&self) -> &str {
        let (Self::Command(reason) | Self::Condition(reason) | Self::Limit(reason)) = self;
        reason
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
}

/// The name of an origin in a policy.
pub(super) fn kind(origin: &Origin) -> &'static str {
    match origin {
        Origin::Mcp { .. } => "mcp",
        Origin::External { .. } => "external",
        Origin::Builtin { .. } => "builtin",
    }
}
