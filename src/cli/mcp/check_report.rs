//! Text report of `toolgate mcp check`: facts, findings by group and rule, the provider matrix, and the summary.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::cli::output::Output;
use crate::cli::paint::Paint;
use crate::cli::table;
use crate::cli::text::{count, duration, list, one_line, size};
use crate::lab::check::rules::{self, Group};
use crate::lab::check::{Finding, Fit, Report, Severity, ToolRow};

/// The findings of one rule that are shown; the rest is counted.
const SHOWN: usize = 6;
/// The same for notes.
const SHOWN_NOTES: usize = 2;

/// Prints a report.
pub(super) fn print(report: &Report, out: &mut Output) {
    let (paint, width) = (out.paint(), out.width());
    heading(report, paint).iter().for_each(|line| out.line(line));
    if let Some(failure) = &report.failure {
        out.line(format!("\n{} {}", paint.red("the server could not be checked:"), one_line(failure, 600)));
    }
    for group in Group::ALL {
        let findings: Vec<&Finding> = report.findings.iter().filter(|finding| finding.group == group).collect();
        if findings.is_empty() {
            continue;
        }
        out.line(format!("\n{}", paint.bold(group.title())));
        for same in findings.chunk_by(|a, b| a.rule == b.rule && a.severity == b.severity) {
            rule_lines(same, paint, width).iter().for_each(|line| out.line(line));
        }
    }
    calls(report, paint, out);
    matrix(&report.tools, out);
    out.line(format!("\n{} {}", sign_of_report(report, paint), paint.bold(report.summary())));
}

fn heading(report: &Report, paint: Paint) -> Vec<String> {
    let part = |key: &str| {
        report.server.as_ref().and_then(|server| server.get(key)).and_then(Value::as_str).unwrap_or_default()
    };
    let name = one_line(format!("{} {}", part("name"), part("version")).trim(), 80);
    let name = if name.is_empty() { one_line(&report.target, 80) } else { name };
    let mut facts = Vec::new();
    if !report.revisions.is_empty() {
        facts.push(format!("MCP {}", list(&report.revisions)));
    }
    if report.failure.is_none() {
        facts.push(format!("{}, about {} tokens", count(report.tools.len(), "tool"), report.tokens));
    }
    let mut times = Vec::new();
    let timings = &report.timings;
    times.extend(timings.first_answer_ms.map(|ms| format!("first answer {}", duration(ms))));
    times.extend(timings.list_ms.map(|ms| format!("list {}", duration(ms))));
    times.extend(timings.memory_bytes.map(|bytes| format!("memory {}", size(bytes))));
    let exit = timings.shutdown.as_ref().and_then(|shutdown| shutdown.after_end_of_input_ms);
    times.extend(exit.map(|ms| format!("exit {}", duration(ms))));
    times.push(format!("checked in {}", duration(timings.check_ms)));
    let mut lines = vec![format!("{}  {}", paint.bold(name), facts.join(" · "))];
    lines.push(paint.dim(times.join(" · ")));
    lines
}

/// The findings of one rule: what it is, the places, the remedy and the page.
fn rule_lines(findings: &[&Finding], paint: Paint, width: usize) -> Vec<String> {
    let Some(first) = findings.first() else { return Vec::new() };
    let title = rules::by_id(first.rule).map_or("", |rule| rule.title);
    let mut lines = vec![format!("  {} {}  {}", sign(first.severity, paint), paint.bold(first.rule), paint.dim(title))];
    let most = if first.severity == Severity::Note { SHOWN_NOTES } else { SHOWN };
    for finding in findings.iter().take(most) {
        let place = place(finding);
        let place = if place.is_empty() { String::new() } else { format!("{}: ", paint.cyan(place)) };
        let times = if finding.count > 1 { paint.dim(format!("  ×{}", finding.count)) } else { String::new() };
        lines.push(format!("    {place}{}{times}", one_line(&finding.message, width.max(60) * 2)));
    }
    if findings.len() > most {
        lines.push(format!("    {}", paint.dim(format!("… and {} more (--json shows all)", findings.len() - most))));
    }
    if first.severity > Severity::Note {
        lines.push(format!("    {} {}", paint.green("fix:"), first.remedy));
        if let Some(specification) = &first.specification {
            lines.push(format!("    {}", paint.dim(specification)));
        }
    }
    lines
}

fn place(finding: &Finding) -> String {
    match (&finding.tool, &finding.pointer) {
        (Some(tool), Some(pointer)) if !pointer.is_empty() => {
            format!("{} {}", one_line(tool, 64), one_line(pointer, 80))
        }
        (Some(tool), _) => one_line(tool, 64),
        (None, _) => String::new(),
    }
}

fn sign(severity: Severity, paint: Paint) -> String {
    match severity {
        Severity::Error => paint.red("✗"),
        Severity::Warning => paint.yellow("!"),
        Severity::Note => paint.dim("·"),
    }
}

fn sign_of_report(report: &Report, paint: Paint) -> String {
    if report.failure.is_some() || report.counts.errors > 0 {
        paint.red("✗")
    } else if report.counts.warnings > 0 {
        paint.yellow("!")
    } else {
        paint.green("✓")
    }
}

fn calls(report: &Report, paint: Paint, out: &mut Output) {
    let Some(calls) = &report.calls else { return };
    let succeeded = calls.called.iter().filter(|call| call.succeeded).count();
    out.line(format!("\n{}", paint.bold("Calls made")));
    out.line(format!(
        "  {} with valid arguments, {succeeded} succeeded, {} skipped",
        count(calls.called.len(), "tool"),
        calls.skipped.len()
    ));
    let mut skipped: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (tool, reason) in &calls.skipped {
        skipped.entry(reason).or_default().push(one_line(tool, 64));
    }
    for (reason, tools) in skipped {
        let shown = list(tools.iter().take(SHOWN));
        let more = if tools.len() > SHOWN { format!(" and {} more", tools.len() - SHOWN) } else { String::new() };
        out.line(paint.dim(format!("  skipped {shown}{more}: {}", one_line(reason, 200))));
    }
    for row in &calls.load {
        let errors =
            if row.errors > 0 { format!(", {}", paint.red(count(row.errors, "error"))) } else { String::new() };
        let (tool, at_once) = (one_line(&row.tool, 64), row.concurrency);
        out.line(format!("  {tool}, {at_once:>2} at once: p50 {} ms, p99 {} ms{errors}", row.p50_ms, row.p99_ms));
    }
}

/// The tools that a provider does not accept as they are.
fn matrix(tools: &[ToolRow], out: &mut Output) {
    let Some(first) = tools.iter().find(|tool| !tool.providers.is_empty()) else { return };
    let paint = out.paint();
    out.line(format!("\n{}  {}", paint.bold("Providers"), paint.dim("✓ as it is, ~ with losses, ✗ refused")));
    let headings: Vec<&str> =
        ["TOOL", "TOKENS"].into_iter().chain(first.providers.iter().map(|cell| cell.provider)).collect();
    let rows = tools.iter().filter(|tool| !tool.providers.is_empty()).map(|tool| {
        let cells = tool.providers.iter().map(|cell| match cell.fit {
            Fit::Whole => "✓".to_owned(),
            Fit::Lossy => "~".to_owned(),
            Fit::Refused => "✗".to_owned(),
        });
        [one_line(&tool.name, 48), tool.tokens.to_string()].into_iter().chain(cells).collect::<Vec<_>>()
    });
    table::print(&headings, rows, out);
}
