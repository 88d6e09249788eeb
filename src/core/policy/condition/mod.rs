//! Conditions on the arguments of a call, in the Common Expression Language (<https://cel.dev>).
//!
//! A condition is checked twice. When it is loaded, every name and function in it has to be known, and it has to be
//! small: no nested macros, no pattern that comes from a call. When it is evaluated, its maximum cost for these
//! arguments is calculated first, and a condition that could take long is not evaluated at all. The language knows no
//! clock, no environment and no state. A condition that is neither true nor false is an error, never a guess.

mod arguments;
mod bounds;
mod commands;
mod error;
mod folders;
mod kind;
mod language;
mod outlook;
mod patterns;
mod stop;
mod survey;
mod syntax;

use std::cell::OnceCell;
use std::fmt;
use std::sync::Arc;

pub(super) use commands::WantedCommand;
pub use error::ConditionError;
use kind::Dialect;
pub use kind::VARIABLES;
use language::{Compiled, Variables};
pub use outlook::{Outlook, TextFunction, TextTest};
pub use stop::StopCondition;

use super::{Links, Subject};
use crate::tool::ToolName;

/// The longest condition, in bytes.
pub const MAX_CONDITION_BYTES: usize = 2000;

/// A condition that was parsed and checked.
#[derive(Clone)]
pub struct Condition {
    text: Arc<str>,
    compiled: Arc<Compiled>,
}

/// The facts about a call, converted when the first condition needs them.
pub(super) struct Facts<'a> {
    pub(super) subject: &'a Subject<'a>,
    /// The name the tool is judged by.
    pub(super) name: &'a ToolName,
    pub(super) links: &'a Links,
    variables: OnceCell<Result<Variables<'a>, ConditionError>>,
}

impl Condition {
    /// Parses a condition.
    pub fn parse(text: &str) -> Result<Self, ConditionError> {
        Self::compile(text, Dialect::Rule)
    }

    fn compile(text: &str, dialect: Dialect) -> Result<Self, ConditionError> {
        let text = within_limit(text)?;
        Ok(Self { text: text.into(), compiled: Arc::new(Compiled::parse(text, dialect)?) })
    }

    /// Parses the condition of a grant. It compares the texts of paths alone, because links may lead elsewhere later. It
    /// may compare the words of a command, which a rule does with [`super::CommandPattern`] in its criteria.
    pub fn for_grant(text: &str) -> Result<Self, ConditionError> {
        let condition = Self::compile(text, Dialect::Grant)?;
        let has_links = condition.folders().next().is_some();
        match has_links {
            true => {
                let reason = "a grant does not follow links: write `lexicallyWithin` in place of `within`, or a rule of the policy";
                Err(ConditionError(reason.to_owned()))
            }
            false => Ok(condition),
        }
    }

    /// Whether it holds for a call, by each name of its tool. `false` if it cannot be evaluated.
    pub(crate) fn holds_for(&self, subject: &Subject<'_>) -> bool {
        let names = [Some(&subject.tool.name), subject.tool.own_name.as_ref()];
        let holds = |name| matches!(self.holds(&Facts::new(subject, name)), Some(Ok(true)));
        names.into_iter().flatten().all(holds)
    }

    /// The condition as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The possible results before any call is known.
    pub fn outlook(&self) -> Outlook {
        self.compiled.outlook()
    }

    /// The tests of parts of arguments in it.
    pub fn text_tests(&self) -> &[TextTest] {
        self.compiled.text_tests()
    }

    /// The folders it compares paths with, links resolved.
    pub(super) fn folders(&self) -> impl Iterator<Item = &str> {
        self.compiled.folders()
    }

    /// The reason why it holds for no call, as far as its text shows it.
    pub fn why_never(&self) -> Option<String> {
        self.compiled.why_never()
    }

    /// Whether it reads an argument with this name.
    pub(super) fn reads(&self, argument: &str) -> bool {
        self.compiled.reads(argument)
    }

    /// Whether it reads arguments at all.
    pub(super) fn reads_any(&self) -> bool {
        self.compiled.reads_any()
    }

    /// Whether it is false for every call of a tool, whatever the arguments are.
    pub(super) fn is_false_for(&self, subject: &Subject<'_>, name: &ToolName) -> bool {
        self.compiled.holds(&Variables::of_tool(subject, name)) == Ok(false)
    }

    /// Whether it holds; `None` while the arguments are not known.
    pub(super) fn holds(&self, facts: &Facts<'_>) -> Option<Result<bool, ConditionError>> {
        let arguments = facts.subject.arguments?;
        let variables =
            facts.variables.get_or_init(|| Variables::new(facts.subject, facts.name, arguments, facts.links));
        Some(variables.as_ref().map_err(Clone::clone).and_then(|variables| self.compiled.holds(variables)))
    }
}

/// The text without surrounding blanks, unless it is too long.
fn within_limit(text: &str) -> Result<&str, ConditionError> {
    let text = text.trim();
    if text.len() <= MAX_CONDITION_BYTES {
        return Ok(text);
    }
    Err(ConditionError(format!("it has {} bytes; the most are {MAX_CONDITION_BYTES}", text.len())))
}

impl<'a> Facts<'a> {
    /// Facts about a call whose paths are compared by their texts alone.
    pub(super) fn new(subject: &'a Subject<'a>, name: &'a ToolName) -> Self {
        Self::with_links(subject, name, &Links::Ignored)
    }

    pub(super) fn with_links(subject: &'a Subject<'a>, name: &'a ToolName, links: &'a Links) -> Self {
        Self { subject, name, links, variables: OnceCell::new() }
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

#[cfg(test)]
mod tests;
