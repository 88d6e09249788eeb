//! Baseline: a file of findings that are known and accepted. A later check reports only what is new.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::check::finding::Finding;
use crate::check::report::Report;

/// Accepted findings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// Version of the file's format.
    version: u32,
    /// Rule, tool and place of each finding, in one text.
    findings: BTreeSet<String>,
}

impl Baseline {
    /// A baseline that accepts all findings of a report.
    pub fn of(report: &Report) -> Self {
        Self { version: 1, findings: report.findings.iter().map(Finding::fingerprint).collect() }
    }

    /// Removes accepted findings from a report. Returns how many there were.
    pub fn apply(&self, report: &mut Report) -> usize {
        let before = report.findings.len();
        report.findings.retain(|finding| !self.findings.contains(&finding.fingerprint()));
        before - report.findings.len()
    }
}
