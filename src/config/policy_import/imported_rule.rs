//! Imported rules, and the policy file that they are written to.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value, json};
use toolgate_core::policy::Verdict;
use toolgate_core::tool::escape_untrusted;

/// The longest id that is made from a rule, in characters.
const LONGEST_ID: usize = 48;

/// A policy made from the permissions of another program.
#[derive(Clone, Debug)]
pub struct PolicyImport {
    /// The verdict where no rule matches.
    pub default: Verdict,
    pub(super) rules: Vec<ImportedRule>,
    /// Whether the source denies or asks about paths.
    pub(super) restricts_paths: bool,
    /// What has no exact translation, in the order of the files.
    pub untranslated: Vec<UntranslatedRule>,
}

/// The criteria of a rule.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Criteria {
    pub(super) matches: Map<String, Value>,
    pub(super) when: Option<String>,
}

/// A rule of the policy file.
#[derive(Clone, Debug)]
pub(super) struct ImportedRule {
    pub(super) verdict: Verdict,
    pub(super) criteria: Criteria,
    pub(super) reason: String,
    /// The rule as its file has it; its id is made from it.
    pub(super) source: String,
    /// Calls that match.
    pub(super) matching: Vec<Value>,
    /// Calls that do not match.
    pub(super) not_matching: Vec<Value>,
}

/// A rule or setting of the source without an exact translation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UntranslatedRule {
    pub file: String,
    /// The rule or setting as its file has it.
    pub rule: String,
    pub reason: String,
    /// The effect in the policy.
    pub effect: ImportEffect,
}

/// What became of a rule without an exact translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ImportEffect {
    /// There is no rule for it. The calls that it allowed require approval.
    LeftOut,
    /// A rule asks about its calls, and about others.
    Asks,
    /// A rule with the same verdict matches other calls as well.
    MatchesMore,
    /// A rule that allows does not match all of its calls; the others require approval.
    MatchesLess,
}

impl Default for PolicyImport {
    /// An import of nothing: every call requires approval.
    fn default() -> Self {
        Self { default: Verdict::Ask, rules: Vec::new(), restricts_paths: false, untranslated: Vec::new() }
    }
}

impl PolicyImport {
    /// Adds a rule, unless one with this verdict matches the same calls already.
    pub(super) fn add(&mut self, rule: ImportedRule) {
        let is_known = |other: &ImportedRule| other.verdict == rule.verdict && other.criteria == rule.criteria;
        if !self.rules.iter().any(is_known) {
            self.rules.push(rule);
        }
    }

    /// Records a rule or setting without an exact translation.
    pub(super) fn report(&mut self, file: &str, rule: &str, reason: String, effect: ImportEffect) {
        self.untranslated.push(UntranslatedRule { file: file.to_owned(), rule: rule.to_owned(), reason, effect });
    }

    /// How the policy differs from its source in all rules about files, if it has some.
    pub fn difference_of_paths(&self) -> Option<&'static str> {
        let compares_paths =
            |rule: &ImportedRule| rule.criteria.when.as_ref().is_some_and(|when| when.contains(".within("));
        let difference =
            "no rule about files allows a relative path: a call with one requires approval, unless it is denied";
        self.rules.iter().any(compares_paths).then_some(difference)
    }

    /// The policy file. JSON is valid YAML, so no text of the source can break out of its position.
    pub fn yaml(&self, name: &str) -> String {
        let mut lines = vec![format!("name: {}", json!(name)), format!("default: {}", self.default.as_str())];
        let mut ids = BTreeSet::new();
        lines.push(if self.rules.is_empty() { "rules: []".to_owned() } else { "rules:".to_owned() });
        for rule in &self.rules {
            lines.extend(rule.yaml(&mut ids));
        }
        let difference = self.difference_of_paths();
        if difference.is_some() || !self.untranslated.is_empty() {
            lines.push("# Without an exact translation:".to_owned());
        }
        lines.extend(difference.map(|difference| format!("# - {difference}")));
        lines.extend(self.untranslated.iter().map(|rule| format!("# - {rule}")));
        lines.push(String::new());
        lines.join("\n")
    }
}

impl ImportedRule {
    fn yaml(&self, ids: &mut BTreeSet<String>) -> Vec<String> {
        let Criteria { matches, when } = &self.criteria;
        let mut lines = vec![
            format!("  - id: {}", json!(unique(&self.id(), ids))),
            format!("    match: {}", Value::from(matches.clone())),
        ];
        lines.extend(when.as_ref().map(|when| format!("    when: {}", json!(when))));
        lines.push(format!("    verdict: {}", self.verdict.as_str()));
        lines.push(format!("    reason: {}", json!(self.reason)));
        let examples = [("match", &self.matching), ("no_match", &self.not_matching)];
        let examples: Map<String, Value> = examples
            .into_iter()
            .filter(|(_, calls)| !calls.is_empty())
            .map(|(key, calls)| (key.to_owned(), json!(calls)))
            .collect();
        if !examples.is_empty() {
            lines.push(format!("    examples: {}", Value::from(examples)));
        }
        lines
    }

    fn id(&self) -> String {
        let sign = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { ' ' };
        let words: String = self.source.chars().map(sign).collect();
        let words = [self.verdict.as_str()].into_iter().chain(words.split_whitespace());
        let id: String = words.collect::<Vec<_>>().join("-").chars().take(LONGEST_ID).collect();
        id.trim_end_matches('-').to_owned()
    }
}

fn unique(id: &str, ids: &mut BTreeSet<String>) -> String {
    let numbered = (1..).map(|number| if number == 1 { id.to_owned() } else { format!("{id}-{number}") });
    let free = numbered.into_iter().find(|id| !ids.contains(id)).unwrap_or_default();
    ids.insert(free.clone());
    free
}

impl std::fmt::Display for UntranslatedRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [file, rule, reason] = [&self.file, &self.rule, &self.reason].map(|text| escape_untrusted(text));
        let effect = match self.effect {
            ImportEffect::LeftOut => "left out",
            ImportEffect::Asks => "asks",
            ImportEffect::MatchesMore => "matches more",
            ImportEffect::MatchesLess => "matches less",
        };
        write!(f, "{file}: {rule}: {effect}: {reason}")
    }
}
