//! Change that a call made to its file, folded to a few lines: from the texts of the file before and after the call if they
//! are known, or else as the arguments say.

use serde_json::{Map, Value};

use super::argument_lines::{DifferenceLine, STEP, difference, marked, visible};
use super::file_texts::FileTexts;
use super::paint::Paint;
use super::text::{count, end_of_line};
use super::wrap::cut;
use crate::core::tool::escape_untrusted;
use crate::core::tool::file_change::{changed_file, changes, changes_file, content_after, new_content};

/// How many lines of a change are shown, and how many unchanged lines around it.
const SHOWN: usize = 8;
const CONTEXT: usize = 1;

const UNCHANGED: &str = " on this machine did not change; the call says:";

/// How the change is shown.
pub(super) struct Look<'a> {
    pub(super) columns: usize,
    pub(super) paint: Paint,
    /// The command that shows the whole call.
    pub(super) whole: Option<&'a str>,
    /// Whether the person has seen the change before the call: then only what differs from that is shown.
    pub(super) is_seen: bool,
}

/// The lines of the change. If the file has another content afterwards than the arguments say, or they do not say it, a line
/// says so: servers match the text of an edit in their own ways. Empty for other calls, and for a dry run, which changes
/// nothing.
pub(super) fn folded_change(arguments: &Map<String, Value>, texts: Option<&FileTexts>, look: &Look<'_>) -> Vec<String> {
    if !changes_file(arguments) {
        return Vec::new();
    }
    // A file of this machine that did not change may not be that of the server.
    let changed = texts.filter(|texts| texts.before != texts.after);
    let foreseen = texts.and_then(|texts| content_after(arguments, &texts.before));
    let is_as_said = foreseen.is_some() && foreseen.as_deref() == texts.map(|texts| texts.after.as_str());
    let heading = match (changed, foreseen) {
        _ if is_as_said => None,
        // An edit that fits the present file in a way of the server, or a call that adds to the file.
        (Some(_), None) => Some("changed in the file:".to_owned()),
        (Some(texts), Some(_)) => {
            let content = new_content(arguments).map(|(_, content)| content.trim_end());
            let is_added = content.is_some_and(|content| !content.is_empty() && texts.after.contains(content));
            let otherwise =
                if is_added { "changed in the file:" } else { "! the file changed otherwise than the call says:" };
            Some(otherwise.to_owned())
        }
        (None, _) if is_edit(arguments) && texts.is_some_and(|texts| !texts.before.is_empty()) => {
            let file = changed_file(arguments).map(escape_untrusted).unwrap_or_default();
            let room = look.columns.saturating_sub(UNCHANGED.len() + 2);
            Some(format!("! {}{UNCHANGED}", end_of_line(&file, room)))
        }
        (None, _) => None,
    };
    if look.is_seen && heading.is_none() {
        return Vec::new();
    }
    let lines: Vec<DifferenceLine> = match changed {
        Some(texts) => difference(&texts.before, &texts.after, CONTEXT),
        None if is_as_said && texts.is_some_and(|texts| !texts.after.is_empty()) => {
            vec![(None, "unchanged".to_owned())]
        }
        None => changes(arguments).flat_map(said).collect(),
    };
    let hidden = lines.len().saturating_sub(SHOWN);
    let shown = lines.into_iter().take(SHOWN).map(|(tag, line)| {
        let mark = if tag.is_some() { STEP.len() } else { 0 };
        marked(tag, &cut(&line, look.columns.saturating_sub(mark)), look.paint)
    });
    let whole = look.whole.map(|whole| format!(": {whole}")).unwrap_or_default();
    let more = (hidden > 0).then(|| look.paint.dim(format!("… {}{whole}", count(hidden, "more line"))));
    let heading =
        heading.map(|line| if line.starts_with('!') { look.paint.yellow(line) } else { look.paint.dim(line) });
    heading.into_iter().chain(shown).chain(more).collect()
}

fn is_edit(arguments: &Map<String, Value>) -> bool {
    changes(arguments).any(|(before, _)| before.is_some())
}

/// A change as the call says it. A new content has no marks of a difference.
fn said((before, after): (Option<&str>, &str)) -> Vec<DifferenceLine> {
    match before {
        Some(before) => difference(before, after, CONTEXT),
        None => after.lines().map(|line| (None, format!("| {}", visible(line)))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn look(is_seen: bool) -> Look<'static> {
        Look { columns: 60, paint: Paint::Plain, whole: Some("/show 2"), is_seen }
    }

    fn change(texts: Option<(&str, &str)>, arguments: &Value, look: &Look<'_>) -> Vec<String> {
        let texts = texts.map(|(before, after)| FileTexts { before: before.to_owned(), after: after.to_owned() });
        folded_change(arguments.as_object().unwrap(), texts.as_ref(), look)
    }

    #[test]
    fn a_dry_run_is_no_change() {
        let edit = json!({"path": "a", "edits": [{"oldText": "x", "newText": "y"}], "dryRun": true});
        assert!(change(None, &edit, &look(false)).is_empty());
        assert_eq!(change(None, &json!({"to": "kim", "text": "Hello"}), &look(false)), [] as [&str; 0]);
    }

    #[test]
    fn a_change_is_folded_to_a_few_lines_of_the_terminal() {
        let folded = |arguments: Value| change(None, &arguments, &Look { columns: 10, ..look(false) });
        let edit = json!({"path": "a", "old_string": "a\nb\nc\nd", "new_string": "a\nb\nC\nd"});
        assert_eq!(folded(edit), ["  b", "- c", "+ C", "  d"]);
        let edits = json!({"path": "a", "edits": [{"oldText": "x", "newText": "y"}, {"oldText": "1", "newText": ""}]});
        assert_eq!(folded(edits), ["- x", "+ y", "- 1"]);
        let written = folded(json!({"path": "a", "content": format!("山山山山山山\n{}", "\u{202e}\n".repeat(12))}));
        assert_eq!((written[0].as_str(), written[1].as_str(), written.len()), ("| 山山山…", "| \\u{202e}", 9));
        assert_eq!(written[8], "… 5 more lines: /show 2");
    }

    #[test]
    fn a_written_file_is_compared_with_its_former_text() {
        let content = json!({"path": "a", "content": "one\nTwo\n"});
        let after = |before: &str| change(Some((before, "one\nTwo\n")), &content, &look(false));
        assert_eq!(after("one\ntwo\n"), ["  one", "- two", "+ Two"]);
        assert_eq!(after(""), ["+ one", "+ Two"]);
        assert_eq!(after("one\nTwo\n"), ["unchanged"]);
        let empty = json!({"path": "a", "content": ""});
        assert!(change(Some(("", "")), &empty, &look(false)).is_empty(), "a new file without a line");
    }

    #[test]
    fn a_file_that_changed_otherwise_than_the_call_says_is_shown_as_it_is() {
        let edit = json!({"path": "a", "edits": [{"oldText": "if x:\n    y()", "newText": "if x:\n    z()"}]});
        let before = "def f():\n        if x:\n            y()\n";
        let loose = "def f():\n        if x:\n        z()\n";
        let shown = ["changed in the file:", "          if x:", "-             y()", "+         z()"];
        for is_seen in [false, true] {
            assert_eq!(change(Some((before, loose)), &edit, &look(is_seen)), shown);
            let exact = "if x:\n    y()\n";
            for present in [exact, before] {
                let unchanged = change(Some((present, present)), &edit, &look(is_seen));
                assert_eq!(unchanged[0], "! a on this machine did not change; the call says:");
            }
            let other = change(Some((exact, "if x:\n  z()\n")), &edit, &look(is_seen));
            assert_eq!(other[0], "! the file changed otherwise than the call says:");
        }
        let append = json!({"path": "a", "content": "two\n"});
        assert_eq!(
            change(Some(("one\n", "one\ntwo\n")), &append, &look(false)),
            ["changed in the file:", "  one", "+ two"]
        );
        let create = json!({"path": "a", "old_string": "", "new_string": "one\n"});
        assert_eq!(change(Some(("", "one\n")), &create, &look(true)), [] as [&str; 0]);
        let log = json!({"path": "a", "before": "2026-01-01", "after": "2025-01-01"});
        assert_eq!(change(Some(("x\n", "x\n")), &log, &look(true)), [] as [&str; 0], "a call that only reads");
        let exact = "if x:\n    y()\n";
        let as_said = |is_seen| change(Some((exact, "if x:\n    z()\n")), &edit, &look(is_seen));
        assert_eq!(as_said(false), ["  if x:", "-     y()", "+     z()"]);
        assert_eq!(as_said(true), [] as [&str; 0], "the question has shown it");
    }
}
