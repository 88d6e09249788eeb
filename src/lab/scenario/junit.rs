//! JUnit report: a suite for each file, a test case for each case.

use super::report::{CaseOutcome, CaseReport, TestReport};
use crate::xml::escaped;

/// The report as JUnit XML.
pub fn junit(report: &TestReport) -> String {
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"toolgate mcp test\">\n");
    let mut files: Vec<&str> = report.cases.iter().map(|case| case.file.as_str()).collect();
    files.dedup();
    for file in files {
        let cases: Vec<&CaseReport> = report.cases.iter().filter(|case| case.file == file).collect();
        let count = |outcome| cases.iter().filter(|case| case.outcome == outcome).count();
        xml.push_str(&format!(
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{}\">\n",
            escaped(file),
            cases.len(),
            count(CaseOutcome::Failed),
            count(CaseOutcome::Error),
            count(CaseOutcome::Skipped),
            seconds(cases.iter().map(|case| case.duration_ms).sum())
        ));
        cases.into_iter().for_each(|case| xml.push_str(&test_case(case)));
        xml.push_str("  </testsuite>\n");
    }
    xml + "</testsuites>\n"
}

fn test_case(case: &CaseReport) -> String {
    let (class, name, time) = (escaped(&case.scenario), escaped(&case.title), seconds(case.duration_ms));
    let open = format!("    <testcase classname=\"{class}\" name=\"{name}\" time=\"{time}\"");
    let reason = escaped(case.reason.as_deref().unwrap_or_default());
    match case.outcome {
        CaseOutcome::Passed => format!("{open}/>\n"),
        CaseOutcome::Skipped => format!("{open}>\n      <skipped message=\"{reason}\"/>\n    </testcase>\n"),
        CaseOutcome::Error => format!("{open}>\n      <error message=\"{reason}\"/>\n    </testcase>\n"),
        CaseOutcome::Failed => {
            let findings = case.findings();
            let first = findings.first().and_then(|finding| finding.lines().into_iter().next()).unwrap_or_default();
            let text: Vec<String> = findings.iter().flat_map(|finding| finding.lines()).collect();
            format!(
                "{open}>\n      <failure message=\"{}\">{}</failure>\n    </testcase>\n",
                escaped(&first),
                escaped(&text.join("\n"))
            )
        }
    }
}

fn seconds(milliseconds: u64) -> String {
    format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000)
}
