//! Findings about one tool: adds its name and the revision to each.

use serde_json::Value;

use crate::check::context::Session;
use crate::check::finding::{Finding, Findings};
use crate::check::rules::Rule;

/// Collects the findings about one tool.
pub(super) struct ToolJudge<'a> {
    pub(super) session: &'a Session,
    pub(super) findings: &'a Findings,
    pub(super) name: &'a str,
    pub(super) tool: &'a Value,
}

impl ToolJudge<'_> {
    /// Adds a finding at this place of the definition.
    pub(super) fn report(&self, rule: &'static Rule, pointer: impl Into<String>, message: impl AsRef<str>) {
        self.add(self.session.finding(rule, message).at(pointer));
    }

    /// Adds a finding about this tool.
    pub(super) fn add(&self, finding: Finding) {
        self.findings.add(finding.tool(self.name));
    }
}
