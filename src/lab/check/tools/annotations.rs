//! Annotations of tools: types, contradictions, and tools without any.

use serde_json::Value;

use super::tool_judge::ToolJudge;
use crate::check::context::Session;
use crate::check::finding::{Findings, one_line};
use crate::check::official::Official;
use crate::check::revision::Revision;
use crate::check::rules::tools as rules;

/// First words of names that change something, whatever the tool is about.
const CHANGING: [&str; 13] = [
    "delete",
    "remove",
    "drop",
    "destroy",
    "purge",
    "erase",
    "write",
    "update",
    "insert",
    "rename",
    "overwrite",
    "kill",
    "uninstall",
];
/// First words of names that only read.
const READING: [&str; 6] = ["get", "list", "read", "search", "find", "show"];

/// Judges the annotations of a tool.
pub(super) fn judge(judge: &ToolJudge<'_>) {
    let Some(annotations) = judge.tool.get("annotations").filter(|annotations| !annotations.is_null()) else { return };
    let revision = judge.session.revision.max(Revision::V2025March);
    for violation in Official::of(revision).violations("ToolAnnotations", annotations) {
        let text = format!("the annotation has a wrong type: {}", violation.message);
        judge.report(&rules::ANNOTATION_TYPE, format!("/annotations{}", violation.pointer), text);
    }
    let hint = |name: &str| annotations.get(name).and_then(Value::as_bool);
    let (read_only, destructive) = (hint("readOnlyHint"), hint("destructiveHint"));
    if (read_only, destructive) == (Some(true), Some(true)) {
        judge.report(
            &rules::ANNOTATION_CONTRADICTION,
            "/annotations",
            "readOnlyHint and destructiveHint are both true",
        );
    }
    let first = first_word(judge.name);
    if read_only == Some(true) && CHANGING.contains(&first.as_str()) {
        judge.report(
            &rules::ANNOTATION_NAME_MISMATCH,
            "/annotations/readOnlyHint",
            format!("the name begins with `{first}`, and readOnlyHint is true"),
        );
    } else if destructive == Some(true) && read_only != Some(true) && READING.contains(&first.as_str()) {
        judge.report(
            &rules::ANNOTATION_NAME_MISMATCH,
            "/annotations/destructiveHint",
            format!("the name begins with `{first}`, and destructiveHint is true"),
        );
    }
}

/// The first word of a name in snake case, kebab case or camel case.
fn first_word(name: &str) -> String {
    let mut word = String::new();
    for c in name.chars() {
        if !c.is_ascii_alphabetic()
            || (c.is_ascii_uppercase() && word.chars().last().is_some_and(|last| last.is_ascii_lowercase()))
        {
            break;
        }
        word.push(c);
    }
    word.to_ascii_lowercase()
}

/// Reports the tools without annotations, all in one finding.
pub(super) fn missing(session: &Session, findings: &Findings, tools: &[Value]) {
    if session.revision < Revision::V2025March {
        return;
    }
    let has_hint = |tool: &&Value| {
        let annotations = tool.get("annotations").and_then(Value::as_object);
        annotations.is_some_and(|annotations| annotations.keys().any(|key| key.ends_with("Hint")))
    };
    let names: Vec<&str> =
        tools.iter().filter(|tool| !has_hint(tool)).filter_map(|tool| tool.get("name")?.as_str()).collect();
    if !names.is_empty() {
        let text =
            format!("{} of {} tools have no hints: {}", names.len(), tools.len(), one_line(&names.join(", "), 200));
        findings.add(session.finding(&rules::ANNOTATIONS_MISSING, text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_ends_where_the_next_begins() {
        for name in ["delete_file", "delete-file", "deleteFile", "Delete.file", "delete"] {
            assert_eq!(first_word(name), "delete", "{name}");
        }
        assert_eq!(first_word("deleted_items"), "deleted");
    }
}
