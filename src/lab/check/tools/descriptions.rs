//! Descriptions of tools and parameters: missing, too long, the same twice, and instructions hidden in them.

use std::collections::BTreeMap;

use serde_json::Value;
use toolgate_core::tool::needs_escaping;

use super::tool_judge::ToolJudge;
use super::walk;
use crate::check::context::Session;
use crate::check::finding::{Findings, one_line};
use crate::check::rules::tools as rules;

/// Longer descriptions cost more than they explain, in characters.
const LONGEST: usize = 8_000;

/// Phrases with which malicious servers address the model. Each is specific enough to have no place in a description.
const COMMANDS: [&str; 22] = [
    "ignore previous instructions",
    "ignore all previous",
    "ignore all prior",
    "ignore prior instructions",
    "ignore any previous",
    "ignore the above instructions",
    "disregard previous",
    "disregard all previous",
    "override your instructions",
    "<important>",
    "<system>",
    "<secret>",
    "<instructions>",
    "do not tell the user",
    "don't tell the user",
    "never tell the user",
    "without telling the user",
    "do not inform the user",
    "do not mention this to the user",
    "hide this from the user",
    "~/.ssh/",
    "id_rsa",
];

/// Judges the descriptions of a tool.
pub(super) fn judge(judge: &ToolJudge<'_>) {
    let description = judge.tool.get("description").and_then(Value::as_str).unwrap_or_default();
    let is_name = description.trim().eq_ignore_ascii_case(judge.name);
    if description.trim().is_empty()
        && judge.tool.get("description").is_none_or(|value| value.is_string() || value.is_null())
    {
        judge.report(&rules::DESCRIPTION_MISSING, "/description", "the tool has no description");
    } else if is_name {
        judge.report(&rules::DESCRIPTION_MISSING, "/description", "the description repeats the name");
    }
    let length = description.chars().count();
    if length > LONGEST {
        judge.report(&rules::DESCRIPTION_TOO_LONG, "/description", format!("the description has {length} characters"));
    }
    instructions(judge, "/description", description);
    if let Some(schema) = judge.tool.get("inputSchema") {
        walk::each_schema(schema, "/inputSchema", &mut |place| {
            let text = place.schema.get("description").and_then(Value::as_str).unwrap_or_default();
            instructions(judge, &format!("{}/description", place.pointer), text);
        });
    }
}

fn instructions(judge: &ToolJudge<'_>, pointer: &str, text: &str) {
    let lower = text.to_lowercase().replace('’', "'");
    let lower = lower.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some(phrase) = COMMANDS.iter().find(|phrase| lower.contains(*phrase)) {
        judge.report(
            &rules::DESCRIPTION_INSTRUCTIONS,
            pointer,
            format!("the text has `{phrase}`: {}", excerpt(&lower, phrase)),
        );
        return;
    }
    let hidden = text.chars().filter(|c| is_hidden(*c)).count();
    if hidden > 0 {
        let first = text.chars().find(|c| is_hidden(*c)).map(|c| format!("U+{:04X}", u32::from(c))).unwrap_or_default();
        judge.report(
            &rules::DESCRIPTION_INSTRUCTIONS,
            pointer,
            format!("the text has {hidden} invisible characters, the first is {first}"),
        );
    }
}

/// Whether a character is invisible and no part of a script or an emoji.
fn is_hidden(c: char) -> bool {
    let is_joiner = matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe0f}' | '\u{ad}');
    needs_escaping(c) && !c.is_whitespace() && !is_joiner && !c.is_control()
}

fn excerpt(text: &str, phrase: &str) -> String {
    let at = text.find(phrase).unwrap_or_default();
    let start = text.char_indices().map(|(index, _)| index).rfind(|index| *index + 30 <= at).unwrap_or_default();
    format!("`{}`", one_line(text.get(start..).unwrap_or_default(), 100))
}

/// Reports tools with the same description.
pub(super) fn duplicates(session: &Session, findings: &Findings, tools: &[Value]) {
    let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for tool in tools {
        let text = |member: &str| tool.get(member).and_then(Value::as_str);
        if let (Some(name), Some(description)) =
            (text("name"), text("description").filter(|text| !text.trim().is_empty()))
        {
            names.entry(description.trim()).or_default().push(name);
        }
    }
    for mut same in names.into_values().filter(|names| names.len() > 1) {
        same.dedup();
        if let [first, rest @ ..] = same.as_slice()
            && !rest.is_empty()
        {
            let text = format!("the same description as {}", rest.join(", "));
            findings.add(session.finding(&rules::DESCRIPTION_DUPLICATE, text).tool(first).at("/description"));
        }
    }
}
