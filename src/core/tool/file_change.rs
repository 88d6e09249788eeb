//! File that a call changes, and its changes, as far as the names of its arguments say: MCP has no term for it. Reads no
//! file.

use serde_json::{Map, Value};

/// The names that servers give to the two sides of an edit.
const EDITS: [(&str, &str); 6] = [
    ("old_string", "new_string"),
    ("oldText", "newText"),
    ("old_str", "new_str"),
    ("old_text", "new_text"),
    ("old", "new"),
    ("search", "replace"),
];
/// The names of the argument that makes an edit replace each occurrence of its text.
const REPLACES_ALL: [&str; 2] = ["replace_all", "replaceAll"];
/// The names of the argument that makes a call say what it would change.
const DRY_RUN: [&str; 2] = ["dryRun", "dry_run"];
/// The names of arguments that say how a content is written.
const MODES: [&str; 4] = ["mode", "append", "insert_line", "line"];
/// The values of `mode` that replace the whole file.
const REPLACING: [&str; 5] = ["w", "write", "overwrite", "replace", "rewrite"];
/// The names of the two places of a file that a call moves or copies.
const MOVES: [(&str, &str); 5] =
    [("source", "destination"), ("src", "dst"), ("src", "dest"), ("old_path", "new_path"), ("from", "to")];
/// The names of a file and of its whole new content.
const PATHS: [&str; 4] = ["path", "file_path", "filePath", "filename"];
const CONTENTS: [&str; 4] = ["content", "contents", "file_text", "text"];

/// The file whose content the call replaces or edits, if the names of the arguments say so.
pub fn changed_file(arguments: &Map<String, Value>) -> Option<&str> {
    changes(arguments).next()?;
    named_file(arguments)
}

/// Whether the call changes a file. Such a call runs alone (decision 0063).
pub fn changes_file(arguments: &Map<String, Value>) -> bool {
    !is_dry_run(arguments) && changed_file(arguments).is_some()
}

/// Whether the call only says what it would change.
pub fn is_dry_run(arguments: &Map<String, Value>) -> bool {
    DRY_RUN.iter().any(|name| arguments.get(*name) == Some(&Value::Bool(true)))
}

/// Whether the arguments name two places of a file that the call moves or copies, one of them in a folder.
pub fn moves_file(arguments: &Map<String, Value>) -> bool {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let places = MOVES.iter().filter_map(|(from, to)| Some([text(from)?, text(to)?]));
    places.into_iter().flatten().any(|place| place.contains(['/', '\\']))
}

/// The file that the arguments name.
pub fn named_file(arguments: &Map<String, Value>) -> Option<&str> {
    PATHS.iter().find_map(|name| arguments.get(*name)?.as_str())
}

/// The name of the argument that has a new content, and the content.
pub fn new_content(arguments: &Map<String, Value>) -> Option<(&'static str, &str)> {
    CONTENTS.iter().find_map(|name| Some((*name, arguments.get(*name)?.as_str()?)))
}

/// The texts before and after each change: of a new content, whose former one the call does not name, of an edit, or of a
/// list of edits.
pub fn changes(arguments: &Map<String, Value>) -> impl Iterator<Item = (Option<&str>, &str)> {
    let content = || new_content(arguments).map(|(_, content)| (None, content));
    let edits = arguments.values().filter_map(Value::as_array).flatten().filter_map(Value::as_object);
    let own = Edit::of(arguments).map(Edit::sides).or_else(content);
    own.into_iter().chain(edits.filter_map(Edit::of).map(Edit::sides))
}

/// The content of the file after the call, if it has this one before. `None` if the arguments do not say it: the text of an
/// edit does not occur in it as the call has it, or the call has a mode, such as `append`. Servers differ in what they do then.
pub fn content_after(arguments: &Map<String, Value>, before: &str) -> Option<String> {
    let is_usual = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(mode) => REPLACING.contains(&mode.as_str()),
        Value::Bool(true) | Value::Number(_) | Value::Array(_) | Value::Object(_) => false,
    };
    if !MODES.iter().filter_map(|name| arguments.get(*name)).all(is_usual) {
        return None;
    }
    let own = Edit::of(arguments);
    let text = match new_content(arguments) {
        Some((_, content)) if own.is_none() => content.to_owned(),
        _ => before.to_owned(),
    };
    let listed = arguments.values().filter_map(Value::as_array).flatten().filter_map(Value::as_object);
    own.into_iter().chain(listed.filter_map(Edit::of)).try_fold(text, |text, edit| edit.applied(&text).ok())
}

/// An edit: the names of its two sides, and their texts.
pub struct Edit<'a> {
    /// The name of the argument with the text to replace.
    pub old: &'a str,
    /// The name of the argument with the new text.
    pub new: &'a str,
    /// The text to replace.
    pub before: &'a str,
    /// The new text.
    pub after: &'a str,
    /// Whether each occurrence is replaced.
    pub replaces_all: bool,
}

impl<'a> Edit<'a> {
    /// The edit in these members of an object.
    pub fn of(members: &'a Map<String, Value>) -> Option<Self> {
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        let replaces_all = REPLACES_ALL.iter().any(|name| members.get(*name) == Some(&Value::Bool(true)));
        EDITS.iter().find_map(|(old, new)| Some(Self { old, new, before: text(old)?, after: text(new)?, replaces_all }))
    }

    /// The text after the edit. The error is the number of places where its old text occurs, which is not the one place that
    /// the edit needs.
    pub fn applied(&self, text: &str) -> Result<String, usize> {
        match text.matches(self.before).count() {
            // Such an edit creates a file.
            _ if self.before.is_empty() && text.is_empty() => Ok(self.after.to_owned()),
            _ if self.before.is_empty() => Err(0),
            1 => Ok(text.replacen(self.before, self.after, 1)),
            2.. if self.replaces_all => Ok(text.replace(self.before, self.after)),
            places => Err(places),
        }
    }

    fn sides(self) -> (Option<&'a str>, &'a str) {
        (Some(self.before), self.after)
    }
}
