//! Scenarios: tasks in words with expectations about the run, as files.
//!
//! This module reads scenarios, checks a finished run against their expectations, and writes reports. It starts no run:
//! `toolgate::testing` runs the cases.

mod call_check;
mod check;
mod expand;
mod expect;
mod file;
mod finding;
pub mod judge;
mod junit;
mod markdown;
mod report;
#[cfg(test)]
mod tests;
mod timeline;
mod tool_pattern;

pub use check::check;
pub use expand::{TestCase, expand, has_variables};
pub use expect::{AnswerPattern, Bounds, Expect, ExpectedAnswer, ExpectedCall, ExpectedStatus, Judge, Order, Texts};
pub use file::{
    Answers, ApprovalDecision, ApprovalRule, Approvals, Case, Endpoint, ExternalAnswer, Live, ModelChoice, Program,
    Scenario, ScenarioFile, ServerChoice,
};
pub use finding::Finding;
pub use junit::junit;
pub use markdown::markdown;
pub use report::{Attempt, CaseOutcome, CaseReport, Counts, TestReport};
pub use timeline::{Step, timeline, waterfall};
pub use tool_pattern::ToolPattern;
