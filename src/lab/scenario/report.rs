//! Report about the cases of scenario files.

use serde::Serialize;

use super::finding::Finding;
use super::timeline::Step;

/// The report about a test.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TestReport {
    /// The cases, in the order of the files.
    pub cases: Vec<CaseReport>,
}

/// The report about a case.
#[derive(Clone, Debug, Serialize)]
pub struct CaseReport {
    /// The scenario file.
    pub file: String,
    /// The name of the scenario.
    pub scenario: String,
    /// The name of the scenario with those of the row and the model.
    pub title: String,
    pub outcome: CaseOutcome,
    /// Why the case was skipped, or could not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The part of the attempts that has to pass.
    pub pass_rate: f64,
    pub duration_ms: u64,
    /// The runs of the case. A case with a scripted or recorded model has one.
    pub attempts: Vec<Attempt>,
}

/// What became of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CaseOutcome {
    Passed,
    /// An expectation was not met.
    Failed,
    /// The case needs a real model, and live models were not allowed.
    Skipped,
    /// The run could not begin.
    Error,
}

/// A run of a case.
#[derive(Clone, Debug, Serialize)]
pub struct Attempt {
    pub passed: bool,
    pub findings: Vec<Finding>,
    pub status: String,
    pub turns: usize,
    pub calls: usize,
    /// The tokens of all replies, as far as the model reported them.
    pub tokens: u64,
    pub duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<serde_json::Value>,
    /// The trace, as it is exported if OTLP is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// The waterfall: model calls and tool calls with their times.
    pub steps: Vec<Step>,
}

/// The numbers of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
    pub errors: usize,
}

impl TestReport {
    /// Number of cases by outcome.
    pub fn counts(&self) -> Counts {
        let count = |outcome| self.cases.iter().filter(|case| case.outcome == outcome).count();
        Counts {
            passed: count(CaseOutcome::Passed),
            failed: count(CaseOutcome::Failed),
            skipped: count(CaseOutcome::Skipped),
            errors: count(CaseOutcome::Error),
        }
    }

    /// Whether at least one case ran, and every case that ran passed.
    pub fn passed(&self) -> bool {
        let Counts { passed, failed, skipped: _, errors } = self.counts();
        passed > 0 && failed == 0 && errors == 0
    }
}

impl CaseReport {
    /// The unmet expectations of the first attempt that failed.
    pub fn findings(&self) -> &[Finding] {
        self.attempts.iter().find(|attempt| !attempt.passed).map_or(&[], |attempt| &attempt.findings)
    }

    /// How many attempts passed.
    pub fn passed_attempts(&self) -> usize {
        self.attempts.iter().filter(|attempt| attempt.passed).count()
    }
}
