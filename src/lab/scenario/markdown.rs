//! Markdown report, for a pull request: a table of the cases, then the unmet expectations and the waterfall of each.

use super::report::{Attempt, CaseOutcome, CaseReport, Counts, TestReport};
use super::timeline::waterfall;

/// The report as Markdown.
pub fn markdown(report: &TestReport) -> String {
    let Counts { passed, failed, skipped, errors } = report.counts();
    let mut text = format!(
        "## MCP scenarios: {passed} passed, {failed} failed, {skipped} skipped, {errors} with an error\n\n\
         | | case | turns | calls | tokens | time |\n|---|---|--:|--:|--:|--:|\n"
    );
    for case in &report.cases {
        text.push_str(&row(case));
    }
    for case in &report.cases {
        text.push_str(&details(case));
    }
    text
}

fn row(case: &CaseReport) -> String {
    let title = cell(&case.title);
    let number = |of: fn(&Attempt) -> String| case.attempts.first().map(of).unwrap_or_default();
    let rate = match case.attempts.len() {
        0 | 1 => String::new(),
        all => format!(" ({} of {all} runs)", case.passed_attempts()),
    };
    format!(
        "| {} | {title}{rate} | {} | {} | {} | {} ms |\n",
        word(case.outcome),
        number(|attempt| attempt.turns.to_string()),
        number(|attempt| attempt.calls.to_string()),
        number(|attempt| attempt.tokens.to_string()),
        case.duration_ms
    )
}

fn details(case: &CaseReport) -> String {
    let shown = case.attempts.iter().find(|attempt| !attempt.passed).or(case.attempts.first());
    let mut text = format!("\n<details><summary>{}: {}</summary>\n\n", word(case.outcome), html(&case.title));
    if let Some(reason) = &case.reason {
        text.push_str(&format!("{}\n\n", html(reason)));
    }
    if let Some(attempt) = shown {
        let lines: Vec<String> = attempt.findings.iter().flat_map(|finding| finding.lines()).collect();
        if !lines.is_empty() {
            text.push_str(&fenced(&lines));
        }
        text.push_str(&fenced(&waterfall(&attempt.steps)));
    }
    text + "</details>\n"
}

/// A code block whose fence is longer than any in its text.
fn fenced(lines: &[String]) -> String {
    let text = lines.join("\n");
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{text}\n{fence}\n\n")
}

fn word(outcome: CaseOutcome) -> &'static str {
    match outcome {
        CaseOutcome::Passed => "✅ passed",
        CaseOutcome::Failed => "❌ failed",
        CaseOutcome::Skipped => "⏭ skipped",
        CaseOutcome::Error => "⚠ error",
    }
}

fn cell(text: &str) -> String {
    html(text).replace('|', "\\|").replace('\n', " ")
}

fn html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
