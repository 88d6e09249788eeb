//! What a check found.

use std::fmt;

use serde::Serialize;

use super::remedy;
use crate::cli::paint::Paint;
use crate::cli::text::one_line;
use crate::core::error::Failure;

/// The longest that something the model said gets in a line.
const QUOTED: usize = 60;

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ability {
    /// It answers at all.
    Answers,
    /// Its text comes in pieces while it is being written.
    Streaming,
    /// It calls the tool it is offered, with arguments that fit.
    ToolCall,
    /// It takes the result and goes on from it.
    ResultAccepted,
    /// It calls several tools in one reply.
    ParallelCalls,
    /// Its answer has the form it is asked for.
    StructuredOutput,
    /// It says how many tokens it used.
    Usage,
    /// What it cost is known.
    Cost,
}

impl Ability {
    /// What needs an answer to be tried.
    pub(super) const WITHOUT_AN_ANSWER: [Self; 4] =
        [Self::ToolCall, Self::ResultAccepted, Self::ParallelCalls, Self::StructuredOutput];
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Finding {
    /// What.
    pub(super) check: Ability,
    /// Whether it works; `None` if it could not be tried.
    pub(super) works: Option<bool>,
    /// What was seen.
    pub(super) evidence: String,
    /// The failure of the call, if it failed.
    pub(super) error: Option<Failure>,
    /// What to do about it.
    pub(super) remedy: Option<String>,
}

impl Finding {
    /// It works: this was seen.
    pub(super) fn works(check: Ability, evidence: impl Into<String>) -> Self {
        Self::of(check, Some(true), evidence)
    }

    /// It does not: this was seen instead.
    pub(super) fn lacks(check: Ability, evidence: impl Into<String>) -> Self {
        Self::of(check, Some(false), evidence)
    }

    /// It could not be tried, because of this.
    pub(super) fn untried(check: Ability, evidence: impl Into<String>) -> Self {
        Self::of(check, None, evidence)
    }

    /// The call that was to show it failed.
    pub(super) fn failed(check: Ability, failure: &Failure) -> Self {
        let remedy = remedy::of(failure.code).map(str::to_owned);
        Self { error: Some(failure.clone()), remedy, ..Self::lacks(check, "the call failed") }
    }

    /// The same finding with what to do about it.
    pub(super) fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    /// The lines that tell it after those `before` were told: what to do is said once.
    pub(super) fn lines(&self, before: &[Self], paint: Paint) -> Vec<String> {
        let mark = match self.works {
            Some(true) => paint.green("✓"),
            Some(false) => paint.red("✗"),
            None => paint.yellow("?"),
        };
        let told = self.error.as_ref().map_or_else(|| self.evidence.clone(), ToString::to_string);
        let mut lines = vec![format!("  {mark} {:<18}{told}", self.check.to_string())];
        let is_new = |remedy: &&String| before.iter().all(|told| told.remedy.as_ref() != Some(*remedy));
        lines.extend(self.remedy.iter().filter(is_new).map(|remedy| format!("    {} {remedy}", paint.cyan("help:"))));
        lines
    }

    fn of(check: Ability, works: Option<bool>, evidence: impl Into<String>) -> Self {
        Self { check, works, evidence: evidence.into(), error: None, remedy: None }
    }
}

impl fmt::Display for Ability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answers => "answers",
            Self::Streaming => "streaming",
            Self::ToolCall => "tool call",
            Self::ResultAccepted => "result accepted",
            Self::ParallelCalls => "parallel calls",
            Self::StructuredOutput => "structured output",
            Self::Usage => "usage",
            Self::Cost => "cost",
        })
    }
}

/// What the model said, in quotation marks and short.
pub(super) fn quoted(text: &str) -> String {
    match text.trim() {
        "" => "nothing".into(),
        text => format!("\"{}\"", one_line(text, QUOTED)),
    }
}
