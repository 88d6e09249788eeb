//! Tool policy: which calls run, which require approval, which are refused.
//!
//! A policy is a list of rules. The strictest verdict of all matching rules wins; if no rule matches, the policy's
//! default applies, unless rules allow each part of a chained command. A rule whose condition cannot be evaluated has no
//! verdict, and the call then requires approval.
//! Nothing here reads a store or asks a person: approvals that were given are separate from the policy.

pub mod analysis;
mod chained_commands;
mod command;
mod condition;
mod denial;
mod example;
mod example_check;
mod explanation;
mod file_pattern;
mod finding;
mod judge;
mod limit;
mod on_timeout;
mod path;
mod rule;
mod tool_judgement;
mod unmatched;
mod verdict;

use command::CHANGE_FOLDER;
pub use command::{CommandPattern, FollowingWords, plain_words};
use condition::WantedCommand;
pub use condition::{
    Condition, ConditionError, MAX_CONDITION_BYTES, Outlook, StopCondition, TextFunction, TextTest, VARIABLES,
};
pub use example::Example;
pub use finding::{Finding, Hint, UnclearCriterion, UnmetCriterion};
pub use limit::{LimitAmount, LimitUse, LimitWindow, RuleLimit};
pub use on_timeout::OnTimeout;
pub use path::Links;
pub use rule::{Match, Rule, RuleError, RulePlaces};
pub use tool_judgement::ToolJudgement;
pub use unmatched::{KnownNames, UnmatchedRule};
pub use verdict::Verdict;

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::id::{AgentName, Principal};
use crate::tool::Tool;

/// A set of rules with a name and a version.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The name in the configuration, for example `default`.
    pub name: String,
    /// A hash of its text: a decision records the version it was made under.
    pub version: String,
    /// The verdict where no rule matches.
    pub fallback: Verdict,
    /// The seconds a person has to answer, unless a rule sets them.
    pub answer_timeout_s: Option<u64>,
    /// The effect of no answer in time, unless a rule sets it.
    pub on_timeout: OnTimeout,
    /// The rules, in file order.
    pub rules: Vec<Rule>,
}

/// The version of a policy at some time, for the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyMark {
    pub name: String,
    /// Hash of its text.
    pub version: String,
}

/// The call or tool to be judged.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The tool that would run.
    pub tool: &'a Tool,
    /// The agent that would call it.
    pub agent: Option<&'a AgentName>,
    pub principal: Option<&'a Principal>,
    /// The arguments of the call; `None` while no call is known. If the verdict depends on them it is then *ask*: a
    /// tool that some call may use is not hidden, and a call that may be forbidden does not run.
    pub arguments: Option<&'a Map<String, Value>>,
}

/// A verdict and the rule that decided it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    pub verdict: Verdict,
    /// The id of the deciding rule; `None` when the policy's default decided.
    pub rule: Option<String>,
    /// The reason, for people and for the model.
    pub reason: String,
    /// The seconds a person has to answer; `None` for as long as the run lives.
    pub answer_timeout_s: Option<u64>,
    /// The effect of no answer in time.
    pub on_timeout: OnTimeout,
    /// Whether a rule that denies cannot be evaluated for the call: only a grant for exactly its arguments covers it.
    pub may_be_denied: bool,
    /// The uses that the call makes of the limits of all rules that allow it, in file order. The call runs only if each is
    /// counted.
    pub limits: Vec<LimitUse>,
}

impl Policy {
    /// A policy without rules: every call requires approval.
    pub fn ask_always() -> Self {
        Self {
            name: "ask".into(),
            version: "builtin".into(),
            fallback: Verdict::Ask,
            answer_timeout_s: None,
            on_timeout: OnTimeout::default(),
            rules: Vec::new(),
        }
    }

    /// A policy without rules: everything runs.
    pub fn allow_always() -> Self {
        Self {
            name: "allow".into(),
            version: "builtin".into(),
            fallback: Verdict::Allow,
            answer_timeout_s: None,
            on_timeout: OnTimeout::default(),
            rules: Vec::new(),
        }
    }

    /// Whether its verdict may depend on the principal.
    pub fn reads_principal(&self) -> bool {
        let is_in = |condition: &Condition| condition.text().contains("principal");
        self.rules.iter().any(|rule| rule.conditions().principal.is_some() || rule.when().is_some_and(is_in))
    }

    /// The folders that its conditions compare paths with, links resolved. Empty where links do not matter.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().filter_map(Rule::when).flat_map(Condition::folders)
    }

    /// The policy's name and version, for the record.
    pub fn mark(&self) -> PolicyMark {
        PolicyMark { name: self.name.clone(), version: self.version.clone() }
    }

    /// Runs the examples of every rule. A rule that contradicts its examples is refused on loading.
    pub fn check_examples(&self) -> Result<(), Vec<RuleError>> {
        let errors: Vec<RuleError> = self.rules.iter().flat_map(Rule::check_examples).collect();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }
}

/// The condition of the rule `files-of-programs` of the presets. The contents of files are not examined: they name no file, and
/// a long one takes too long.
const FILES_OF_PROGRAMS: &str = r"args.exists(name, type(args[name]) == string
    && !(name in ['content', 'contents', 'file_text', 'text', 'old_string', 'new_string', 'old_str', 'new_str']) && (
    args[name].matches('(?is)^(.*[/\\\\])?[.](git|husky|github|vscode|idea|claude|cursor|ssh|gnupg|toolgate|envrc|netrc|npmrc)([/\\\\].*)?$')
    || args[name].matches('(?is)^(.*[/\\\\])?([.](gitconfig|gitmodules|bash(rc|_profile|_login)|profile|z(shrc|shenv|profile)|mcp[.]json)|toolgate[.]yaml)$')
    || args[name].matches('(?s)^(.*[.])?/+(etc|usr|s?bin|lib[0-9]*|boot|dev|proc|sys|System|Library)(/.*)?$')))";

static DEFAULT: LazyLock<Policy> = LazyLock::new(|| {
    let external = Match { origin: Some("external".into()), ..Match::default() };
    let reason = "The calling application runs this tool itself and can refuse it there.";
    let external = Rule::new("external-tools", Verdict::Allow, reason, external, Vec::new(), Vec::new());
    let tools = "{write_file,edit_file,create_directory,create_file,move_file,copy_file,delete_file,remove_file}";
    let files = Match { origin: Some("mcp".into()), tool_name: Some(tools.into()), ..Match::default() };
    let reason = "This file can decide what programs do later, as a hook, a setting, or a file of the system.";
    let files = Rule::new("files-of-programs", Verdict::Ask, reason, files, Vec::new(), Vec::new()).ok();
    let condition = Condition::parse(FILES_OF_PROGRAMS).ok();
    let files = files.zip(condition).map(|(rule, condition)| rule.with_condition(condition));
    Policy { name: "default".into(), rules: external.into_iter().chain(files).collect(), ..Policy::ask_always() }
});

impl Default for Policy {
    /// The preset `default` (`approvals/default.yaml`): external tools run, because the application that declares them
    /// executes them itself; every other call requires approval. A rule of its own asks about files that decide what programs
    /// do, so that a grant for other files does not cover them.
    fn default() -> Self {
        DEFAULT.clone()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_default_asks_about_files_of_programs_with_a_rule_of_its_own() {
        let policy = Policy::default();
        let of = |server: Option<&str>| {
            Example { server: server.map(str::to_owned), tool: "write_file".into(), ..Example::default() }.tool()
        };
        let judged = |tool: &Tool, path: &str| {
            let arguments = json!({"path": path, "content": "x".repeat(200_000)});
            let subject = Subject { tool, agent: None, principal: None, arguments: arguments.as_object() };
            let judgement = policy.judge(&subject);
            (judgement.verdict, judgement.rule)
        };
        let (mcp, external) = (of(Some("fs")), of(None));
        let rule = |id: &str| Some(id.to_owned());
        assert_eq!(judged(&mcp, ".git/hooks/pre-commit"), (Verdict::Ask, rule("files-of-programs")));
        assert_eq!(judged(&mcp, "a\n/../.git/hooks/pre-commit"), (Verdict::Ask, rule("files-of-programs")));
        assert_eq!(judged(&mcp, "notes.md"), (Verdict::Ask, None), "whatever the length of the content");
        assert_eq!(judged(&external, ".git/config"), (Verdict::Allow, rule("external-tools")));
    }
}
