//! A call in one line, for a person who is to decide about it. Nothing in it can pretend to be something else: what cannot
//! be seen, or turns the direction of text, is shown by its code.

use std::fmt::Write as _;

use serde_json::Value;

use super::{Arguments, Origin};

/// Longer values are cut in the middle of the line, not the line at its end: every argument is named.
const VALUE_CHARS: usize = 60;
const MOST_ARGUMENTS: usize = 8;

/// `server: tool(name: value, ...)`.
pub fn summary(origin: &Origin, arguments: &Arguments) -> String {
    let mut line = match origin {
        Origin::Mcp { server, tool } => format!("{}: {}", visible(server.as_str()), visible(tool)),
        Origin::External { tool } | Origin::Builtin { tool } => visible(tool),
    };
    line.push('(');
    match arguments {
        Arguments::Malformed(text) => line.push_str(&short(text)),
        Arguments::Object(object) => {
            for (index, (name, value)) in object.iter().take(MOST_ARGUMENTS).enumerate() {
                let comma = if index > 0 { ", " } else { "" };
                // Writing to a String cannot fail.
                let _ = write!(line, "{comma}{}: {}", visible(name), short(&in_words(value)));
            }
            if object.len() > MOST_ARGUMENTS {
                let _ = write!(line, ", and {} more", object.len() - MOST_ARGUMENTS);
            }
        }
    }
    line.push(')');
    line
}

/// Text as it can be shown: control, format and look-alike white space characters by their codes.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match is_hidden(c) {
            true => {
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
            }
            false => shown.push(c),
        }
    }
    shown
}

/// Whether a name mixes letters that look alike, or holds any that are not ASCII: then it deserves a second look.
pub fn is_suspicious(name: &str) -> bool {
    !name.is_ascii()
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(
            u32::from(c),
            0xad | 0x34f | 0x61c | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f | 0x200b..=0x200f
                | 0x202a..=0x202e | 0x2060..=0x206f | 0x3164 | 0xfe00..=0xfe0f | 0xfeff | 0xffa0 | 0xfff0..=0xfffb
                | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff
        )
}

fn in_words(value: &Value) -> String {
    match value {
        Value::Array(items) if value.to_string().chars().count() > VALUE_CHARS => format!("[{} items]", items.len()),
        Value::Object(members) if value.to_string().chars().count() > VALUE_CHARS => {
            format!("{{{} members}}", members.len())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

fn short(text: &str) -> String {
    let count = text.chars().count();
    let shown = visible(&text.chars().take(VALUE_CHARS).collect::<String>());
    if count > VALUE_CHARS { format!("{shown}… ({count} characters)") } else { shown }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(arguments: Value) -> String {
        let origin = Origin::Mcp { server: "fs".into(), tool: "write_file".into() };
        summary(&origin, &Arguments::from_value(arguments))
    }

    #[test]
    fn a_call_is_told_in_one_line_with_every_argument_named() {
        assert_eq!(line(json!({"path": "/tmp/a", "n": 3})), r#"fs: write_file(path: "/tmp/a", n: 3)"#);
        let long = line(json!({"content": "x".repeat(5000), "path": "/etc/passwd"}));
        assert!(long.contains("5002 characters") && long.contains("/etc/passwd"), "{long}");
    }

    #[test]
    fn what_hides_or_turns_text_around_is_shown_by_its_code() {
        let shown = line(json!({"path": "a\u{202e}txt.exe\n\u{200b}"}));
        assert!(shown.contains(r"\u{202e}") && shown.contains(r"\u{200b}") && !shown.contains('\n'), "{shown}");
    }
}
