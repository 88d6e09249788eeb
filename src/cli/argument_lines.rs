//! Arguments of a call for the person who decides: text as text, an edit as a difference, a file to be written against
//! the file that is there. No value is shortened; a difference leaves out only unchanged lines far from a change.
//! Characters that hide or reverse text are shown as codes. Of a call that runs without a question, the change is shown
//! folded to a few lines.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value};
use similar::{ChangeTag, TextDiff};

use super::paint::Paint;
use super::text::count;
use super::wrap::cut;
use crate::core::tool::file_change::{Edit, changes, changes_file, named_file, new_content};
use crate::core::tool::{Arguments, escape_untrusted};

/// The longest file that a new content is compared with, in bytes.
const MAX_FILE: u64 = 1024 * 1024;
/// How many unchanged lines are shown around a change.
const CONTEXT: usize = 3;
/// How many lines of a change are shown folded, and how many unchanged lines around it.
const FOLDED: usize = 8;
const FOLDED_CONTEXT: usize = 1;
/// How long a comparison may take; after that, it is coarser.
const LONGEST_COMPARISON: Duration = Duration::from_millis(250);
/// How many edits of a call are shown in their file.
const MOST_EDITS: usize = 20;
const STEP: &str = "  ";

/// Whether the new content of a file is compared with the file of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PresentFile {
    /// For the person at the terminal, whose files they are.
    Compared,
    /// For output that may be kept: the file may have secrets that the model never read.
    Unread,
}

/// The arguments, one line or several for each.
pub(super) fn argument_lines(arguments: &Arguments, file: PresentFile, paint: Paint) -> Vec<String> {
    match arguments {
        Arguments::Object(members) if members.is_empty() => vec!["no arguments".to_owned()],
        Arguments::Object(members) => {
            let named = named_file(members);
            let named = named.filter(|_| file == PresentFile::Compared);
            let absent = named.filter(|path| matches!(fs::exists(path), Ok(false))).map(str::to_owned);
            let mut writer =
                Writer { present: named.and_then(FileText::read), edits: 0, absent, paint, lines: Vec::new() };
            writer.members(members, "");
            writer.lines
        }
        Arguments::Malformed(text) => vec![format!("not JSON: {}", escape_untrusted(text))],
    }
}

/// The change of the file that the call names, folded to a few lines: the difference of an edit, or of a new content from
/// the `former` one. If that is not known, the new content has no marks of a difference. `whole` is the command that shows
/// all. Empty for other calls, and for a dry run, which changes nothing.
pub(super) fn folded_change(
    arguments: &Map<String, Value>,
    former: Option<&str>,
    columns: usize,
    paint: Paint,
    whole: Option<&str>,
) -> Vec<String> {
    if !changes_file(arguments) {
        return Vec::new();
    }
    let changed = |(before, after): (Option<&str>, &str)| match before.or(former) {
        Some(before) if before == after && !after.is_empty() => vec![(None, "unchanged".to_owned())],
        Some(before) => difference(before, after, FOLDED_CONTEXT),
        None => after.lines().map(|line| (None, format!("| {}", visible(line)))).collect(),
    };
    let lines: Vec<DifferenceLine> = changes(arguments).flat_map(changed).collect();
    let hidden = lines.len().saturating_sub(FOLDED);
    let shown = lines.into_iter().take(FOLDED);
    let shown = shown.map(|(tag, line)| {
        let mark = if tag.is_some() { STEP.len() } else { 0 };
        marked(tag, &cut(&line, columns.saturating_sub(mark)), paint)
    });
    let whole = whole.map(|whole| format!(": {whole}")).unwrap_or_default();
    shown.chain((hidden > 0).then(|| paint.dim(format!("… {}{whole}", count(hidden, "more line"))))).collect()
}

struct Writer {
    /// The file that the call names, if this machine has it and it may be shown.
    present: Option<FileText>,
    /// The number of edits that were shown in the file.
    edits: usize,
    /// The file that the call names, if this machine has none of this name.
    absent: Option<String>,
    paint: Paint,
    lines: Vec<String>,
}

/// The text of a file, after the edits that were shown.
pub(super) struct FileText {
    path: String,
    text: String,
}

impl Writer {
    fn members(&mut self, members: &Map<String, Value>, margin: &str) {
        let edit = Edit::of(members).filter(|edit| edit.before != edit.after);
        let write = new_content(members);
        for (name, value) in members {
            match (&edit, &write) {
                (Some(edit), _) if name == edit.old => self.edit(edit, margin),
                (Some(edit), _) if name == edit.new => {}
                (None, Some((content, after))) if name == content => self.content(name, after, margin),
                _ => self.value(&label(name), value, margin),
            }
        }
    }

    /// An edit as a difference of its file, or else of its two texts.
    fn edit(&mut self, edit: &Edit<'_>, margin: &str) {
        let Edit { old, new, before, after, replaces_all } = *edit;
        let Some(FileText { path, text }) = self.present.take_if(|_| !before.is_empty() && self.edits < MOST_EDITS)
        else {
            if let Some(path) = &self.absent {
                let shown = escape_untrusted(path);
                // A server may work in another folder than this process.
                let line = match Path::new(path).is_absolute() {
                    true => format!("{margin}! there is no {shown} on this machine"),
                    false => {
                        format!("{margin}! there is no {shown} below this folder; the server may work in another one")
                    }
                };
                self.lines.push(self.paint.yellow(line));
            }
            self.lines.push(format!("{margin}{old} → {new}:"));
            return self.difference(before, after, margin);
        };
        let shown = escape_untrusted(&path);
        self.edits += 1;
        let changed = match text.matches(before).count() {
            1 => Some(text.replacen(before, after, 1)),
            times @ 2.. if replaces_all => {
                self.lines.push(format!("{margin}all {times} places:"));
                Some(text.replace(before, after))
            }
            0 => {
                let line = format!("{margin}! {old} is not in the present {shown} on this machine");
                self.lines.push(self.paint.yellow(line));
                None
            }
            times => {
                let line = format!("{margin}! {old} occurs {times} times in the present {shown} on this machine");
                self.lines.push(self.paint.yellow(line));
                None
            }
        };
        match &changed {
            Some(changed) => {
                let line = text.split(before).next().map_or(1, |head| head.matches('\n').count() + 1);
                self.lines.push(format!("{margin}{old} → {new}, in the present {shown} on this machine, line {line}:"));
                self.difference(&text, changed, margin);
            }
            None => {
                self.lines.push(format!("{margin}{old} → {new}:"));
                self.difference(before, after, margin);
            }
        }
        self.present = Some(FileText { path, text: changed.unwrap_or(text) });
    }

    fn value(&mut self, label: &str, value: &Value, margin: &str) {
        let inner = format!("{margin}{STEP}");
        match value {
            Value::String(text) if is_text(text) => {
                self.lines.push(format!("{margin}{label}:"));
                self.lines.extend(text.split('\n').map(|line| format!("{inner}| {}", visible(line))));
            }
            Value::Object(members) if !members.is_empty() => {
                self.lines.push(format!("{margin}{label}:"));
                self.members(members, &inner);
            }
            Value::Array(items) if items.iter().any(|item| item.is_object() || item.as_str().is_some_and(is_text)) => {
                self.lines.push(format!("{margin}{label}:"));
                for (position, item) in items.iter().enumerate() {
                    self.value(&format!("[{position}]"), item, &inner);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                self.lines.push(format!("{margin}{label}: {}", escape_untrusted(&value.to_string())));
            }
        }
    }

    /// The new content of a file: the differences from the file that this machine has under the name, or the whole
    /// content.
    fn content(&mut self, name: &str, after: &str, margin: &str) {
        let label = label(name);
        match self.present.take() {
            Some(FileText { text, .. }) if text == after => {
                self.lines.push(format!("{margin}{label}: the same as the present file"));
            }
            Some(FileText { path, text }) => {
                let path = escape_untrusted(&path);
                self.lines.push(format!("{margin}{label}, compared with the present {path} on this machine:"));
                self.difference(&text, after, margin);
            }
            None => {
                let is_new = self.absent.as_ref().map(|path| match Path::new(path).is_absolute() {
                    true => ", a new file on this machine",
                    // A server may work in another folder than this process.
                    false => ", a new file if the server works in this folder",
                });
                self.value(&format!("{label}{}", is_new.unwrap_or_default()), &Value::from(after), margin);
            }
        }
    }

    fn difference(&mut self, before: &str, after: &str, margin: &str) {
        let lines = difference_lines(before, after, self.paint).into_iter();
        self.lines.extend(lines.map(|line| format!("{margin}{STEP}{line}")));
    }
}

/// The difference of two texts, with a mark for each line.
pub(super) fn difference_lines(before: &str, after: &str, paint: Paint) -> Vec<String> {
    difference(before, after, CONTEXT).into_iter().map(|(tag, line)| marked(tag, &line, paint)).collect()
}

/// A line of a difference; without a tag, a gap between two groups of changes, or a line of a content.
type DifferenceLine = (Option<ChangeTag>, String);

/// The changed lines, each group with this many unchanged ones around it.
fn difference(before: &str, after: &str, context: usize) -> Vec<DifferenceLine> {
    let difference = TextDiff::configure().timeout(LONGEST_COMPARISON).diff_lines(before, after);
    let mut lines = Vec::new();
    for (position, group) in difference.grouped_ops(context).iter().enumerate() {
        lines.extend((position > 0).then(|| (None, "…".to_owned())));
        let changes = group.iter().flat_map(|operation| difference.iter_changes(operation));
        lines.extend(changes.map(|change| (Some(change.tag()), visible(change.value().trim_end_matches('\n')))));
    }
    lines
}

/// The line with the mark of its tag.
fn marked(tag: Option<ChangeTag>, line: &str, paint: Paint) -> String {
    match tag {
        None => line.to_owned(),
        Some(ChangeTag::Equal) => format!("  {line}"),
        Some(ChangeTag::Delete) => paint.red(format!("- {line}")),
        Some(ChangeTag::Insert) => paint.green(format!("+ {line}")),
    }
}

impl FileText {
    /// The text of the file before a call writes it: empty without a file, `None` if it cannot be read or is too long.
    pub(super) fn former(path: &str) -> Option<String> {
        if matches!(fs::exists(path), Ok(false)) {
            return Some(String::new());
        }
        Self::read(path).map(|file| file.text)
    }

    /// The text of a regular file of moderate size.
    fn read(path: &str) -> Option<Self> {
        // Opening a pipe would wait for a writer.
        fs::metadata(path).ok().filter(|found| found.is_file() && found.len() <= MAX_FILE)?;
        let mut text = String::new();
        let file = fs::File::open(path).ok()?;
        file.take(MAX_FILE).read_to_string(&mut text).ok()?;
        Some(Self { path: path.to_owned(), text })
    }
}

/// Whether the string is easier to read as text than as JSON, which escapes line breaks, quotes and backslashes.
fn is_text(string: &str) -> bool {
    string.contains(['\n', '"', '\\'])
}

/// The name of an argument, in quotation marks unless it is a plain word.
fn label(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '$');
    match !name.is_empty() && name.chars().all(is_plain) {
        true => name.to_owned(),
        false => escape_untrusted(&Value::from(name).to_string()),
    }
}

fn visible(line: &str) -> String {
    escape_untrusted(&line.replace('\t', "    "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::core::tool::file_change::changed_file;

    fn shown(arguments: Value) -> Vec<String> {
        let Value::Object(members) = arguments else { panic!("an object") };
        argument_lines(&Arguments::Object(members), PresentFile::Compared, Paint::Plain)
    }

    #[test]
    fn text_is_shown_as_text_and_other_values_as_json() {
        assert_eq!(
            shown(
                json!({"to": "a\u{202e}b", "lines": "import os\n\tos.exit()\n", "n": 1.5, "deep": {"list": [1, "x"]}})
            ),
            [
                "to: \"a\\u{202e}b\"",
                "lines:",
                "  | import os",
                "  |     os.exit()",
                "  | ",
                "n: 1.5",
                "deep:",
                "  list: [1,\"x\"]"
            ]
        );
        assert_eq!(shown(json!({"command": "git commit -m \"Fix\""})), ["command:", "  | git commit -m \"Fix\""]);
        assert_eq!(shown(json!({})), ["no arguments"]);
        assert_eq!(shown(json!({"a: b\n": null})), ["\"a: b\\n\": null"]);
    }

    #[test]
    fn an_edit_is_shown_as_a_difference() {
        let edit = json!({"path": "/none/a.py", "edits": [{"oldText": "a\nb\nc", "newText": "a\nB\nc"}]});
        assert_eq!(
            shown(edit),
            [
                "path: \"/none/a.py\"",
                "edits:",
                "  [0]:",
                "    ! there is no /none/a.py on this machine",
                "    oldText → newText:",
                "        a",
                "      - b",
                "      + B",
                "        c"
            ]
        );
    }

    #[test]
    fn a_new_file_is_marked_as_new() {
        let label = |path: &str| shown(json!({"path": path, "content": "x"}))[1].clone();
        assert_eq!(label("/none/a.py"), "content, a new file on this machine: \"x\"");
        assert_eq!(label("none/a.py"), "content, a new file if the server works in this folder: \"x\"");
    }

    #[test]
    fn an_edit_is_shown_in_its_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.py").to_str().expect("a path").to_owned();
        fs::write(&path, "one\ntwo\nthree\ntwo\nfour\n").expect("written");
        let edit = |arguments: Value| {
            let mut whole = json!({"path": path});
            whole.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
            shown(whole)[1..].iter().map(|line| line.replace(&path, "a.py")).collect::<Vec<_>>()
        };
        assert_eq!(
            edit(json!({"old_string": "three", "new_string": "3"})),
            [
                "old_string → new_string, in the present a.py on this machine, line 3:",
                "    one",
                "    two",
                "  - three",
                "  + 3",
                "    two",
                "    four",
            ]
        );
        let missing = edit(json!({"old_string": "five", "new_string": "5"}));
        assert_eq!(
            missing[..2],
            ["! old_string is not in the present a.py on this machine", "old_string → new_string:"]
        );
        let several = edit(json!({"old_string": "two", "new_string": "2"}));
        assert_eq!(several[0], "! old_string occurs 2 times in the present a.py on this machine");
        let all = edit(json!({"old_string": "two", "new_string": "2", "replace_all": true}));
        assert_eq!((all[0].as_str(), all.iter().filter(|line| line.contains("+ 2")).count()), ("all 2 places:", 2));
        let steps = json!([{"oldText": "three", "newText": "3"}, {"oldText": "3", "newText": "III"}]);
        let steps = edit(json!({"edits": steps}));
        assert!(steps.contains(&"      - 3".to_owned()) && steps.contains(&"      + III".to_owned()), "{steps:?}");
        assert!(edit(json!({"old_string": "", "new_string": "x"}))[0].starts_with("old_string → new_string:"));
    }

    #[test]
    fn a_call_changes_the_file_whose_content_or_edits_it_has() {
        let changed = |arguments: Value| changed_file(arguments.as_object()?).map(str::to_owned);
        for arguments in [
            json!({"path": "a", "content": ""}),
            json!({"file_path": "a", "old_string": "x", "new_string": "y"}),
            json!({"path": "a", "edits": [{"oldText": "x", "newText": "y"}]}),
        ] {
            assert_eq!(changed(arguments).as_deref(), Some("a"));
        }
        for arguments in
            [json!({"path": "a"}), json!({"content": "x"}), json!({"path": "a", "edits": [{"oldText": "x"}]})]
        {
            assert_eq!(changed(arguments), None);
        }
    }

    #[test]
    fn a_dry_run_is_no_change() {
        let edit = json!({"path": "a", "edits": [{"oldText": "x", "newText": "y"}], "dryRun": true});
        assert!(folded_change(edit.as_object().unwrap(), None, 80, Paint::Plain, None).is_empty());
    }

    #[test]
    fn a_change_is_folded_to_a_few_lines_of_the_terminal() {
        let after = |former: Option<&str>, arguments: Value| {
            folded_change(arguments.as_object().unwrap(), former, 10, Paint::Plain, Some("/show 2"))
        };
        let folded = |arguments: Value| after(None, arguments);
        let edit = json!({"path": "a", "old_string": "a\nb\nc\nd", "new_string": "a\nb\nC\nd"});
        assert_eq!(folded(edit), ["  b", "- c", "+ C", "  d"]);
        let edits = json!({"path": "a", "edits": [{"oldText": "x", "newText": "y"}, {"oldText": "1", "newText": ""}]});
        assert_eq!(folded(edits), ["- x", "+ y", "- 1"]);
        let written = folded(json!({"path": "a", "content": format!("山山山山山山\n{}", "\u{202e}\n".repeat(12))}));
        assert_eq!((written[0].as_str(), written[1].as_str(), written.len()), ("| 山山山…", "| \\u{202e}", 9));
        assert_eq!(written[8], "… 5 more lines: /show 2");
        let content = || json!({"path": "a", "content": "one\nTwo\n"});
        assert_eq!(after(Some("one\ntwo\n"), content()), ["  one", "- two", "+ Two"]);
        assert_eq!(after(Some(""), content()), ["+ one", "+ Two"]);
        assert_eq!(after(Some("one\nTwo\n"), content()), ["unchanged"]);
        assert!(after(Some(""), json!({"path": "a", "content": ""})).is_empty(), "a new file without a line");
        assert_eq!(folded(json!({"to": "kim", "text": "Hello"})), [] as [&str; 0]);
    }

    #[test]
    fn an_edit_without_a_difference_is_shown_whole() {
        assert_eq!(shown(json!({"old": "a", "new": "a"})), ["old: \"a\"", "new: \"a\""]);
    }

    #[test]
    fn a_file_is_shown_against_the_one_that_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.txt");
        let write = |content: &str| shown(json!({"path": path, "content": content}));
        assert_eq!(write("one\ntwo\n")[1..], ["content, a new file on this machine:", "  | one", "  | two", "  | "]);
        fs::write(&path, "one\n").expect("written");
        assert!(write("one\ntwo\n")[1].starts_with("content, compared with the present "));
        assert_eq!(write("one\ntwo\n")[2..], ["    one", "  + two"]);
        assert_eq!(write("one\n")[1], "content: the same as the present file");
        let Value::Object(members) = json!({"path": path, "content": "two"}) else { panic!("an object") };
        let kept = argument_lines(&Arguments::Object(members), PresentFile::Unread, Paint::Plain);
        assert_eq!(kept[1], "content: \"two\"", "nothing of the file reaches output that may be kept");
    }
}
