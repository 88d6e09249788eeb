//! Report of a check: facts, findings, and the numbers of its summary line.

use serde::Serialize;
use serde_json::Value;

use super::calls::CallFacts;
use super::finding::Finding;
use super::probes::shutdown::Shutdown;
use super::probes::versions::Negotiation;
use super::revision::Revision;
use super::rules::Severity;
use super::tools::ToolRow;

/// How the server starts, answers and ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Timings {
    /// Milliseconds from the start to the first byte on stdout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte_ms: Option<u64>,
    /// Milliseconds from the first request to its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_answer_ms: Option<u64>,
    /// Milliseconds of the slowest page of tools/list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_ms: Option<u64>,
    /// Resident memory of the idle server and its child processes, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shutdown: Option<Shutdown>,
    /// Milliseconds of the whole check.
    pub check_ms: u64,
}

/// The number of findings of each severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub errors: usize,
    pub warnings: usize,
    pub notes: usize,
    /// Findings that the baseline accepts, which count as none of the others.
    pub baseline: usize,
}

/// A report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The command or the URL.
    pub target: String,
    /// Name and version by which the server introduces itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<Value>,
    /// The revisions that the server speaks.
    pub revisions: Vec<Revision>,
    /// The answers to each requested version.
    pub negotiations: Vec<Negotiation>,
    pub timings: Timings,
    /// The tools, with tokens and provider matrix.
    pub tools: Vec<ToolRow>,
    /// Estimate of the tokens that the list takes in a request to a model.
    pub tokens: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<CallFacts>,
    pub findings: Vec<Finding>,
    pub counts: Counts,
    /// Why the server could not be checked, if it could not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The definitions of the tools, for `--save-tools` and `--against`.
    #[serde(skip)]
    pub definitions: Vec<Value>,
}

impl Report {
    /// Counts the findings again after a selection.
    pub fn recount(&mut self, baseline: usize) {
        let of = |severity| self.findings.iter().filter(|finding| finding.severity == severity).count();
        self.counts = Counts {
            errors: of(Severity::Error),
            warnings: of(Severity::Warning),
            notes: of(Severity::Note),
            baseline,
        };
    }

    /// The summary line, short enough for a badge.
    pub fn summary(&self) -> String {
        let Counts { errors, warnings, notes, baseline } = self.counts;
        let known = if baseline > 0 { format!(", {baseline} in the baseline") } else { String::new() };
        let plural = |number: usize, word: &str| format!("{number} {word}{}", if number == 1 { "" } else { "s" });
        let counts = [plural(errors, "error"), plural(warnings, "warning"), plural(notes, "note")];
        format!("{}{known}", counts.join(", "))
    }

    /// Whether a finding has at least this severity.
    pub fn has(&self, severity: Severity) -> bool {
        self.findings.iter().any(|finding| finding.severity >= severity)
    }
}
