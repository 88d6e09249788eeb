//! Tokens of tool definitions. An estimate: tokenizers differ, and providers add their own text.

use serde_json::{Value, json};

use super::row::ToolRow;
use crate::check::context::Session;
use crate::check::finding::Findings;
use crate::check::rules::tools as rules;

/// Bytes of compact JSON that make a token, on average over the tokenizers of the large providers.
const BYTES: usize = 4;
/// A list above this takes a noticeable part of a context window.
const MANY: usize = 12_000;

/// Estimate of the tokens of a definition, as clients declare it to a model.
pub(super) fn estimate(tool: &Value) -> usize {
    let declared = json!({"name": tool.get("name"), "description": tool.get("description"), "input_schema": tool.get("inputSchema")});
    declared.to_string().len().div_ceil(BYTES)
}

/// Reports a list that takes many tokens.
pub(super) fn total(session: &Session, findings: &Findings, rows: &[ToolRow]) {
    let total: usize = rows.iter().map(|row| row.tokens).sum();
    if total > MANY {
        let largest = rows.iter().max_by_key(|row| row.tokens);
        let largest =
            largest.map(|row| format!("; the largest is {} with {}", row.name, row.tokens)).unwrap_or_default();
        let text = format!("{} tools take about {total} tokens of every request{largest} (estimate)", rows.len());
        findings.add(session.finding(&rules::TOKENS_HIGH, text));
    }
}
