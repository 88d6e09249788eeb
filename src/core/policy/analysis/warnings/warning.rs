//! Warning about a rule: its message, its remedy, and its place in the file of the policy.

use serde::Serialize;

use crate::policy::Rule;

/// Characters with a special meaning in a pattern.
pub(super) const SIGNS: [char; 5] = ['*', '?', '[', '{', '\\'];

/// A warning about a rule.
#[derive(Debug, Serialize)]
pub struct RuleWarning<'a> {
    pub rule: &'a str,
    /// The suspected mistake.
    pub message: String,
    /// The suggested fix.
    pub remedy: String,
    /// Line in the file of the policy, from 1.
    pub line: Option<usize>,
    /// Column in characters, from 1.
    pub column: Option<usize>,
}

/// The part of a rule that a warning is about.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    Whole,
    Match,
    When,
}

/// A message, its remedy and the part of the rule.
#[derive(Debug)]
pub(super) struct Warning {
    part: Part,
    message: String,
    remedy: String,
}

impl Warning {
    pub(super) fn new(part: Part, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { part, message: message.into(), remedy: remedy.into() }
    }

    pub(super) fn about(self, rule: &Rule) -> RuleWarning<'_> {
        let places = rule.places();
        let place = match self.part {
            Part::Whole => places.id,
            Part::Match => places.matches,
            Part::When => places.when,
        };
        let (line, column) = place.or(places.id).unzip();
        RuleWarning { rule: &rule.id, message: self.message, remedy: self.remedy, line, column }
    }
}
