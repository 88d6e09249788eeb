//! Unmatched rules: rules with the name of a tool or server that match no tool of a run.
//!
//! Such a rule is probably misspelled. One that allows has no effect, and is reported. Of one that asks or denies, the
//! calls that it was meant to restrict would run: until it is corrected, or says `allow_unmatched: true`, calls that it
//! may have meant require approval. A rule is unmatched only if every tool
//! that it could match is known: patterns for external tools, which each caller declares, and for servers whose tools are
//! not listed, are never unmatched. Neither is a pattern that names no server (`*_delete_*`, `mcp_*_delete_*`).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Judgement, Policy, Rule, Verdict};
use crate::id::{AgentName, Principal, ServerId};
use crate::pattern::{NamePattern, literal_start};
use crate::similar::{self, did_you_mean};
use crate::tool::{Builtin, LeftOut, Origin, Tool, escape_untrusted, mcp_name};

/// The beginning of the names of all MCP tools, and of all external tools.
const PREFIXES: [&str; 2] = ["mcp_", "ext_"];

/// A rule that matches no tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnmatchedRule {
    pub policy: String,
    /// The id of the rule.
    pub rule: String,
    /// The pattern that matches no name, such as `tool: mcp_git_psuh`.
    pub pattern: String,
    /// The servers whose tools it may have meant; empty for every server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerId>,
    /// Whether the rule allows, so that no call requires approval because of it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub allows: bool,
    /// The names of tools, or else of servers, that the pattern may mean.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub similar: Vec<String>,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// The names that the rules of a policy are compared with.
#[derive(Clone, Copy, Debug)]
pub struct KnownNames<'a> {
    /// The agent; `None` for any.
    pub agent: Option<&'a AgentName>,
    /// The principal; `None` for any.
    pub principal: Option<&'a Principal>,
    /// The tools that were listed, before filters.
    pub tools: &'a [Tool],
    /// The tools and servers that were left out.
    pub left_out: &'a [LeftOut],
    /// The servers of the run, and servers whose tools it does not list.
    pub servers: &'a [ServerId],
    /// Those of them whose tools are not known.
    pub unlisted: &'a [ServerId],
}

impl Policy {
    /// The rules for this agent and principal that have a name and match no tool.
    pub fn unmatched_rules(&self, known: &KnownNames<'_>) -> Vec<UnmatchedRule> {
        let concerns = |rule: &&Rule| rule.is_by_name() && rule.concerns(known.agent, known.principal);
        self.rules.iter().filter(concerns).filter_map(|rule| self.unmatched(rule, known)).collect()
    }

    fn unmatched(&self, rule: &Rule, known: &KnownNames<'_>) -> Option<UnmatchedRule> {
        let may_mean = |server: &&ServerId| rule.may_mean(server);
        let is_server = rule.names_servers_only() && known.servers.iter().any(|server| rule.fits_server(server));
        let is_tool = known.tools.iter().any(|tool| rule.names(tool));
        let is_left_out = known.left_out.iter().any(|left| rule.names_left_out(left));
        let may_be_unlisted = rule.may_name_others() || known.unlisted.iter().any(|server| rule.may_mean(server));
        // Only what is certain counts: a rule that could match a tool of another run or listing is not unmatched
        // (decision 0041).
        if is_server || is_tool || is_left_out || may_be_unlisted {
            return None;
        }
        let servers = known.servers.iter().filter(may_mean).cloned().collect();
        Some(UnmatchedRule {
            policy: self.name.clone(),
            rule: rule.id.clone(),
            pattern: rule.name_pattern(),
            servers,
            allows: rule.verdict == Verdict::Allow,
            similar: known.similar_to(rule),
        })
    }
}

impl KnownNames<'_> {
    /// Whether a pattern of the name that the model sees fits no tool, and none that is not listed here.
    pub fn misses(&self, pattern: &NamePattern) -> bool {
        let fits = |name: &str| pattern.fits(name).unwrap_or(true);
        let is_tool = self
            .tools
            .iter()
            .any(|tool| fits(tool.name.as_str()) || tool.own_name.as_ref().is_some_and(|name| fits(name.as_str())));
        let is_left_out = self.left_out.iter().any(|left| match (&left.server, &left.tool) {
            (Some(server), Some(tool)) => fits(mcp_name(server, tool).as_str()),
            (_, _) => false,
        });
        let text = pattern.as_str();
        let may_be_unlisted = self.unlisted.iter().any(|server| may_name_tool_of(text, server));
        !(is_tool || is_left_out || may_name_others(text) || may_be_unlisted)
    }

    /// The names that a rule without a match may mean: of servers where its pattern fits no server, else of tools.
    fn similar_to(&self, rule: &Rule) -> Vec<String> {
        let wanted = rule.conditions();
        let of_server = |tool: &&Tool| match &tool.origin {
            Origin::Mcp { server, .. } => rule.fits_server(server),
            Origin::External { .. } | Origin::Builtin { .. } => wanted.server.is_none(),
        };
        let tools = || self.tools.iter().filter(of_server);
        let (pattern, names): (_, Vec<&str>) = match (&wanted.server, &wanted.tool, &wanted.tool_name) {
            (Some(server), ..) if !self.servers.iter().any(|server| rule.fits_server(server)) => {
                (server, self.servers.iter().map(ServerId::as_str).collect())
            }
            (_, Some(tool), _) => (tool, tools().map(|tool| tool.name.as_str()).collect()),
            (_, None, Some(name)) => (name, tools().map(|tool| tool.origin.tool_name()).collect()),
            (_, None, None) => return Vec::new(),
        };
        let start = literal_start(pattern);
        if start == pattern {
            return similar::similar(start, names).into_iter().map(str::to_owned).collect();
        }
        // Of a pattern with wildcards, the beginning is compared with as much of each name.
        let length = start.chars().count();
        let beginning = |name: &str| name.chars().take(length).collect::<String>();
        let beginnings: BTreeSet<String> = names.iter().map(|name| beginning(name)).collect();
        let near = similar::similar(start, beginnings.iter().map(String::as_str));
        let is_near = |name: &&str| near.contains(&beginning(name).as_str());
        names.into_iter().filter(is_near).take(similar::MOST).map(str::to_owned).collect()
    }
}

impl Policy {
    /// The rules that allow because of a hint, and match the tools of none of the trusted servers.
    pub fn hints_without_trust<'a>(&'a self, trusted: &'a [ServerId]) -> impl Iterator<Item = &'a Rule> {
        let allows_by_hint = |rule: &&Rule| rule.verdict == Verdict::Allow && rule.wants_hints();
        self.rules.iter().filter(allows_by_hint).filter(|rule| !trusted.iter().any(|id| rule.may_mean(id)))
    }
}

impl UnmatchedRule {
    /// Whether calls of this tool require approval, because the rule may have meant to restrict them.
    pub fn may_restrict(&self, tool: &Tool) -> bool {
        let Origin::Mcp { server, .. } = &tool.origin else { return false };
        !self.allows && (self.servers.is_empty() || self.servers.contains(server))
    }

    /// The judgement of a call that the policy allows and the rule may have meant.
    pub fn judgement(&self, allowed: Judgement) -> Judgement {
        Judgement {
            verdict: Verdict::Ask,
            rule: Some(self.rule.clone()),
            reason: self.to_string(),
            limits: Vec::new(),
            ..allowed.asked_otherwise()
        }
    }
}

impl std::fmt::Display for UnmatchedRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { policy, rule, pattern, allows, similar, .. } = self;
        let similar: Vec<String> = similar.iter().map(|name| escape_untrusted(name)).collect();
        let meant = did_you_mean(similar.iter().map(String::as_str));
        let pattern = format!("`{pattern}`{}", meant.map(|meant| format!("; {meant}")).unwrap_or_default());
        let remedy = "correct the name, or add `allow_unmatched: true` to the rule";
        match allows {
            true => write!(
                f,
                "rule `{rule}` of policy `{policy}` allows nothing: no tool has the name ({pattern}): {remedy}"
            ),
            false => write!(
                f,
                "rule `{rule}` of policy `{policy}` matches no tool ({pattern}): {remedy}; until then the calls that it may \
                 have meant require approval"
            ),
        }
    }
}

impl Rule {
    /// Whether it names a tool or server, and is meant to match one.
    fn is_by_name(&self) -> bool {
        let wanted = self.conditions();
        let is_about_servers = wanted.origin.as_deref().is_none_or(|origin| origin == "mcp");
        let has_name = wanted.tool.is_some() || wanted.server.is_some();
        !self.allow_unmatched && is_about_servers && has_name
    }

    fn names_servers_only(&self) -> bool {
        self.conditions().tool.is_none() && self.conditions().tool_name.is_none()
    }

    /// Its patterns of names, as written.
    fn name_pattern(&self) -> String {
        let wanted = self.conditions();
        let written = [("server", &wanted.server), ("tool", &wanted.tool), ("tool_name", &wanted.tool_name)];
        let written = written.iter().filter_map(|(key, text)| text.as_ref().map(|text| format!("{key}: {text}")));
        written.collect::<Vec<_>>().join(", ")
    }

    /// Whether its patterns fit a name that no listing contains: that of an external or builtin tool, or of any server.
    fn may_name_others(&self) -> bool {
        let wanted = self.conditions();
        if wanted.server.as_deref().is_some_and(|server| literal_start(server).is_empty()) {
            return true;
        }
        wanted.tool.as_deref().is_some_and(may_name_others)
    }

    /// Whether its patterns fit a tool of that server.
    fn may_mean(&self, server: &ServerId) -> bool {
        let wanted = self.conditions();
        let tool = wanted.tool.as_deref();
        self.fits_server(server) && tool.is_none_or(|tool| may_name_tool_of(tool, server))
    }
}

/// Whether a pattern of visible names fits those of external or builtin tools, or names no server.
fn may_name_others(pattern: &str) -> bool {
    let start = literal_start(pattern);
    let names_no_server = PREFIXES.iter().any(|prefix| prefix.starts_with(start));
    let is_builtin = Builtin::ALL.iter().any(|builtin| builtin.name().starts_with(start));
    names_no_server || is_builtin || start.starts_with("ext_")
}

/// Whether a pattern of visible names may fit a tool of that server.
fn may_name_tool_of(pattern: &str, server: &ServerId) -> bool {
    let (start, prefix) = (literal_start(pattern), mcp_name(server, ""));
    start.starts_with(prefix.as_str()) || prefix.as_str().starts_with(start)
}
