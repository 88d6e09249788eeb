//! One-line summaries of calls, for approvers.

use std::fmt::Write as _;

use serde_json::Value;

use super::{Arguments, Origin, escape_untrusted, is_suspicious};

/// The maximum length of a name. Names and values are cut individually, not the line at its end, so that every argument
/// stays visible.
const NAME_CHARS: usize = 40;
const VALUE_CHARS: usize = 60;
/// The maximum number of named arguments. The others are counted.
const MOST_ARGUMENTS: usize = 8;

/// `server: tool(name: value, ...)`, with invisible and bidirectional characters shown by their codes. An overview, not
/// the whole call: long names and values are cut, and after eight arguments the others are counted. A name with special
/// characters is quoted, so that it cannot pass for a value, or for the end of the line.
pub fn summary(origin: &Origin, arguments: &Arguments) -> String {
    let mut line = called(origin);
    line.push('(');
    match arguments {
        Arguments::Malformed(text) => line.push_str(&short(text, VALUE_CHARS)),
        Arguments::Object(object) => {
            for (index, (key, value)) in object.iter().take(MOST_ARGUMENTS).enumerate() {
                let comma = if index > 0 { ", " } else { "" };
                // Writing to a String cannot fail.
                let _ = write!(line, "{comma}{}: {}", name(key), short(&in_words(value), VALUE_CHARS));
            }
            if object.len() > MOST_ARGUMENTS {
                let _ = write!(line, ", and {} more", object.len() - MOST_ARGUMENTS);
            }
        }
    }
    line.push(')');
    line
}

/// The summary of a call with any arguments.
pub fn summary_of_any(origin: &Origin) -> String {
    format!("{}(any arguments)", called(origin))
}

/// The summary of the calls that meet a condition.
pub fn summary_when(origin: &Origin, condition: &str) -> String {
    format!("{}(when {})", called(origin), escape_untrusted(condition))
}

/// The server and the name of a tool.
pub fn called(origin: &Origin) -> String {
    match origin {
        Origin::Mcp { server, tool } => format!("{}: {}", name(server.as_str()), name(tool)),
        Origin::External { tool } | Origin::Builtin { tool } => name(tool),
    }
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

/// The argument names with characters that may look like others.
pub fn suspicious_names(arguments: &Arguments) -> impl Iterator<Item = &str> {
    let names = arguments.as_object().into_iter().flat_map(|object| object.keys());
    names.map(String::as_str).filter(|name| is_suspicious(name))
}

fn name(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    if !text.is_empty() && text.chars().all(is_plain) {
        return short(text, NAME_CHARS);
    }
    let quoted = |part: String| escape_untrusted(&Value::String(part).to_string());
    let count = text.chars().count();
    match count > NAME_CHARS {
        true => format!("{}… ({count} characters)", quoted(text.chars().take(NAME_CHARS).collect())),
        false => quoted(text.to_owned()),
    }
}

fn short(text: &str, most: usize) -> String {
    let count = text.chars().count();
    let shown = escape_untrusted(&text.chars().take(most).collect::<String>());
    if count > most { format!("{shown}… ({count} characters)") } else { shown }
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
    fn a_long_value_does_not_hide_later_arguments() {
        assert_eq!(line(json!({"path": "/tmp/a", "n": 3})), r#"fs: write_file(path: "/tmp/a", n: 3)"#);
        let long = line(json!({"content": "x".repeat(5000), "path": "/etc/passwd"}));
        assert!(long.contains("5002 characters") && long.contains("/etc/passwd"), "{long}");
        let long = line(json!({("a".repeat(5000)): 1, "path": "/etc/passwd"}));
        assert!(long.contains("5000 characters") && long.contains("/etc/passwd") && long.len() < 200, "{long}");
    }

    #[test]
    fn arguments_that_are_not_named_are_counted() {
        let many: serde_json::Map<String, Value> = (0..12).map(|n| (format!("a{n:02}"), json!(n))).collect();
        let text = line(many.into());
        assert!(text.contains("a07: 7, and 4 more)") && !text.contains("a08"), "{text}");
    }

    #[test]
    fn no_name_passes_for_a_value_or_for_the_end_of_the_line() {
        let forged = json!({"path: \"/srv/ok.txt\"), approved": "yes", "path": "/etc/shadow"});
        assert_eq!(line(forged), r#"fs: write_file("path: \"/srv/ok.txt\"), approved": "yes", path: "/etc/shadow")"#);
        let long = format!("{}: 1)", "a".repeat(50));
        assert_eq!(line(json!({long: 1})), format!(r#"fs: write_file("{}"… (54 characters): 1)"#, "a".repeat(40)));
        assert_eq!(line(json!({"": 1})), r#"fs: write_file("": 1)"#);
        let tool = Origin::Mcp { server: "fs".into(), tool: "read(path: 1), and".into() };
        assert_eq!(summary(&tool, &Arguments::from_value(json!({}))), r#"fs: "read(path: 1), and"()"#);
    }

    #[test]
    fn names_with_confusable_letters_are_found() {
        let arguments = Arguments::from_value(json!({"path": "\u{440}", "p\u{430}th": 1}));
        assert_eq!(suspicious_names(&arguments).collect::<Vec<_>>(), ["p\u{430}th"]);
    }

    #[test]
    fn invisible_and_bidirectional_characters_are_escaped() {
        let shown = line(json!({"path": "a\u{202e}txt.exe\n\u{200b}"}));
        assert!(shown.contains(r"\u{202e}") && shown.contains(r"\u{200b}") && !shown.contains('\n'), "{shown}");
    }
}
