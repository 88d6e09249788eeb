//! Which calls run, which are put to a person, which are refused.
//!
//! A policy is a list of rules; every rule that matches speaks, and the strictest verdict wins. Where no rule speaks the
//! policy's default holds. A rule whose condition cannot be evaluated says nothing, and then nothing runs unasked. Nothing here
//! looks at a store or a person: approvals that were given stand beside the policy.

mod command;
mod condition;
mod example;
mod finding;
mod judge;
mod links;
#[cfg(feature = "policy-cel")]
mod path;
mod rule;
mod verdict;

pub use command::{CommandPattern, Rest, plain_words};
pub use condition::{Condition, ConditionError, MAX_CONDITION_BYTES, Outlook, TextFunction, TextTest, VARIABLES};
pub use example::Example;
pub use finding::{Finding, Hint, Miss};
pub use links::Links;
pub use rule::{Match, Rule, RuleError, RulePlaces};
pub use verdict::Verdict;

use serde_json::{Map, Value};

use crate::core::id::{AgentName, Principal};
use crate::core::run::PolicyMark;
use crate::core::tool::Tool;

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
    /// The arguments it would run with; `None` while no call is known. Where the verdict depends on them it is then *ask*:
    /// nothing is hidden that some call may do, and nothing runs that some call may not.
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

    /// The folders that its conditions compare paths with, links resolved. Empty where links do not matter.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().filter_map(Rule::when).flat_map(Condition::folders)
    }

    /// The policy as it is now, for the record.
    pub fn mark(&self) -> PolicyMark {
        PolicyMark { name: self.name.clone(), version: self.version.clone() }
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
