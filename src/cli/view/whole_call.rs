//! A call in full, for a person: its arguments, and its result without anything left out. The short form is in `show`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::DisplaySettings;
use super::result_forms::ShownForms;
use super::show::CallState;
use super::summary::{Pause, pauses};
use super::words::{kept_line, media_line};
use crate::cli::argument_lines::{PresentFile, argument_lines};
use crate::cli::text::{block, gutter};
use crate::core::blob::BlobHandle;
use crate::core::chat::Part;
use crate::core::run::{CallHistory, CallVerdict, DecisionKind};
use crate::core::tool::{Arguments, Outcome, StoredContent, escape_untrusted};

/// A call with what its result has outside the journal.
#[derive(Debug)]
pub(in crate::cli) struct WholeCall<'a> {
    pub(in crate::cli) call: &'a CallHistory<'a>,
    /// Whether its run has ended.
    pub(in crate::cli) is_over: bool,
    /// The number of events that its run has from another one.
    pub(in crate::cli) copied: u64,
    /// The stored texts of which the result has excerpts.
    pub(in crate::cli) stored: BTreeMap<BlobHandle, String>,
}

impl WholeCall<'_> {
    /// The lines. Those of the arguments and of the result are marked or indented, so that they cannot pass for others.
    pub(in crate::cli) fn draw(&self, look: DisplaySettings) -> Vec<String> {
        let (call, paint) = (self.call, look.paint);
        let CallState { mark, about } = CallState::of(call, self.is_over, self.copied, paint);
        let (name, id) = (escape_untrusted(&call.requested.name), escape_untrusted(call.requested.id.as_str()));
        let mut lines = vec![format!("{mark} {}  {}  {}", paint.bold(name), paint.dim(id), paint.dim(about))];
        let arguments = |arguments: &Arguments| {
            let lines = argument_lines(arguments, PresentFile::Unread, paint);
            lines.into_iter().map(|line| format!("  {line}")).collect::<Vec<_>>()
        };
        if let Some(edit) = call.edit() {
            lines.push(paint.bold("arguments that the model wrote"));
            lines.extend(arguments(&call.requested.arguments));
            lines.push(paint.bold(format!("arguments, edited by {}", escape_untrusted(&edit.by))));
        } else {
            lines.push(paint.bold("arguments"));
        }
        lines.extend(arguments(call.arguments()));
        lines.extend(pauses(call).iter().flat_map(Pause::draw).map(|line| paint.dim(line)));
        let denial = call.decision().filter(|decision| decision.answer == DecisionKind::Deny);
        let reason = denial.and_then(|denial| denial.reason.as_deref()).filter(|reason| !reason.is_empty());
        lines.extend(reason.map(|reason| format!("reason: {}", block(reason))));
        match (call.outcome(), call.verdict()) {
            (Some((_, outcome)), _) => lines.extend(self.result(&outcome, look)),
            (None, Some(CallVerdict::Rejected { message, .. })) if !call.is_deferred() => {
                lines.push(paint.bold("what the model read"));
                lines.extend(text_lines(message));
            }
            (None, _) => {}
        }
        lines
    }

    fn result(&self, outcome: &Outcome, look: DisplaySettings) -> Vec<String> {
        let paint = look.paint;
        let mut lines = vec![paint.bold(if outcome.is_error() { "error" } else { "result" })];
        let (forms, structured) = match outcome {
            Outcome::Returned(output) => (ShownForms::of(output), output.structured.as_ref()),
            Outcome::Failed(_) | Outcome::Unknown => (ShownForms { has_text: true, has_structured: false }, None),
        };
        let content = outcome.content();
        for part in &content {
            match part {
                Part::Text { text } if forms.has_text => lines.extend(text_lines(self.whole(text, outcome))),
                Part::Resource { uri, text: Some(text), .. } => {
                    lines.push(format!("  resource {}", escape_untrusted(uri)));
                    lines.extend(text_lines(self.whole(text, outcome)));
                }
                Part::Text { .. }
                | Part::Image(_)
                | Part::Audio(_)
                | Part::Resource { .. }
                | Part::Reasoning { .. }
                | Part::ToolUse { .. }
                | Part::ToolResult { .. } => {}
            }
        }
        if let Some(structured) = structured.filter(|_| forms.has_structured) {
            lines.extend(text_lines(&format!("{structured:#}")));
        }
        let media = content.iter().filter_map(Part::as_media);
        lines.extend(media.map(|media| format!("  {}", media_line(&media, None))));
        let unread = outcome.stored().iter().filter(|kept| !self.stored.contains_key(&kept.handle));
        lines.extend(unread.map(|kept| format!("  {}", kept_line(kept))));
        lines.extend(outcome.problems().iter().map(|problem| {
            let (path, message) = (escape_untrusted(&problem.path), block(&problem.message));
            format!("  {} {path}: {message}", paint.yellow("!"))
        }));
        lines
    }

    /// The stored text of which this is the excerpt, or the text itself. An excerpt names its handle.
    fn whole<'t>(&'t self, text: &'t str, outcome: &Outcome) -> &'t str {
        let is_named = |kept: &&StoredContent| text.contains(&kept.handle.to_string());
        let kept = outcome.stored().iter().find(is_named);
        kept.and_then(|kept| self.stored.get(&kept.handle)).map_or(text, String::as_str)
    }
}

/// The lines of a text, each marked. JSON is indented, unless that would change more than white space.
fn text_lines(text: &str) -> Vec<String> {
    let is_same = |value: &Value| {
        let (value, text) = (value.to_string(), text.chars().filter(|c| !c.is_whitespace()));
        value.chars().filter(|c| !c.is_whitespace()).eq(text)
    };
    let json = serde_json::from_str::<Value>(text).ok().filter(|value| value.is_object() || value.is_array());
    let lines = match json.filter(is_same) {
        Some(value) => gutter(&format!("{value:#}")),
        None => gutter(text),
    };
    lines.into_iter().map(|line| format!("  {line}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_indented_and_other_text_is_not_changed() {
        assert_eq!(text_lines(r#"{"a": [1]}"#), ["  | {", "  |   \"a\": [", "  |     1", "  |   ]", "  | }"]);
        assert_eq!(text_lines("12345"), ["  | 12345"]);
        assert_eq!(text_lines(r#"{"a":1.10}"#), [r#"  | {"a":1.10}"#], "a digit would be lost");
        assert_eq!(text_lines("a\u{1b}[2J\n\n  b"), ["  | a\\u{1b}[2J", "  | ", "  |   b"]);
    }
}
