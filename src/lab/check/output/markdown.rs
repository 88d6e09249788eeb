//! Markdown report, for a comment in a pull request.

use std::fmt::Write as _;

use crate::check::finding::Finding;
use crate::check::report::Report;
use crate::check::rules::Severity;
use crate::check::tools::Fit;

/// The most findings of a comment; the rest is counted.
const MOST: usize = 60;

/// The report as Markdown.
pub fn markdown(report: &Report) -> String {
    let sign = if report.failure.is_some() || report.counts.errors > 0 {
        "❌"
    } else if report.counts.warnings > 0 {
        "⚠️"
    } else {
        "✅"
    };
    let mut text = format!("### {sign} MCP check: {}\n\n", report.summary());
    let _ = writeln!(text, "{}\n", facts(report).join(" · "));
    if let Some(failure) = &report.failure {
        let _ = writeln!(text, "The server could not be checked: {}\n", cell(failure));
    }
    let serious: Vec<&Finding> = report.findings.iter().filter(|finding| finding.severity > Severity::Note).collect();
    table(&mut text, &serious);
    let notes: Vec<&Finding> = report.findings.iter().filter(|finding| finding.severity == Severity::Note).collect();
    if !notes.is_empty() {
        let _ = writeln!(text, "<details><summary>{} notes</summary>\n", notes.len());
        table(&mut text, &notes);
        text.push_str("</details>\n");
    }
    matrix(&mut text, report);
    text
}

fn facts(report: &Report) -> Vec<String> {
    let mut facts = Vec::new();
    if let Some(server) = &report.server {
        let part = |key: &str| server.get(key).and_then(serde_json::Value::as_str).unwrap_or_default();
        facts.push(format!("`{} {}`", cell(part("name")), cell(part("version"))));
    }
    if !report.revisions.is_empty() {
        facts.push(report.revisions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "));
    }
    facts.push(format!("{} tools, about {} tokens", report.tools.len(), report.tokens));
    if let Some(first) = report.timings.first_answer_ms {
        facts.push(format!("first answer after {first} ms"));
    }
    facts
}

fn table(text: &mut String, findings: &[&Finding]) {
    if findings.is_empty() {
        return;
    }
    text.push_str("| | rule | where | what | fix |\n|---|---|---|---|---|\n");
    for finding in findings.iter().take(MOST) {
        let place = [finding.tool.as_deref(), finding.pointer.as_deref()]
            .into_iter()
            .flatten()
            .map(|part| format!("`{}`", cell(part)));
        let place = place.collect::<Vec<_>>().join(" ");
        let times = if finding.count > 1 { format!(" (×{})", finding.count) } else { String::new() };
        let Finding { severity, rule, page, message, remedy, .. } = finding;
        let _ =
            writeln!(text, "| {severity} | [{rule}]({page}) | {place} | {}{times} | {} |", cell(message), cell(remedy));
    }
    if findings.len() > MOST {
        let _ = writeln!(text, "\n… and {} more", findings.len() - MOST);
    }
    text.push('\n');
}

fn matrix(text: &mut String, report: &Report) {
    let Some(first) = report.tools.iter().find(|tool| !tool.providers.is_empty()) else { return };
    let names: Vec<&str> = first.providers.iter().map(|cell| cell.provider).collect();
    let _ = writeln!(text, "<details><summary>Provider matrix</summary>\n\n| tool | tokens | {} |", names.join(" | "));
    let _ = writeln!(text, "|---|--:|{}", "---|".repeat(names.len()));
    for tool in &report.tools {
        let cells = tool.providers.iter().map(|cell| match cell.fit {
            Fit::Whole => "✓",
            Fit::Lossy => "~",
            Fit::Refused => "✗",
        });
        let _ =
            writeln!(text, "| `{}` | {} | {} |", cell(&tool.name), tool.tokens, cells.collect::<Vec<_>>().join(" | "));
    }
    text.push_str("\n✓ as it is, ~ with losses, ✗ refused; tokens are an estimate\n</details>\n");
}

/// Text of a server in a cell: on one line, without markup of its own.
fn cell(text: &str) -> String {
    let escaped = text.replace('|', "\\|").replace('<', "&lt;").replace('\n', " ");
    // A mention in a comment would notify a person.
    escaped.replace('@', "@\u{2060}")
}
