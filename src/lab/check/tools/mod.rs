//! Judgement of tool definitions: schemas, names, descriptions, annotations, and what model providers accept of them.

mod annotations;
mod defaults;
mod descriptions;
mod names;
mod providers;
mod refs;
mod row;
mod schemas;
mod task_support;
mod tokens;
mod tool_judge;
mod walk;

use serde_json::Value;

pub use row::{Fit, ProviderFit, ToolRow};

use tool_judge::ToolJudge;

use super::context::Session;
use super::finding::Findings;
use super::official::Official;
use super::rules::protocol;

/// Judges the tools of a server.
pub(super) fn judge(session: &Session, findings: &Findings, tools: &[Value]) -> Vec<ToolRow> {
    names::duplicates(session, findings, tools);
    descriptions::duplicates(session, findings, tools);
    annotations::missing(session, findings, tools);
    let rows: Vec<ToolRow> =
        tools.iter().enumerate().map(|(index, tool)| judge_one(session, findings, index, tool)).collect();
    tokens::total(session, findings, &rows);
    rows
}

fn judge_one(session: &Session, findings: &Findings, index: usize, tool: &Value) -> ToolRow {
    let place = format!("#{}", index + 1);
    let name = tool.get("name").and_then(Value::as_str).unwrap_or(&place);
    let judge = ToolJudge { session, findings, name, tool };
    definition(&judge, index);
    names::judge(&judge);
    descriptions::judge(&judge);
    annotations::judge(&judge);
    task_support::judge(&judge);
    schemas::judge(&judge);
    let providers = providers::judge(&judge);
    ToolRow { name: name.to_owned(), tokens: tokens::estimate(tool), providers }
}

/// Validates the definition against the official schema, except for the members that have rules of their own.
fn definition(judge: &ToolJudge<'_>, index: usize) {
    let own = ["/inputSchema", "/outputSchema", "/annotations"];
    let official = Official::of(judge.session.revision);
    for violation in official.violations("Tool", judge.tool) {
        let is_own = own.iter().any(|member| violation.pointer.starts_with(member));
        if is_own || (violation.pointer.is_empty() && violation.message.contains("inputSchema")) {
            continue;
        }
        let text = format!("tool {} of tools/list: {}", index + 1, violation.message);
        judge.report(&protocol::MESSAGE_INVALID, format!("/tools/{index}{}", violation.pointer), text);
    }
}
