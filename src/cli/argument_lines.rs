//! Arguments of a call for the person who decides: text as text, an edit as a difference, a file to be written against
//! the file that is there. No value is shortened; a difference leaves out only unchanged lines far from a change.
//! Characters that hide or reverse text are shown as codes.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value};
use similar::{ChangeTag, TextDiff};

use super::paint::Paint;
use super::text::list;
use crate::core::tool::file_change::{Edit, content_after, named_file, new_content};
use crate::core::tool::{Arguments, escape_untrusted};

/// The longest file that a new content is compared with, in bytes.
const MAX_FILE: u64 = 1024 * 1024;
/// How many unchanged lines are shown around a change.
const CONTEXT: usize = 3;
/// How long a comparison may take; after that, it is coarser.
const LONGEST_COMPARISON: Duration = Duration::from_millis(250);
/// How many edits of a call are shown in their file.
const MOST_EDITS: usize = 20;
pub(super) const STEP: &str = "  ";

/// Whether the new content of a file is compared with the file of this machine.
#[derive(Clone, Copy, Debug)]
pub(super) enum PresentFile<'a> {
    /// For the person at the terminal, whose files they are: with its content after these calls, which run before.
    Compared(&'a [EarlierChange]),
    /// For output that may be kept: the file may have secrets that the model never read.
    Unread,
}

/// A call that runs before another one and changes the same file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EarlierChange {
    /// Its number among the calls that are asked about, from 1.
    pub(super) number: usize,
    pub(super) arguments: Arguments,
}

/// The arguments, one line or several for each.
pub(super) fn argument_lines(arguments: &Arguments, file: PresentFile<'_>, paint: Paint) -> Vec<String> {
    match arguments {
        Arguments::Object(members) if members.is_empty() => vec!["no arguments".to_owned()],
        Arguments::Object(members) => {
            let (named, earlier) = match file {
                PresentFile::Compared(earlier) => (named_file(members), earlier),
                PresentFile::Unread => (None, &[][..]),
            };
            let absent = named.filter(|path| matches!(fs::exists(path), Ok(false)));
            let present = named.and_then(FileText::read);
            let (present, is_foreseen) = match foreseen(present.as_ref(), absent.is_some(), earlier) {
                Some(text) => (Some(FileText { text, name: after_calls(earlier) }), true),
                None => (present, earlier.is_empty()),
            };
            let compared = if present.is_some() { "; shown is the difference from its content now" } else { "" };
            let absent = absent.filter(|_| present.is_none()).map(str::to_owned);
            let mut writer = Writer { present, edits: 0, absent, paint, lines: Vec::new() };
            writer.members(members, "");
            if let Some(target) = named.and_then(|path| fs::read_link(path).ok()) {
                let target = escape_untrusted(&target.to_string_lossy());
                writer.lines.push(paint.yellow(format!("! on this machine it is a link to {target}")));
            }
            if !is_foreseen {
                writer.lines.push(paint.yellow(format!("! {} this file first{compared}", calls_change(earlier))));
            }
            writer.lines
        }
        Arguments::Malformed(text) => vec![format!("not JSON: {}", escape_untrusted(text))],
    }
}

/// The content of the file after the earlier calls, if each of them changes it as its arguments say.
fn foreseen(present: Option<&FileText>, is_absent: bool, earlier: &[EarlierChange]) -> Option<String> {
    let before = present.map(|file| file.text.as_str()).or(is_absent.then_some(""))?;
    let (first, rest) = earlier.split_first()?;
    let after = |text: String, change: &EarlierChange| content_after(change.arguments.as_object()?, &text);
    rest.iter().try_fold(after(before.to_owned(), first)?, after)
}

fn numbers(earlier: &[EarlierChange]) -> String {
    list(earlier.iter().map(|change| change.number))
}

fn after_calls(earlier: &[EarlierChange]) -> String {
    format!("the file after call{} {}", if earlier.len() == 1 { "" } else { "s" }, numbers(earlier))
}

fn calls_change(earlier: &[EarlierChange]) -> String {
    match earlier {
        [one] => format!("call {} changes", one.number),
        _ => format!("calls {} change", numbers(earlier)),
    }
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
    text: String,
    /// What the text is for the person who reads.
    name: String,
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
        let Edit { old, new, before, after, .. } = *edit;
        let Some(FileText { text, name }) = self.present.take_if(|_| !before.is_empty() && self.edits < MOST_EDITS)
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
        self.edits += 1;
        let places = text.matches(before).count();
        let changed = edit.applied(&text);
        match &changed {
            Ok(changed) => {
                if places > 1 {
                    self.lines.push(format!("{margin}all {places} places:"));
                }
                let line = text.split(before).next().map_or(1, |head| head.matches('\n').count() + 1);
                self.lines.push(format!("{margin}{old} → {new}, line {line} of {name}:"));
                self.difference(&text, changed, margin);
            }
            Err(places) => {
                let occurs = if *places == 0 { "is not".to_owned() } else { format!("occurs {places} times") };
                self.lines.push(self.paint.yellow(format!("{margin}! {old} {occurs} in {name}")));
                self.lines.push(format!("{margin}{old} → {new}:"));
                self.difference(before, after, margin);
            }
        }
        let later = " after the edits above";
        let name = if name.ends_with(later) || changed.is_err() { name } else { name + later };
        self.present = Some(FileText { text: changed.unwrap_or(text), name });
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
                for (position, item) in items.iter().enumerate() {
                    self.value(&format!("{label}[{position}]"), item, margin);
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
            Some(FileText { text, name }) if text == after => {
                self.lines.push(format!("{margin}{label}: the same as {name}"));
            }
            Some(FileText { text, name }) => {
                self.lines.push(format!("{margin}{label}, compared with {name}:"));
                self.difference(&text, after, margin);
            }
            None => {
                let is_new = self.absent.as_ref().map(|path| match Path::new(path).is_absolute() {
                    true if !Path::new(path).parent().is_none_or(Path::exists) => {
                        ", a new file in a folder that this machine does not have"
                    }
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
pub(super) type DifferenceLine = (Option<ChangeTag>, String);

/// The changed lines, each group with this many unchanged ones around it.
pub(super) fn difference(before: &str, after: &str, context: usize) -> Vec<DifferenceLine> {
    let difference = TextDiff::configure().timeout(LONGEST_COMPARISON).diff_lines(before, after);
    let is_end_changed = !before.is_empty() && !after.is_empty() && before.ends_with('\n') != after.ends_with('\n');
    let mut lines = Vec::new();
    for (position, group) in difference.grouped_ops(context).iter().enumerate() {
        lines.extend((position > 0).then(|| (None, "…".to_owned())));
        let changes = group.iter().flat_map(|operation| difference.iter_changes(operation));
        lines.extend(changes.map(|change| {
            let line = visible(change.value().trim_end_matches('\n'));
            let is_marked = is_end_changed && change.missing_newline() && change.tag() != ChangeTag::Equal;
            (Some(change.tag()), line + if is_marked { " (no line end)" } else { "" })
        }));
    }
    lines
}

/// The line with the mark of its tag.
pub(super) fn marked(tag: Option<ChangeTag>, line: &str, paint: Paint) -> String {
    match tag {
        None => line.to_owned(),
        Some(ChangeTag::Equal) => format!("  {line}"),
        Some(ChangeTag::Delete) => paint.red(format!("- {line}")),
        Some(ChangeTag::Insert) => paint.green(format!("+ {line}")),
    }
}

impl FileText {
    /// The text of the file before or after a call that changes it: empty without a file, `None` if it cannot be read or is
    /// too long.
    pub(super) fn content(path: &str) -> Option<String> {
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
        Some(Self { text, name: "the present file on this machine".to_owned() })
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

pub(super) fn visible(line: &str) -> String {
    escape_untrusted(&line.replace('\t', "    "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::core::tool::file_change::changed_file;

    fn shown(arguments: Value) -> Vec<String> {
        let Value::Object(members) = arguments else { panic!("an object") };
        argument_lines(&Arguments::Object(members), PresentFile::Compared(&[]), Paint::Plain)
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
                "edits[0]:",
                "  ! there is no /none/a.py on this machine",
                "  oldText → newText:",
                "      a",
                "    - b",
                "    + B",
                "      c"
            ]
        );
    }

    #[test]
    fn a_new_file_is_marked_as_new() {
        let label = |path: &str| shown(json!({"path": path, "content": "x"}))[1].clone();
        assert_eq!(label("/none/a.py"), "content, a new file in a folder that this machine does not have: \"x\"");
        assert_eq!(label("/none.py"), "content, a new file on this machine: \"x\"");
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
                "old_string → new_string, line 3 of the present file on this machine:",
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
            ["! old_string is not in the present file on this machine", "old_string → new_string:"]
        );
        let several = edit(json!({"old_string": "two", "new_string": "2"}));
        assert_eq!(several[0], "! old_string occurs 2 times in the present file on this machine");
        let all = edit(json!({"old_string": "two", "new_string": "2", "replace_all": true}));
        assert_eq!((all[0].as_str(), all.iter().filter(|line| line.contains("+ 2")).count()), ("all 2 places:", 2));
        let steps = json!([{"oldText": "three", "newText": "3"}, {"oldText": "3", "newText": "III"}]);
        let steps = edit(json!({"edits": steps}));
        assert!(steps.contains(&"    - 3".to_owned()) && steps.contains(&"    + III".to_owned()), "{steps:?}");
        assert!(edit(json!({"old_string": "", "new_string": "x"}))[0].starts_with("old_string → new_string:"));
    }

    #[test]
    fn a_call_is_shown_against_its_file_after_the_calls_before_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.py").to_str().expect("a path").to_owned();
        fs::write(&path, "one\n").expect("written");
        let edit = |old: &str, new: &str| json!({"path": path, "old_string": old, "new_string": new});
        let after = |number: usize, earlier: Value, call: Value| {
            let earlier = [EarlierChange { number, arguments: Arguments::from_value(earlier) }];
            argument_lines(&Arguments::from_value(call), PresentFile::Compared(&earlier), Paint::Plain).split_off(1)
        };
        assert_eq!(
            after(1, edit("one", "two"), edit("two", "three")),
            ["old_string → new_string, line 1 of the file after call 1:", "  - two", "  + three"]
        );
        let loose = after(2, edit("ONE", "two"), edit("one", "1"));
        assert_eq!(loose[3], "! call 2 changes this file first; shown is the difference from its content now");
        fs::remove_file(&path).expect("removed");
        let created = json!({"path": path, "content": "one\n"});
        assert_eq!(after(1, created, edit("one", "two"))[1..], ["  - one", "  + two"]);
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
        assert_eq!(write("one")[2..], ["  - one", "  + one (no line end)"]);
        assert_eq!(write("one\n")[1], "content: the same as the present file on this machine");
        let Value::Object(members) = json!({"path": path, "content": "two"}) else { panic!("an object") };
        let kept = argument_lines(&Arguments::Object(members), PresentFile::Unread, Paint::Plain);
        assert_eq!(kept[1], "content: \"two\"", "nothing of the file reaches output that may be kept");
    }
}
