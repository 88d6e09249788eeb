//! Checks of a run against the expectations of its scenario. Pure: the run is a recording.

use serde_json::Value;
use toolgate_validation::SchemaValidator;

use super::call_check::CallCheck;
use super::expect::{Bounds, Expect, ExpectedAnswer};
use super::finding::Finding;
use crate::recording::{JsonPath, Members, Recording};

/// The expectations that a run did not meet, in the order of the file. The judge is not asked here.
pub async fn check(expect: &Expect, run: &Recording) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(status(expect, run));
    findings.extend(CallCheck::new(expect, run).findings());
    findings.extend(numbers(expect, run));
    if let Some(answer) = &expect.answer {
        findings.extend(answer_findings(answer, run).await);
    }
    findings
}

fn status(expect: &Expect, run: &Recording) -> Option<Finding> {
    let expected = expect.status.as_ref().map_or("completed", |status| status.0.as_str());
    let actual = run.end.status.as_str();
    if expected == actual {
        return None;
    }
    let error = run.end.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
    let finding = Finding::new("expect.status", format!("the run ended as `{actual}`{error}"));
    Some(finding.values(expected, actual))
}

fn numbers(expect: &Expect, run: &Recording) -> Vec<Finding> {
    let calls = run.calls().count();
    let errors = run.calls().filter(|call| call.result.is_error()).count();
    let tokens = |used: fn(&toolgate_core::chat::Usage) -> Option<u64>| -> u64 {
        run.turns.iter().filter_map(|turn| used(&turn.usage)).sum()
    };
    let is_known = run.turns.iter().all(|turn| turn.usage.input_tokens.is_some() && turn.usage.output_tokens.is_some());
    let all_tokens = tokens(|usage| usage.input_tokens) + tokens(|usage| usage.output_tokens);
    let within = |name: &str, bounds: Option<Bounds>, number: u64| {
        let bounds = bounds.filter(|bounds| !bounds.admits(number))?;
        Some(Finding::new(format!("expect.{name}"), format!("there were {number}, expected {bounds}")))
    };
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    let unknown = (expect.tokens.is_some() && !is_known)
        .then(|| Finding::new("expect.tokens", "the model did not report the usage of each reply"));
    let known_tokens = expect.tokens.filter(|_| is_known);
    [
        within("call_count", expect.call_count, count(calls)),
        within("errors", expect.errors, count(errors)),
        within("turns", expect.turns, count(run.turns.len())),
        within("tokens", known_tokens, all_tokens),
        unknown,
    ]
    .into_iter()
    .flatten()
    .collect()
}

async fn answer_findings(expected: &ExpectedAnswer, run: &Recording) -> Vec<Finding> {
    let Some(actual) = run.answer() else {
        return vec![Finding::new("expect.answer", "the run has no answer")];
    };
    let text = actual.as_str().map_or_else(|| actual.to_string(), str::to_owned);
    let mut findings = Vec::new();
    for part in expected.contains.0.iter().filter(|part| !text.contains(part.as_str())) {
        let finding = Finding::new("expect.answer.contains", "the answer does not contain the text");
        findings.push(finding.values(part.as_str(), text.as_str()));
    }
    for part in expected.excludes.0.iter().filter(|part| text.contains(part.as_str())) {
        let finding = Finding::new("expect.answer.excludes", "the answer contains the text");
        findings.push(finding.values(part.as_str(), text.as_str()));
    }
    if let Some(equals) = &expected.equals {
        for difference in equals.differences(&actual, Members::Exact, &|_: &JsonPath| false) {
            let finding = Finding::new("expect.answer.equals", "the answer differs").at(difference.path.to_string());
            findings.push(Finding { expected: difference.expected, actual: difference.actual, ..finding });
        }
    }
    if let Some(pattern) = expected.pattern.as_ref().filter(|pattern| !pattern.0.is_match(&text)) {
        let finding = Finding::new("expect.answer.pattern", "the answer does not match the regular expression");
        findings.push(finding.values(pattern.0.as_str(), text.as_str()));
    }
    if let Some(schema) = &expected.schema {
        findings.extend(schema_findings(schema, &actual, &text).await);
    }
    findings
}

async fn schema_findings(schema: &Value, actual: &Value, text: &str) -> Vec<Finding> {
    use toolgate_ports::{InputFindings, ToolInputValidator as _};
    let parsed = match actual {
        Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| actual.clone()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => actual.clone(),
    };
    let problems = match SchemaValidator::new().check_form(schema, &parsed).await {
        InputFindings::Valid => return Vec::new(),
        InputFindings::Invalid(problems) => problems,
    };
    let finding = |problem: &toolgate_core::tool::Problem| {
        let finding = Finding::new("expect.answer.schema", problem.message.clone()).at(problem.path.clone());
        finding.values(problem.rule.as_str(), text)
    };
    problems.iter().map(finding).collect()
}
