//! SARIF 2.1.0 report, for code scanning. Findings of a server have no file, so they are attached to one that the caller
//! names.

use serde_json::{Value, json};

use crate::check::report::Report;
use crate::check::rules::{Rule, all, pages};

/// The report as SARIF. `file` is the path in the repository to which findings are attached.
pub fn sarif(report: &Report, file: &str) -> Value {
    let used: Vec<&Rule> = all().filter(|rule| report.findings.iter().any(|finding| finding.rule == rule.id)).collect();
    let rules: Vec<Value> = used.iter().map(|rule| descriptor(rule)).collect();
    let results: Vec<Value> = report
        .findings
        .iter()
        .map(|finding| {
            let place = finding.place();
            let said = if place.is_empty() { String::new() } else { format!("{place}: ") };
            json!({
                "ruleId": finding.rule,
                "ruleIndex": used.iter().position(|rule| rule.id == finding.rule),
                "level": finding.severity.as_str(),
                "message": {"text": format!("{said}{}. {}", finding.message, finding.remedy)},
                "locations": [{
                    "physicalLocation": {"artifactLocation": {"uri": file}, "region": {"startLine": 1}},
                    "logicalLocations": [{"name": finding.tool, "fullyQualifiedName": place}],
                }],
                "partialFingerprints": {"toolgate/v1": finding.fingerprint()},
            })
        })
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "toolgate mcp check", "version": env!("CARGO_PKG_VERSION"),
                "informationUri": "https://github.com/toolgate/toolgate", "rules": rules}},
            "results": results,
        }],
    })
}

fn descriptor(rule: &Rule) -> Value {
    json!({
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": rule.fix},
        "helpUri": pages::address(rule),
        "defaultConfiguration": {"level": rule.severity.as_str()},
    })
}
