//! Which calls run, which are put to a person, which are refused.
//!
//! A policy is a list of rules; every rule that matches speaks, and the strictest verdict wins. Where no rule speaks the
//! policy's default holds. Nothing here looks at a store or a person: approvals that were given stand beside the policy.

mod rule;
mod verdict;

pub use rule::{Example, Match, Rule, RuleError};
pub use verdict::Verdict;

use serde_json::{Map, Value};

use crate::core::id::{AgentName, Principal};
use crate::core::run::PolicyMark;
use crate::core::tool::{Origin, Tool, ToolName};

/// A set of rules with a name and a version.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The name it is chosen by, for example `default`.
    pub name: String,
    /// A hash of its text: a decision records the version it was made under.
    pub version: String,
    /// The verdict where no rule matches.
    pub fallback: Verdict,
    /// How many seconds a person has to answer where no rule says otherwise.
    pub within_s: Option<u64>,
    /// The rules, in file order.
    pub rules: Vec<Rule>,
}

/// What is judged.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The tool that would run.
    pub tool: &'a Tool,
    /// The agent that would call it.
    pub agent: Option<&'a AgentName>,
    /// On whose behalf.
    pub principal: Option<&'a Principal>,
    /// The arguments it would run with; `None` while no call is known. What depends on them then counts as its stricter
    /// half.
    pub arguments: Option<&'a Map<String, Value>>,
}

/// A verdict and the rule it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// What is to happen.
    pub verdict: Verdict,
    /// The id of the deciding rule; `None` when the policy's default decided.
    pub rule: Option<String>,
    /// Why, for people and for the model.
    pub why: String,
    /// How many seconds a person has to answer; `None` for as long as the run lives.
    pub within_s: Option<u64>,
}

impl Policy {
    /// A policy without rules: everything is put to a person.
    pub fn ask_always() -> Self {
        Self {
            name: "ask".into(),
            version: "builtin".into(),
            fallback: Verdict::Ask,
            within_s: None,
            rules: Vec::new(),
        }
    }

    /// A policy without rules: everything runs.
    pub fn allow_always() -> Self {
        Self {
            name: "allow".into(),
            version: "builtin".into(),
            fallback: Verdict::Allow,
            within_s: None,
            rules: Vec::new(),
        }
    }

    /// The strictest verdict of all rules that match; the first of equally strict rules is named.
    ///
    /// A tool whose definition changed under a running run is not the tool the rules were written for: unless its server
    /// is trusted, what they allow is asked about.
    ///
    /// A tool that is shown under a longer name, because another one has the same, is judged by both names.
    pub fn judge(&self, subject: &Subject<'_>) -> Judgement {
        let mut judgement = self.strictest(subject, &subject.tool.name);
        if let Some(own) = &subject.tool.own_name {
            let by_own = self.strictest(subject, own);
            if by_own.verdict > judgement.verdict {
                judgement = by_own;
            }
        }
        match judgement.verdict == Verdict::Allow && subject.tool.changed && !subject.tool.trusted {
            true => Judgement {
                verdict: Verdict::Ask,
                rule: judgement.rule,
                why: "its server changed the tool's definition during this run; look at it before you allow it".into(),
                within_s: judgement.within_s,
            },
            false => judgement,
        }
    }

    /// The policy as it is now, for the record.
    pub fn mark(&self) -> PolicyMark {
        PolicyMark { name: self.name.clone(), version: self.version.clone() }
    }

    fn strictest(&self, subject: &Subject<'_>, name: &ToolName) -> Judgement {
        let mut strictest: Option<&Rule> = None;
        for rule in self.rules.iter().filter(|rule| rule.matches(subject, name)) {
            if strictest.is_none_or(|found| rule.verdict > found.verdict) {
                strictest = Some(rule);
            }
        }
        match strictest {
            Some(rule) => Judgement {
                verdict: rule.verdict,
                rule: Some(rule.id.clone()),
                why: rule.justification.clone(),
                within_s: self.within_s,
            },
            // What toolgate runs itself does nothing but show a run what is its own.
            None if matches!(subject.tool.origin, Origin::Builtin { .. }) => Judgement {
                verdict: Verdict::Allow,
                rule: None,
                why: "toolgate runs it itself, and it changes nothing".into(),
                within_s: self.within_s,
            },
            None => Judgement {
                verdict: self.fallback,
                rule: None,
                why: format!("no rule of policy `{}` speaks of this tool", self.name),
                within_s: self.within_s,
            },
        }
    }

    /// Runs every rule's examples. A rule that does not do what its author wrote beside it is refused when loaded.
    pub fn check_examples(&self) -> Result<(), Vec<RuleError>> {
        let errors: Vec<RuleError> = self.rules.iter().flat_map(Rule::check_examples).collect();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::ask_always()
    }
}
