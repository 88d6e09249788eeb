//! The toolset of a run: one flat, ordered, named list, made from the tools of servers and caller.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::name::{mcp_name, unprefixed_name};
use super::{
    AskHuman, Builtin, Endpoint, ExternalTool, LeftOut, McpTool, Origin, ServerAuthorization, Tool, ToolFilter,
    ToolName, Undo,
};
use crate::id::{AgentName, Principal, ServerId};
use crate::pattern::NamePattern;
use crate::policy::{KnownNames, Policy, Subject, UnmatchedRule, Verdict};

/// How often clashing names are made unique by a longer name before a tool is omitted.
const RENAMINGS: usize = 3;

/// The tools of one server, or the reason why it has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTools {
    pub server: ServerId,
    /// Whether the operator trusts its annotations.
    pub trusted: bool,
    /// Its endpoint; `None` if servers are not distinguished by one.
    pub endpoint: Option<Endpoint>,
    /// Its tools, in any order. An unchanged list is the same allocation, which is compared without its contents.
    pub tools: Arc<Vec<McpTool>>,
    /// The omitted tools, or the omitted server, each with the reason.
    pub left_out: Vec<LeftOut>,
    /// The reason why these are earlier tools, if the server cannot be asked at the moment.
    pub stale: Option<String>,
    /// Its authorization status, if a request has shown one.
    pub authorization: Option<ServerAuthorization>,
}

impl ServerTools {
    /// Why the server did not list its tools, if it did not.
    pub fn failure(&self) -> Option<String> {
        let left_out = || self.left_out.iter().find(|left| left.tool.is_none()).map(|left| left.reason.clone());
        self.stale.clone().or_else(left_out)
    }
}

/// The hash of each tool's definition when a run first listed it.
pub type Pins = BTreeMap<Origin, String>;

/// The rules that turn tools into a toolset.
#[derive(Clone, Debug, Default)]
pub struct ToolsetRules {
    /// The agent, for policy rules that name one.
    pub agent: Option<AgentName>,
    pub principal: Option<Principal>,
    /// Every filter a tool has to pass: the agent's, then the run's.
    pub filters: Vec<ToolFilter>,
    /// Priorities by name pattern, the first match wins; default 0 (external tools bring their own).
    pub priorities: Vec<(NamePattern, i32)>,
    /// The approval policy.
    pub policy: Arc<Policy>,
    /// Names of a single server's tools are shown without prefix.
    pub pass_through: bool,
    /// The hash of each tool when the run first listed it.
    pub pins: Arc<Pins>,
    /// Servers whose tools need not be on an allow list, because the run's caller attached them.
    pub welcome: Vec<ServerId>,
    /// Settings of the model's questions to the user, if they are allowed.
    pub ask_human: Option<AskHuman>,
    /// The schema of the arguments of the builtin tool `finish`, if it is available.
    pub finish: Option<Value>,
    /// Whether tools whose every call requires approval are hidden from the model until a grant covers them.
    pub hide_unapproved: bool,
    /// The undo of each tool that has one, in the runs of an agent that compensates.
    pub undos: BTreeMap<Origin, Undo>,
    /// Servers whose tools policy rules may mean although the run does not use them.
    pub other_servers: Vec<ServerId>,
}

/// The tools that the model sees, in a byte-stable order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "ToolsetForm", into = "ToolsetForm")]
pub struct Toolset {
    tools: Vec<Arc<Tool>>,
    by_name: BTreeMap<ToolName, usize>,
    pins: Arc<Pins>,
    left_out: Vec<LeftOut>,
    authorizations: Vec<ServerAuthorization>,
    unmatched_rules: Vec<UnmatchedRule>,
    unmatched_patterns: Vec<String>,
}

/// The serialised form: the list alone; what follows from it is computed again.
#[derive(Clone, Serialize, Deserialize)]
struct ToolsetForm {
    tools: Vec<Arc<Tool>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<LeftOut>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    authorizations: Vec<ServerAuthorization>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unmatched_rules: Vec<UnmatchedRule>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unmatched_patterns: Vec<String>,
}

impl Toolset {
    /// Names, orders, filters and judges the tools. External tools come first, then MCP tools, each sorted by name: the
    /// result does not depend on the order in which servers answered.
    pub fn assemble(external: &[ExternalTool], servers: &[ServerTools], rules: &ToolsetRules) -> Self {
        let mut left_out: Vec<LeftOut> = servers.iter().flat_map(|server| server.left_out.clone()).collect();
        let mut offers: Vec<Tool> = external.iter().map(|tool| rules.external(tool)).collect();
        let mut from_servers: Vec<Tool> =
            servers.iter().flat_map(|server| server.tools.iter().map(|tool| rules.mcp(server, tool))).collect();
        for list in [&mut offers, &mut from_servers] {
            list.sort_by(|a, b| place(a).cmp(&place(b)));
        }
        offers.append(&mut from_servers);
        let (unmatched_rules, unmatched_patterns) = rules.unmatched(&offers, servers, &left_out);
        offers.retain(|tool| rules.admits(tool));

        let mut tools: Vec<Arc<Tool>> = Vec::with_capacity(offers.len());
        for tool in Self::unique_names(offers, &mut left_out) {
            let is_renamed = tool.own_name.is_some();
            let tool = if is_renamed { rules.judged(tool) } else { tool };
            let may_be_meant = unmatched_rules.iter().any(|rule| rule.may_restrict(&tool));
            let verdict = if may_be_meant { tool.verdict.max(Verdict::Ask) } else { tool.verdict };
            let hidden = tool.hidden || (rules.hide_unapproved && may_be_meant && verdict == Verdict::Ask);
            tools.push(Arc::new(Tool { verdict, hidden, ..tool }));
        }
        left_out.sort_by(|a, b| (&a.server, &a.tool, &a.reason).cmp(&(&b.server, &b.tool, &b.reason)));
        let authorizations = servers.iter().filter_map(|server| server.authorization.clone()).collect();
        let listed = Self::from(ToolsetForm { tools, left_out, authorizations, unmatched_rules, unmatched_patterns });
        let listed = if rules.ask_human.is_some() { listed.with_builtin(Builtin::AskHuman, rules) } else { listed };
        if rules.finish.is_some() { listed.with_builtin(Builtin::Finish, rules) } else { listed }
    }

    /// Tools with clashing names all get a hash suffix; duplicates of one origin are removed. A server can name a tool
    /// like another's suffixed name, so the check is repeated, and tools that still clash are omitted.
    fn unique_names(offers: Vec<Tool>, left_out: &mut Vec<LeftOut>) -> Vec<Tool> {
        let twice = "listed twice under one name; the first one is used. Give each tool its own name.";
        let clash = "its name is taken by another tool, even with a hash. Give it another name.";
        let mut unique = Self::first_of_each(offers, left_out, twice, |a, b| a.origin == b.origin);
        for _ in 0..RENAMINGS {
            let mut seen: BTreeMap<ToolName, usize> = BTreeMap::new();
            for tool in &unique {
                *seen.entry(tool.name.clone()).or_default() += 1;
            }
            for tool in unique.iter_mut().filter(|tool| seen.get(&tool.name).is_some_and(|count| *count > 1)) {
                let longer = tool.name.with_hash(&tool.origin);
                let plain = std::mem::replace(&mut tool.name, longer);
                tool.own_name.get_or_insert(plain);
            }
        }
        Self::first_of_each(unique, left_out, clash, |a, b| a.name == b.name)
    }

    fn first_of_each(
        tools: Vec<Tool>,
        left_out: &mut Vec<LeftOut>,
        reason: &str,
        same: impl Fn(&Tool, &Tool) -> bool,
    ) -> Vec<Tool> {
        let mut unique: Vec<Tool> = Vec::with_capacity(tools.len());
        for tool in tools {
            if !unique.iter().any(|known| same(known, &tool)) {
                unique.push(tool);
                continue;
            }
            left_out.push(tool.left_out(reason.to_owned()));
        }
        unique
    }

    /// The tools that the model sees while it has these: `granted` says whether a grant covers calls of a tool.
    pub fn shown(self: &Arc<Self>, granted: impl Fn(&ToolName) -> bool) -> Arc<Self> {
        let is_shown = |tool: &Tool| !tool.hidden || granted(&tool.name);
        if self.tools.iter().all(|tool| is_shown(tool)) {
            return self.clone();
        }
        let tools = self.tools.iter().filter(|tool| is_shown(tool)).cloned().collect();
        Arc::new(Self::from(ToolsetForm { tools, ..ToolsetForm::from(Self::clone(self)) }))
    }

    /// The tools in the order the model sees them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.tools.iter()
    }

    /// The tool of that name.
    pub fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        self.by_name.get(name).and_then(|index| self.tools.get(*index))
    }

    /// Whether a tool has that name, also one that was left out or that was renamed because its name clashes.
    pub fn knows(&self, name: &str) -> bool {
        let has_name = |tool: &Arc<Tool>| tool.own_name.as_ref().is_some_and(|own| own.as_str() == name);
        let is_left_out = |left: &LeftOut| match (&left.server, &left.tool) {
            (Some(server), Some(tool)) => mcp_name(server, tool).as_str() == name || tool == name,
            (_, _) => false,
        };
        self.get(name).is_some() || self.tools.iter().any(has_name) || self.left_out.iter().any(is_left_out)
    }

    /// The tool of that origin, under any name.
    pub fn by_origin(&self, origin: &Origin) -> Option<&Arc<Tool>> {
        self.tools.iter().find(|tool| tool.origin == *origin)
    }

    /// The hash of each tool's definition.
    pub fn pins(&self) -> &Arc<Pins> {
        &self.pins
    }

    /// The number of tools.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether there are no tools.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Whether the model sees exactly the same tools, whatever the reasons for omitted ones.
    pub fn offers_the_same_as(&self, other: &Self) -> bool {
        self.tools == other.tools
    }

    /// The omitted tools, with reasons.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// The servers whose authorization status differs from the one in `earlier`, whatever the reason.
    pub fn authorization_changes<'a>(
        &'a self,
        earlier: Option<&'a Self>,
    ) -> impl Iterator<Item = &'a ServerAuthorization> {
        let is_known = move |now: &&ServerAuthorization| {
            let is_same = |known: &ServerAuthorization| (&known.server, known.status) == (&now.server, now.status);
            earlier.is_some_and(|earlier| earlier.authorizations.iter().any(is_same))
        };
        self.authorizations.iter().filter(move |now| !is_known(now))
    }

    /// The policy rules with a name that match no tool.
    pub fn unmatched_rules(&self) -> &[UnmatchedRule] {
        &self.unmatched_rules
    }

    /// A sentence for each rule and pattern of the configuration that matches no tool.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let pattern = |written: &String| {
            // An undo names a tool as its server does.
            let lacks_prefix = |(key, name): (&str, &str)| {
                !key.starts_with("servers.") && !name.starts_with("mcp_") && !name.starts_with("ext_")
            };
            let names = match written.split_once(": ").is_some_and(lacks_prefix) {
                true => ": the names of MCP tools begin with `mcp_<server>_`, those of external tools with `ext_`",
                false => "",
            };
            format!("`{written}` of the agent matches no tool; correct or remove it{names}")
        };
        self.unmatched_rules.iter().map(ToString::to_string).chain(self.unmatched_patterns.iter().map(pattern))
    }

    /// The tools that do not fit a provider's limit, of those that can be declared to it: the ones with the lowest
    /// priority, and of one priority the last ones. Builtin tools are kept.
    pub fn surplus(&self, most: usize, is_declarable: impl Fn(&Tool) -> bool) -> Vec<&Arc<Tool>> {
        if self.tools.len() <= most {
            return Vec::new();
        }
        let mut ranked: Vec<&Arc<Tool>> = self.tools.iter().filter(|tool| is_declarable(tool)).collect();
        ranked.sort_by_key(|tool| (Builtin::from_origin(&tool.origin).is_none(), Reverse(tool.priority)));
        ranked.into_iter().skip(most).collect()
    }

    /// The same toolset with a builtin tool at the end, so that the beginning stays the same for prompt caches. A deny
    /// list excludes it, an allow list does not.
    #[must_use]
    pub fn with_builtin(&self, builtin: Builtin, rules: &ToolsetRules) -> Self {
        let tool = rules.builtin(builtin);
        let mut form = ToolsetForm::from(self.clone());
        let is_there = form.tools.iter().any(|known| known.name == tool.name);
        if !is_there && rules.admits(&tool) {
            form.tools.push(Arc::new(tool));
        }
        Self::from(form)
    }

    /// The same toolset without the tools for which `reason` returns a reason; the reasons are kept.
    pub fn without(self, mut reason: impl FnMut(&Tool) -> Option<String>) -> Self {
        let mut form = ToolsetForm::from(self);
        for tool in std::mem::take(&mut form.tools) {
            match reason(&tool) {
                None => form.tools.push(tool),
                Some(reason) => form.left_out.push(tool.left_out(reason)),
            }
        }
        Self::from(form)
    }
}

/// The sort key of tools, independent of the order in which they were listed.
fn place(tool: &Tool) -> (&ToolName, &str, i32, bool) {
    (&tool.name, &tool.hash, tool.priority, tool.trusted)
}

/// The tool's own name, for a single server whose names have no prefix. A name of a builtin tool gets a hash, whether
/// or not that builtin is available.
fn passed_through(tool: &str, origin: &Origin) -> ToolName {
    let name = unprefixed_name(tool, origin);
    if Builtin::reserves(name.as_str()) { name.with_hash(origin) } else { name }
}

/// A policy equals itself alone.
impl PartialEq for ToolsetRules {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            agent,
            principal,
            filters,
            priorities,
            policy,
            pass_through,
            pins,
            welcome,
            ask_human,
            finish,
            hide_unapproved,
            undos,
            other_servers,
        } = self;
        Arc::ptr_eq(policy, &other.policy)
            && (agent, principal, filters, priorities)
                == (&other.agent, &other.principal, &other.filters, &other.priorities)
            && (pass_through, pins, welcome, ask_human)
                == (&other.pass_through, &other.pins, &other.welcome, &other.ask_human)
            && (finish, hide_unapproved, undos) == (&other.finish, &other.hide_unapproved, &other.undos)
            && *other_servers == other.other_servers
    }
}

impl ToolsetRules {
    fn external(&self, tool: &ExternalTool) -> Tool {
        let tool = tool.to_tool();
        self.judged(Tool { priority: self.priority(&tool.name).unwrap_or(tool.priority), ..tool })
    }

    fn mcp(&self, server: &ServerTools, tool: &McpTool) -> Tool {
        let origin = Origin::Mcp { server: server.server.clone(), tool: tool.name.clone() };
        let name = match self.pass_through {
            true => passed_through(&tool.name, &origin),
            false => mcp_name(&server.server, &tool.name),
        };
        self.judged(Tool {
            priority: self.priority(&name).unwrap_or(0),
            hash: Tool::definition_hash(
                (&origin, server.endpoint.as_ref()),
                &tool.description,
                &tool.input_schema,
                tool.output_schema.as_ref(),
                (&tool.annotations, tool.pinned.as_ref()),
            ),
            undo: self.undos.get(&origin).cloned(),
            name,
            own_name: None,
            origin,
            endpoint: server.endpoint.clone(),
            description: tool.description.clone(),
            input_schema: Arc::new(tool.input_schema.clone()),
            output_schema: tool.output_schema.clone().map(Arc::new),
            annotations: tool.annotations.clone(),
            pinned: tool.pinned.clone(),
            trusted: server.trusted,
            deadline_s: None,
            verdict: Verdict::Ask,
            changed: false,
            hidden: false,
        })
    }

    fn builtin(&self, builtin: Builtin) -> Tool {
        let tool = builtin.tool(self.finish.as_ref());
        let priority = self.priority(&tool.name).unwrap_or(tool.priority);
        let ask_human = self.ask_human.filter(|_| builtin == Builtin::AskHuman);
        let deadline_s = ask_human.and_then(|ask| ask.deadline_s);
        self.judged(Tool { priority, deadline_s, ..tool })
    }

    /// Whether a tool passes the filters. Builtin tools, and tools of attached servers, are subject to deny lists only.
    pub fn admits(&self, tool: &Tool) -> bool {
        let needs_no_listing = match &tool.origin {
            Origin::Mcp { server, .. } => self.welcome.contains(server),
            Origin::External { .. } => false,
            Origin::Builtin { .. } => true,
        };
        self.filters.iter().all(|filter| match needs_no_listing {
            true => !filter.denies(&tool.name),
            false => filter.admits(&tool.name),
        })
    }

    fn judged(&self, mut tool: Tool) -> Tool {
        tool.changed = self.pins.get(&tool.origin).is_some_and(|pinned| *pinned != tool.hash);
        let subject = self.subject(&tool);
        let verdict = self.policy.judge(&subject).verdict;
        let hidden = self.hide_unapproved && verdict == Verdict::Ask && !self.policy.may_allow(&subject);
        Tool { verdict, hidden, ..tool }
    }

    fn unmatched(
        &self,
        tools: &[Tool],
        servers: &[ServerTools],
        left_out: &[LeftOut],
    ) -> (Vec<UnmatchedRule>, Vec<String>) {
        let listed: Vec<ServerId> = servers.iter().map(|server| server.server.clone()).collect();
        let incomplete = left_out.iter().filter(|left| left.tool.is_none()).filter_map(|left| left.server.as_ref());
        let unlisted: Vec<ServerId> = incomplete.chain(&self.other_servers).cloned().collect();
        let (agent, principal) = (self.agent.as_ref(), self.principal.as_ref());
        let known = KnownNames { agent, principal, tools, left_out, servers: &listed, unlisted: &unlisted };
        let patterns = self.written_patterns().filter(|(_, pattern)| known.misses(pattern));
        let patterns = patterns.map(|(key, pattern)| format!("{key}: {}", pattern.as_str()));
        (self.policy.unmatched_rules(&known), patterns.chain(self.unmatched_undos(&known)).collect())
    }

    /// The undos that name a tool that is not listed, or undo with one that the agent may not use.
    fn unmatched_undos(&self, known: &KnownNames<'_>) -> Vec<String> {
        let mut unmatched = Vec::new();
        for (origin, undo) in &self.undos {
            let Origin::Mcp { server, tool } = origin else { continue };
            let undoing = Origin::Mcp { server: server.clone(), tool: undo.tool.clone() };
            let is_listed = known.tools.iter().any(|tool| tool.origin == *origin);
            let is_usable = known.tools.iter().any(|tool| tool.origin == undoing && self.admits(tool));
            if known.servers.contains(server) && !known.unlisted.contains(server) && !(is_listed && is_usable) {
                unmatched.push(format!("servers.{server}.tools.{tool}.undo: {}", undo.tool));
            }
        }
        unmatched
    }

    /// The agent's own patterns with their keys. A run's patterns are compared when it begins.
    fn written_patterns(&self) -> impl Iterator<Item = (&'static str, &NamePattern)> {
        let filter = self.filters.first().into_iter();
        let allow = filter.clone().flat_map(|filter| &filter.allow).map(|pattern| ("tools.allow", pattern));
        let deny = filter.flat_map(|filter| &filter.deny).map(|pattern| ("tools.deny", pattern));
        allow.chain(deny).chain(self.priorities.iter().map(|(pattern, _)| ("priorities", pattern)))
    }

    fn subject<'a>(&'a self, tool: &'a Tool) -> Subject<'a> {
        Subject { tool, agent: self.agent.as_ref(), principal: self.principal.as_ref(), arguments: None }
    }

    fn priority(&self, name: &ToolName) -> Option<i32> {
        let fits = |pattern: &NamePattern| pattern.fits(name.as_str()).unwrap_or(false);
        self.priorities.iter().find(|(pattern, _)| fits(pattern)).map(|(_, priority)| *priority)
    }
}

impl From<ToolsetForm> for Toolset {
    fn from(form: ToolsetForm) -> Self {
        let ToolsetForm { tools, left_out, authorizations, unmatched_rules, unmatched_patterns } = form;
        let by_name = tools.iter().enumerate().map(|(index, tool)| (tool.name.clone(), index)).collect();
        let pins = tools.iter().map(|tool| (tool.origin.clone(), tool.hash.clone())).collect();
        Self { tools, by_name, pins: Arc::new(pins), left_out, authorizations, unmatched_rules, unmatched_patterns }
    }
}

impl From<Toolset> for ToolsetForm {
    fn from(toolset: Toolset) -> Self {
        let Toolset { tools, left_out, authorizations, unmatched_rules, unmatched_patterns, .. } = toolset;
        Self { tools, left_out, authorizations, unmatched_rules, unmatched_patterns }
    }
}
