//! JUnit report: a test case for each rule that was checked, which fails with its findings.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::check::finding::Finding;
use crate::check::report::Report;
use crate::check::rules::{Severity, all};
use crate::xml::escaped;

/// The report as JUnit XML. A rule fails if one of its findings has at least this severity.
pub fn junit(report: &Report, severity: Severity) -> String {
    let mut by_rule: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in &report.findings {
        by_rule.entry(finding.rule).or_default().push(finding);
    }
    let fails = |findings: &&Vec<&Finding>| findings.iter().any(|finding| finding.severity >= severity);
    let (tests, failures) = (all().count(), by_rule.values().filter(fails).count());
    let seconds = report.timings.check_ms as f64 / 1000.0;
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let name = escaped(&format!("toolgate mcp check {}", report.target));
    let _ = writeln!(
        xml,
        "<testsuites><testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\" time=\"{seconds:.3}\">"
    );
    for rule in all() {
        let class = format!("mcp.{}", rule.group.title().to_lowercase().replace(' ', "-"));
        let case = format!("  <testcase classname=\"{class}\" name=\"{}\"", rule.id);
        let Some(findings) = by_rule.get(rule.id) else {
            let _ = writeln!(xml, "{case}/>");
            continue;
        };
        let text = escaped(&findings.iter().map(|finding| line(finding)).collect::<Vec<_>>().join("\n"));
        let _ = match fails(&findings) {
            true => writeln!(
                xml,
                "{case}>\n    <failure message=\"{}\">{text}</failure>\n  </testcase>",
                escaped(rule.title)
            ),
            false => writeln!(xml, "{case}>\n    <system-out>{text}</system-out>\n  </testcase>"),
        };
    }
    xml.push_str("</testsuite></testsuites>\n");
    xml
}

fn line(finding: &Finding) -> String {
    let place = finding.place();
    let place = if place.is_empty() { place } else { format!("{place}: ") };
    format!("{}: {place}{}\n  fix: {}\n  {}", finding.severity, finding.message, finding.remedy, finding.page)
}
