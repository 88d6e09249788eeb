//! One rule of a policy: what it matches, what it says, and for how long a person is asked.

use super::condition::Facts;
use super::finding::{Finding, Hint, Miss, kind, own_name};
use super::{Condition, Example, Subject, Verdict};
use crate::core::pattern::Pattern;
use crate::core::tool::{Tool, ToolName};

/// The words for an origin.
const KINDS: [&str; 3] = ["mcp", "external", "builtin"];

/// A rule. Build with [`Rule::new`], which compiles its patterns.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Unique within the policy; decisions name it.
    pub id: String,
    /// What it says.
    pub verdict: Verdict,
    /// Why, for the person who is asked and for the model that is refused.
    pub justification: String,
    /// How many seconds a person has to answer when this rule asks; `None` for the policy's own.
    pub within_s: Option<u64>,
    matches: Match,
    patterns: Patterns,
    when: Option<Condition>,
    examples: (Vec<Example>, Vec<Example>),
}

/// What a rule asks for; all that is given must hold. Patterns have `*`, `?`, `[a-z]` and `{a,b}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// Pattern of the name the model sees.
    pub tool: Option<String>,
    /// Pattern of what the origin itself calls the tool.
    pub named: Option<String>,
    /// Pattern of the server's configured id; only MCP tools have one.
    pub server: Option<String>,
    /// `mcp`, `external` or `builtin`.
    pub origin: Option<String>,
    /// Pattern of the agent.
    pub agent: Option<String>,
    /// Pattern of the principal. Where nobody said on whose behalf a run acts, it does not match.
    pub principal: Option<String>,
    /// The tool's `readOnlyHint`.
    pub read_only: Option<bool>,
    /// The tool's `destructiveHint`.
    pub destructive: Option<bool>,
    /// The tool's `idempotentHint`.
    pub idempotent: Option<bool>,
    /// The tool's `openWorldHint`.
    pub open_world: Option<bool>,
}

/// What is wrong with a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// A pattern cannot be meant.
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
    #[error("rule `{rule}`: origin `{origin}` is none of `mcp`, `external`, `builtin`")]
    Origin {
        /// The rule.
        rule: String,
        /// The word that was written.
        origin: String,
    },
    /// An example is not matched, or a counter-example is.
    #[error("rule `{rule}`: the example `{example}` {}: {why}", if *should_match { "should match and does not" } else { "should not match and does" })]
    Example {
        /// The rule.
        rule: String,
        /// The example's tool.
        example: String,
        /// What its author said.
        should_match: bool,
        /// Why it is not so.
        why: String,
    },
    /// An example of a rule with a condition does not say which arguments.
    #[error("rule `{rule}`: the example `{example}` has no arguments, and whether it matches depends on them")]
    NoArguments {
        /// The rule.
        rule: String,
        /// The example's tool.
        example: String,
    },
    /// The condition cannot be evaluated for an example.
    #[error("rule `{rule}`: the example `{example}` neither matches nor does not: {why}")]
    Unclear {
        /// The rule.
        rule: String,
        /// The example's tool.
        example: String,
        /// Why not.
        why: String,
    },
}

#[derive(Clone, Debug, Default)]
struct Patterns {
    tool: Option<Pattern>,
    named: Option<Pattern>,
    server: Option<Pattern>,
    agent: Option<Pattern>,
    principal: Option<Pattern>,
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
        if let Some(origin) = matches.origin.as_ref().filter(|origin| !KINDS.contains(&origin.as_str())) {
            return Err(RuleError::Origin { rule: id.into(), origin: origin.clone() });
        }
        Ok(Self {
            id: id.into(),
            verdict,
            justification: justification.into(),
            within_s: None,
            patterns: Patterns::compile(id, &matches)?,
            matches,
            when: None,
            examples: (examples, counter_examples),
        })
    }

    /// The same rule with a condition on the arguments.
    #[must_use]
    pub fn with_condition(self, when: Condition) -> Self {
        Self { when: Some(when), ..self }
    }

    /// The same rule with so many seconds for an answer.
    #[must_use]
    pub fn with_deadline(self, within_s: Option<u64>) -> Self {
        Self { within_s, ..self }
    }

    /// What it asks for.
    pub fn conditions(&self) -> &Match {
        &self.matches
    }

    /// The condition on the arguments, if there is one.
    pub fn when(&self) -> Option<&Condition> {
        self.when.as_ref()
    }

    /// The examples that must match, and those that must not.
    pub fn examples(&self) -> (&[Example], &[Example]) {
        (&self.examples.0, &self.examples.1)
    }

    /// What it has to do with a call. A tool with two names is looked at by both.
    pub fn examine(&self, subject: &Subject<'_>) -> Finding {
        let names = [Some(&subject.tool.name), subject.tool.own_name.as_ref()];
        let findings = names.into_iter().flatten().map(|name| self.find(&Facts::new(subject, name)));
        findings.max_by_key(Finding::rank).unwrap_or(Finding::Misses(Miss::Tool))
    }

    /// The same by one name. What costs most is looked at last.
    pub(super) fn find(&self, facts: &Facts<'_>) -> Finding {
        if let Some(miss) = self.miss(facts.subject, facts.name) {
            return Finding::Misses(miss);
        }
        match self.when.as_ref().map(|condition| condition.holds(facts)) {
            None | Some(Some(Ok(true))) => Finding::Matches,
            Some(Some(Ok(false))) => Finding::Misses(Miss::Condition),
            Some(Some(Err(error))) => Finding::Unclear(error.to_string()),
            Some(None) => Finding::Depends,
        }
    }

    fn miss(&self, subject: &Subject<'_>, name: &ToolName) -> Option<Miss> {
        let tool = subject.tool;
        if self.matches.origin.as_deref().is_some_and(|wanted| wanted != kind(&tool.origin)) {
            return Some(Miss::Origin);
        }
        let names = [
            (Miss::Server, &self.patterns.server, tool.server().map(|server| server.as_str())),
            (Miss::Tool, &self.patterns.tool, Some(name.as_str())),
            (Miss::Named, &self.patterns.named, Some(own_name(&tool.origin))),
            (Miss::Agent, &self.patterns.agent, subject.agent.map(|agent| agent.as_str())),
            (Miss::Principal, &self.patterns.principal, subject.principal.map(|principal| principal.as_str())),
        ];
        let misses = names.into_iter().find(|(_, pattern, text)| match pattern {
            None => false,
            Some(pattern) => !text.is_some_and(|text| pattern.fits(text)),
        });
        misses.map(|(miss, ..)| miss).or_else(|| self.hint_missed(tool))
    }

    /// What a server that is not trusted says of itself loosens nothing. A rule that allows because of a hint does not match
    /// its tools. One that asks or denies matches them if they may be what it looks for, whatever is said: a hint can bring
    /// such a rule about, and never out of its way.
    fn hint_missed(&self, tool: &Tool) -> Option<Miss> {
        let mut wanted = self.wanted_hints();
        if self.verdict == Verdict::Allow && !tool.trusted {
            return wanted.next().map(|_| Miss::Untrusted);
        }
        let missed = wanted.find(|(hint, wanted)| match hint.given(&tool.annotations) {
            Some(given) if given == *wanted => false,
            Some(_) if tool.trusted => true,
            None if self.verdict == Verdict::Allow => true,
            Some(_) | None => hint.at_worst(tool) != *wanted,
        });
        missed.map(|(hint, _)| Miss::Hint(hint))
    }

    /// Whether it matches the tool only because of what a server that is not trusted says of itself. Told of a rule that
    /// matches.
    pub(super) fn rests_on_claim(&self, tool: &Tool) -> bool {
        !tool.trusted && self.wanted_hints().any(|(hint, wanted)| hint.at_worst(tool) != wanted)
    }

    /// The hint that counts as its worst value in a rule that matches, because nobody who is trusted says otherwise.
    pub(super) fn hint_at_worst(&self, tool: &Tool) -> Option<(Hint, bool)> {
        self.wanted_hints().find(|(hint, wanted)| hint.given(&tool.annotations) != Some(*wanted))
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
            named: compile(&matches.named)?,
            server: compile(&matches.server)?,
            agent: compile(&matches.agent)?,
            principal: compile(&matches.principal)?,
        })
    }
}
