//! A rule of a policy: its criteria, its verdict, and the time a person has to answer.

use super::command::Comparison;
use super::condition::Facts;
use super::finding::{Finding, Hint, UnmetCriterion, kind};
use super::{
    CommandPattern, Condition, Example, LimitUse, OnTimeout, Outlook, RuleLimit, Subject, UnclearCriterion, Verdict,
};
use crate::id::{AgentName, Principal, ServerId};
use crate::pattern::{Pattern, SIGNS};
use crate::tool::{LeftOut, Tool, ToolName, mcp_name};

/// The names of origins in policies.
const KINDS: [&str; 3] = ["mcp", "external", "builtin"];

/// A rule. Build with [`Rule::new`], which compiles its patterns.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Unique within the policy; decisions name it.
    pub id: String,
    pub verdict: Verdict,
    /// The reason, for the approver and for the model whose call is refused.
    pub reason: String,
    /// The seconds a person has to answer when this rule asks; `None` for the policy's own.
    pub answer_timeout_s: Option<u64>,
    /// The effect of no answer in time; `None` for the policy's own.
    pub on_timeout: Option<OnTimeout>,
    /// Whether a rule that asks or denies may match no tool (`super::unmatched`).
    pub allow_unmatched: bool,
    matches: Match,
    patterns: Patterns,
    when: Option<Condition>,
    limit: Option<RuleLimit>,
    examples: (Vec<Example>, Vec<Example>),
    places: RulePlaces,
}

/// The source position of a rule: lines and columns from 1, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RulePlaces {
    pub id: Option<(usize, usize)>,
    pub matches: Option<(usize, usize)>,
    pub when: Option<(usize, usize)>,
}

/// The criteria of a rule; all given ones must hold. Patterns have `*`, `?`, `[a-z]` and `{a,b}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// Pattern of the name the model sees.
    pub tool: Option<String>,
    /// Pattern of the origin's own name for the tool.
    pub tool_name: Option<String>,
    /// Pattern of the server's configured id; only MCP tools have one.
    pub server: Option<String>,
    /// `mcp`, `external` or `builtin`.
    pub origin: Option<String>,
    /// Pattern of the agent.
    pub agent: Option<String>,
    /// Pattern of the principal. A run without a principal does not match.
    pub principal: Option<String>,
    /// Whether the operator trusts the tool's server. External and builtin tools have no server, so they never count as
    /// trusted.
    pub trusted: Option<bool>,
    /// The leading words of a shell command.
    pub command: Option<CommandPattern>,
    /// The tool's `readOnlyHint`.
    pub read_only: Option<bool>,
    /// The tool's `destructiveHint`.
    pub destructive: Option<bool>,
    /// The tool's `idempotentHint`.
    pub idempotent: Option<bool>,
    /// The tool's `openWorldHint`.
    pub open_world: Option<bool>,
}

/// An error in a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// An invalid pattern.
    #[error("rule `{rule}`: `{pattern}` is not a valid pattern: {reason}")]
    Pattern { rule: String, pattern: String, reason: String },
    /// An unknown origin.
    #[error("rule `{rule}`: origin `{origin}` is none of `mcp`, `external`, `builtin`")]
    Origin {
        rule: String,
        /// The word that was written.
        origin: String,
    },
    /// An invalid command pattern.
    #[error("rule `{rule}`: {reason}")]
    Command { rule: String, reason: String },
    /// An example is not matched, or a counter-example is.
    #[error("rule `{rule}`: the example `{example}` {}: {why}", if *should_match { "should match and does not" } else { "should not match and does" })]
    Example {
        rule: String,
        /// The example's tool.
        example: String,
        /// The author's expectation.
        should_match: bool,
        /// The reason why it fails.
        why: String,
    },
    /// An example of a rule with a condition has no arguments.
    #[error("rule `{rule}`: the example `{example}` has no arguments, and whether it matches depends on them")]
    NoArguments {
        rule: String,
        /// The example's tool.
        example: String,
    },
    /// The condition cannot be evaluated for an example.
    #[error("rule `{rule}`: the example `{example}` neither matches nor does not: {why}")]
    Unclear {
        rule: String,
        /// The example's tool.
        example: String,
        why: String,
    },
}

#[derive(Clone, Debug, Default)]
struct Patterns {
    tool: Option<Pattern>,
    tool_name: Option<Pattern>,
    server: Option<Pattern>,
    agent: Option<Pattern>,
    principal: Option<Pattern>,
}

impl Rule {
    /// Compiles a rule. `examples` must match it, `counter_examples` must not; [`Rule::check_examples`] checks them.
    pub fn new(
        id: &str,
        verdict: Verdict,
        reason: &str,
        matches: Match,
        examples: Vec<Example>,
        counter_examples: Vec<Example>,
    ) -> Result<Self, RuleError> {
        if let Some(origin) = matches.origin.as_ref().filter(|origin| !KINDS.contains(&origin.as_str())) {
            return Err(RuleError::Origin { rule: id.into(), origin: origin.clone() });
        }
        if let Some(reason) = matches.command.as_ref().and_then(|command| command.fault(verdict)) {
            return Err(RuleError::Command { rule: id.into(), reason });
        }
        Ok(Self {
            id: id.into(),
            verdict,
            reason: reason.into(),
            answer_timeout_s: None,
            on_timeout: None,
            allow_unmatched: false,
            patterns: Patterns::compile(id, &matches)?,
            matches,
            when: None,
            limit: None,
            examples: (examples, counter_examples),
            places: RulePlaces::default(),
        })
    }

    /// The same rule with its position in the file.
    #[must_use]
    pub fn with_places(self, places: RulePlaces) -> Self {
        Self { places, ..self }
    }

    /// Its position in the file.
    pub fn places(&self) -> RulePlaces {
        self.places
    }

    /// The same rule with a condition on the arguments.
    #[must_use]
    pub fn with_condition(self, when: Condition) -> Self {
        Self { when: Some(when), ..self }
    }

    /// The same rule with a limit, which only a rule that allows has.
    #[must_use]
    pub fn with_limit(self, limit: Option<RuleLimit>) -> Self {
        Self { limit: limit.filter(|_| self.verdict == Verdict::Allow), ..self }
    }

    /// The same rule with so many seconds for an answer, and the effect of none.
    #[must_use]
    pub fn with_deadline(self, answer_timeout_s: Option<u64>, on_timeout: Option<OnTimeout>) -> Self {
        Self { answer_timeout_s, on_timeout, ..self }
    }

    /// The same rule, which may match no tool if it asks or denies.
    #[must_use]
    pub fn with_allow_unmatched(self, allow_unmatched: bool) -> Self {
        Self { allow_unmatched, ..self }
    }

    /// Its criteria.
    pub fn conditions(&self) -> &Match {
        &self.matches
    }

    /// The condition on the arguments, if there is one.
    pub fn when(&self) -> Option<&Condition> {
        self.when.as_ref()
    }

    /// How much it allows in a window of time.
    pub fn limit(&self) -> Option<&RuleLimit> {
        self.limit.as_ref()
    }

    /// The examples that must match, and those that must not.
    pub fn examples(&self) -> (&[Example], &[Example]) {
        (&self.examples.0, &self.examples.1)
    }

    /// Whether its patterns of agent and principal fit; an unknown one fits.
    pub(super) fn concerns(&self, agent: Option<&AgentName>, principal: Option<&Principal>) -> bool {
        let fits = |pattern: &Option<Pattern>, name: Option<&str>| match (pattern, name) {
            (Some(pattern), Some(name)) => pattern.fits(name),
            (Some(_), None) | (None, _) => true,
        };
        fits(&self.patterns.agent, agent.map(AgentName::as_str))
            && fits(&self.patterns.principal, principal.map(Principal::as_str))
    }

    /// Whether its patterns of names fit a tool, whatever its other criteria.
    pub(super) fn names(&self, tool: &Tool) -> bool {
        let visible = [Some(&tool.name), tool.own_name.as_ref()];
        let fits_visible = |name: &ToolName| fits(&self.patterns.tool, name.as_str());
        visible.into_iter().flatten().any(fits_visible)
            && fits(&self.patterns.tool_name, tool.origin.tool_name())
            && self
                .patterns
                .server
                .as_ref()
                .is_none_or(|server| tool.server().is_some_and(|id| server.fits(id.as_str())))
    }

    /// Whether its patterns of names fit a tool that was left out.
    pub(super) fn names_left_out(&self, left: &LeftOut) -> bool {
        let (Some(server), Some(tool)) = (&left.server, &left.tool) else { return false };
        self.fits_server(server)
            && fits(&self.patterns.tool, mcp_name(server, tool).as_str())
            && fits(&self.patterns.tool_name, tool)
    }

    /// Whether its pattern of servers fits; without one, every server does.
    pub(super) fn fits_server(&self, server: &ServerId) -> bool {
        fits(&self.patterns.server, server.as_str())
    }

    /// Compares it with a call. A tool with two names is compared by both.
    pub fn examine(&self, subject: &Subject<'_>) -> Finding {
        let names = [Some(&subject.tool.name), subject.tool.own_name.as_ref()];
        let findings = names.into_iter().flatten().map(|name| self.find(&Facts::new(subject, name)));
        findings.max_by_key(Finding::rank).unwrap_or(Finding::Misses(UnmetCriterion::Tool))
    }

    /// Compares it by one name.
    pub(super) fn find(&self, facts: &Facts<'_>) -> Finding {
        self.match_call(facts).map_or_else(|finding| finding, |_| Finding::Matches)
    }

    /// Compares it by one name; the most expensive criterion is last. The use of its limit if it matches, and otherwise the
    /// finding.
    pub(super) fn match_call(&self, facts: &Facts<'_>) -> Result<Option<LimitUse>, Finding> {
        if let Some(miss) = self.miss(facts.subject, facts.name) {
            return Err(Finding::Misses(miss));
        }
        let unclear = match self.compare_command(facts.subject) {
            Comparison::Matches => None,
            Comparison::MayMatch(why) => Some(Finding::Unclear(UnclearCriterion::Command(why))),
            Comparison::Differs(_) => return Err(Finding::Misses(UnmetCriterion::Command)),
            Comparison::Unknown => return Err(Finding::Depends),
        };
        match self.when.as_ref().map(|condition| condition.holds(facts)) {
            None | Some(Some(Ok(true))) => unclear.map_or_else(|| self.limit_use(facts.subject), Err),
            Some(Some(Ok(false))) => Err(Finding::Misses(UnmetCriterion::Condition)),
            Some(Some(Err(error))) => Err(Finding::Unclear(UnclearCriterion::Condition(error.to_string()))),
            Some(None) => Err(Finding::Depends),
        }
    }

    /// The pattern of the commands that it allows, if its other criteria all hold. It also allows parts of chained commands,
    /// unless it has a limit, which counts calls.
    pub(super) fn allows_parts(&self, facts: &Facts<'_>) -> Option<&CommandPattern> {
        let pattern = self.pattern_of_parts()?;
        let holds = self.when.as_ref().is_none_or(|when| matches!(when.holds(facts), Some(Ok(true))));
        (holds && self.miss(facts.subject, facts.name).is_none()).then_some(pattern)
    }

    fn pattern_of_parts(&self) -> Option<&CommandPattern> {
        self.matches.command.as_ref().filter(|_| self.verdict == Verdict::Allow && self.limit.is_none())
    }

    /// Whether its words are those of a part of a chained command.
    pub(super) fn allows_part_of(&self, subject: &Subject<'_>) -> bool {
        let pattern = self.pattern_of_parts();
        let parts = pattern.zip(subject.arguments).map(|(pattern, arguments)| pattern.independent_parts(arguments));
        let parts = parts.and_then(Result::ok).unwrap_or_default();
        let is_covered =
            |(index, words): (usize, &Vec<String>)| pattern.is_some_and(|pattern| pattern.covers_part(index, words));
        parts.iter().enumerate().any(is_covered)
    }

    /// The use that a call makes of its limit, if its criteria all hold.
    fn limit_use(&self, subject: &Subject<'_>) -> Result<Option<LimitUse>, Finding> {
        let Some(limit) = &self.limit else { return Ok(None) };
        // Some calls are beyond the limit, whatever the arguments.
        let arguments = subject.arguments.ok_or(Finding::Depends)?;
        let amount = limit.amount_of(arguments).map_err(|why| Finding::Unclear(UnclearCriterion::Limit(why)))?;
        Ok(Some(LimitUse { rule: self.id.clone(), limit: limit.clone(), amount }))
    }

    /// The result of the command pattern; without one everything matches.
    pub(super) fn compare_command(&self, subject: &Subject<'_>) -> Comparison {
        let command = self.matches.command.as_ref();
        command.map_or(Comparison::Matches, |command| command.compare(subject.arguments, self.verdict))
    }

    fn miss(&self, subject: &Subject<'_>, name: &ToolName) -> Option<UnmetCriterion> {
        let tool = subject.tool;
        if self.matches.origin.as_deref().is_some_and(|wanted| wanted != kind(&tool.origin)) {
            return Some(UnmetCriterion::Origin);
        }
        let names = [
            (UnmetCriterion::Server, &self.patterns.server, tool.server().map(|server| server.as_str())),
            (UnmetCriterion::Tool, &self.patterns.tool, Some(name.as_str())),
            (UnmetCriterion::ToolName, &self.patterns.tool_name, Some(tool.origin.tool_name())),
            (UnmetCriterion::Agent, &self.patterns.agent, subject.agent.map(|agent| agent.as_str())),
            (
                UnmetCriterion::Principal,
                &self.patterns.principal,
                subject.principal.map(|principal| principal.as_str()),
            ),
        ];
        let misses = names.into_iter().find(|(_, pattern, text)| match pattern {
            None => false,
            Some(pattern) => !text.is_some_and(|text| pattern.fits(text)),
        });
        misses.map(|(miss, ..)| miss).or_else(|| self.trust_missed(tool)).or_else(|| self.hint_missed(tool))
    }

    /// A server chooses the names of its tools, so a name identifies a tool only if its server is known: the operator
    /// named or trusts the server.
    fn trust_missed(&self, tool: &Tool) -> Option<UnmetCriterion> {
        if self.matches.trusted.is_some_and(|wanted| wanted != tool.trusted) {
            return Some(UnmetCriterion::Trust);
        }
        let is_unknown = tool.server().is_some() && !tool.trusted;
        (is_unknown && self.allows_names_of_any_server()).then_some(UnmetCriterion::NameAlone)
    }

    /// Whether the rule allows tools by their names alone, whichever server has them. The exact name
    /// `mcp_<server>_<tool>` names the server too.
    pub fn allows_names_of_any_server(&self) -> bool {
        let Match { tool, tool_name, server, origin, .. } = &self.matches;
        let names_a_server = server.is_some() || tool.as_deref().is_some_and(|tool| !tool.contains(SIGNS));
        let is_by_part = [tool, tool_name].into_iter().flatten().any(|pattern| !is_anything(pattern));
        is_by_part
            && !names_a_server
            && origin.as_deref().is_none_or(|origin| origin == "mcp")
            && self.allows_by_name_alone()
    }

    /// Whether the rule allows calls by names alone (of tool, server, agent and principal), without a criterion about
    /// the arguments, the server's hints or its trust.
    pub fn allows_by_name_alone(&self) -> bool {
        let looks_at_arguments = self.when.as_ref().is_some_and(|when| when.outlook() != Outlook::Constant);
        let looks_at_arguments = looks_at_arguments || self.matches.command.is_some();
        let knows_more = looks_at_arguments || self.matches.trusted == Some(true);
        self.verdict == Verdict::Allow && !knows_more && !self.wants_hints()
    }

    /// Claims of an untrusted server loosen nothing. A rule that allows because of a hint does not match its tools. A
    /// rule that asks or denies matches them if they may have the hinted property, whatever the server claims: a hint
    /// can make such a rule match, and can never prevent it.
    fn hint_missed(&self, tool: &Tool) -> Option<UnmetCriterion> {
        let mut wanted = self.wanted_hints();
        if self.verdict == Verdict::Allow && !tool.trusted {
            return wanted.next().map(|_| UnmetCriterion::Untrusted);
        }
        let missed = wanted.find(|(hint, wanted)| match hint.given(&tool.annotations) {
            Some(given) if given == *wanted => false,
            Some(_) if tool.trusted => true,
            None if self.verdict == Verdict::Allow => true,
            Some(_) | None => hint.at_worst(tool) != *wanted,
        });
        missed.map(|(hint, _)| UnmetCriterion::Hint(hint))
    }

    /// Whether it matches the tool only because of a claim of an untrusted server. Only valid for a rule that matches.
    pub(super) fn rests_on_claim(&self, tool: &Tool) -> bool {
        !tool.trusted && self.wanted_hints().any(|(hint, wanted)| hint.at_worst(tool) != wanted)
    }

    /// The hint that counts as its worst value in a rule that matches, because no trusted server says otherwise.
    pub(super) fn hint_at_worst(&self, tool: &Tool) -> Option<(Hint, bool)> {
        self.wanted_hints().find(|(hint, wanted)| hint.given(&tool.annotations) != Some(*wanted))
    }

    /// Whether it has a criterion about a hint.
    pub fn wants_hints(&self) -> bool {
        self.wanted_hints().next().is_some()
    }

    fn wanted_hints(&self) -> impl Iterator<Item = (Hint, bool)> {
        let Match { read_only, destructive, idempotent, open_world, .. } = self.matches;
        let hints = [
            (Hint::ReadOnly, read_only),
            (Hint::Destructive, destructive),
            (Hint::Idempotent, idempotent),
            (Hint::OpenWorld, open_world),
        ];
        hints.into_iter().filter_map(|(hint, wanted)| wanted.map(|wanted| (hint, wanted)))
    }
}

/// Whether a pattern fits; a missing one does.
fn fits(pattern: &Option<Pattern>, name: &str) -> bool {
    pattern.as_ref().is_none_or(|pattern| pattern.fits(name))
}

/// Whether a pattern matches every name.
fn is_anything(pattern: &str) -> bool {
    pattern.chars().all(|sign| sign == '*')
}

impl Patterns {
    fn compile(rule: &str, matches: &Match) -> Result<Self, RuleError> {
        let compile = |text: &Option<String>| match text {
            None => Ok(None),
            Some(text) => Pattern::parse(text).map(Some).map_err(|reason| RuleError::Pattern {
                rule: rule.into(),
                pattern: text.clone(),
                reason,
            }),
        };
        Ok(Self {
            tool: compile(&matches.tool)?,
            tool_name: compile(&matches.tool_name)?,
            server: compile(&matches.server)?,
            agent: compile(&matches.agent)?,
            principal: compile(&matches.principal)?,
        })
    }
}
