//! Names of tools, at three levels: the specification, the length that clients cope with, and model providers.

use std::collections::BTreeMap;

use serde_json::Value;

use super::tool_judge::ToolJudge;
use crate::check::context::Session;
use crate::check::finding::Findings;
use crate::check::rules::{Severity, tools as rules};

const LONGEST: usize = 128;
const LONGEST_FOR_PROVIDERS: usize = 64;

/// Judges the name of a tool.
pub(super) fn judge(judge: &ToolJudge<'_>) {
    let Some(name) = judge.tool.get("name").and_then(Value::as_str) else { return };
    let length = name.chars().count();
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let strange: Vec<String> =
        name.chars().filter(|c| !is_allowed(*c)).map(|c| format!("`{}`", c.escape_debug())).collect();
    if name.is_empty() {
        judge.add(
            judge.session.finding(&rules::TOOL_NAME_INVALID, "the name is empty").at("/name").severity(Severity::Error),
        );
    } else if let Some(first) = strange.first() {
        judge.report(
            &rules::TOOL_NAME_INVALID,
            "/name",
            format!("the name has {first}; allowed are letters, digits, `_`, `-` and `.`"),
        );
    } else if name.contains('.') {
        judge.report(&rules::TOOL_NAME_NOT_PORTABLE, "/name", "the name has a dot, which OpenAI and Anthropic refuse");
    }
    if length > LONGEST_FOR_PROVIDERS {
        let beyond = if length > LONGEST { format!(", and the specification {LONGEST}") } else { String::new() };
        judge.report(
            &rules::TOOL_NAME_TOO_LONG,
            "/name",
            format!("the name has {length} characters; providers accept {LONGEST_FOR_PROVIDERS}{beyond}"),
        );
    }
}

/// Reports names that occur twice.
pub(super) fn duplicates(session: &Session, findings: &Findings, tools: &[Value]) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for name in tools.iter().filter_map(|tool| tool.get("name")?.as_str()) {
        *counts.entry(name).or_default() += 1;
    }
    for (name, count) in counts.into_iter().filter(|(_, count)| *count > 1) {
        let text = format!("{count} tools have this name");
        findings.add(session.finding(&rules::TOOL_DUPLICATE, text).tool(name).at("/name"));
    }
}
