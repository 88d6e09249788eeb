//! YAML writer for text that people edit: a readable layout that depends on the value alone. Small values stand on one line,
//! texts of several lines are block scalars, and every scalar that YAML could read as another type is quoted.

use serde_json::{Map, Value};

/// The longest line of a value that is written on one line.
const LONGEST_LINE: usize = 110;

/// Words that YAML 1.1 or 1.2 reads as another type than text.
const RESERVED: [&str; 12] = ["", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", ".nan"];

/// The YAML of an object, with a line for each member.
pub fn write(members: &Map<String, Value>) -> String {
    let mut text = String::new();
    write_members(&mut text, members, 0);
    text
}

fn write_members(text: &mut String, members: &Map<String, Value>, indent: usize) {
    for (name, value) in members {
        text.push_str(&" ".repeat(indent));
        text.push_str(&scalar(name));
        text.push(':');
        write_value(text, value, indent);
    }
}

/// Writes a value behind its key, and the end of the line.
fn write_value(text: &mut String, value: &Value, indent: usize) {
    if let Value::String(lines) = value
        && is_block(lines)
    {
        return write_block(text, lines, indent + 2);
    }
    let width = indent + 2;
    match value {
        Value::Object(members) if !fits_on_a_line(value, width) => {
            text.push('\n');
            write_members(text, members, indent + 2);
        }
        Value::Array(items) if !fits_on_a_line(value, width) => {
            text.push('\n');
            items.iter().for_each(|item| write_item(text, item, indent + 2));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            text.push(' ');
            text.push_str(&flow(value));
            text.push('\n');
        }
    }
}

fn write_item(text: &mut String, item: &Value, indent: usize) {
    text.push_str(&" ".repeat(indent));
    text.push('-');
    let Value::Object(members) = item else { return write_value(text, item, indent) };
    if fits_on_a_line(item, indent + 2) {
        return write_value(text, item, indent);
    }
    let mut lines = String::new();
    write_members(&mut lines, members, indent + 2);
    text.push(' ');
    text.push_str(lines.get(indent + 2..).unwrap_or_default());
}

/// Whether a text is written as a block scalar: it has lines, and only characters that a block keeps.
fn is_block(text: &str) -> bool {
    let is_kept =
        |c: char| matches!(c, '\n' | '\t') || !(c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}'));
    text.trim_end_matches('\n').contains('\n') && text.chars().all(is_kept)
}

fn write_block(text: &mut String, lines: &str, indent: usize) {
    let body = lines.trim_end_matches('\n');
    let ends = lines.len() - body.len();
    // White space at the beginning would count as indentation.
    text.push_str(if body.starts_with([' ', '\t', '\n']) { " |2" } else { " |" });
    text.push_str(match ends {
        0 => "-\n",
        1 => "\n",
        _ => "+\n",
    });
    for line in body.split('\n') {
        if !line.is_empty() {
            text.push_str(&" ".repeat(indent));
            text.push_str(line);
        }
        text.push('\n');
    }
    text.push_str(&"\n".repeat(ends.saturating_sub(1)));
}

/// Whether the value fits on one line: it is short, and has no text of several lines.
fn fits_on_a_line(value: &Value, indent: usize) -> bool {
    let nesting = depth(value);
    nesting == 0 || (nesting <= 2 && !has_block(value) && indent + flow(value).chars().count() <= LONGEST_LINE)
}

/// The levels of lists and objects; an empty one counts as none.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) if !items.is_empty() => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) if !members.is_empty() => 1 + members.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => 0,
    }
}

/// Whether the value has a text that is written as a block.
pub fn has_block(value: &Value) -> bool {
    match value {
        Value::String(text) => is_block(text),
        Value::Array(items) => items.iter().any(has_block),
        Value::Object(members) => members.values().any(has_block),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The value on one line.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(members) if members.is_empty() => "{}".to_owned(),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("{}: {}", scalar(name), flow(value)));
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// A text as it is, or as a JSON string where YAML could read it differently.
fn scalar(text: &str) -> String {
    let is_inner =
        |c: char| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.' | '/' | '$' | '(' | ')' | '+' | '=' | ';');
    let begins_well = text.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '/' | '$'));
    let is_plain = begins_well && !text.ends_with(' ') && text.chars().all(is_inner);
    if is_plain && !RESERVED.contains(&text.to_ascii_lowercase().as_str()) {
        return text.to_owned();
    }
    escaped(text)
}

/// A JSON string, with the characters that YAML takes for the end of a line as escapes.
fn escaped(text: &str) -> String {
    let mut quoted = String::new();
    for c in Value::from(text).to_string().chars() {
        match c {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' => {
                quoted.push_str(&format!("\\u{:04x}", c as u32))
            }
            c => quoted.push(c),
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn written(value: Value) -> String {
        write(value.as_object().unwrap())
    }

    #[test]
    fn small_values_stand_on_one_line_and_texts_in_blocks() {
        let value = json!({
            "task": "Find Ada", "calls": [{"tool": "find", "arguments": {"name": "Ada", "on": "yes", "n": "1"}}],
            "text": "Invoice\n\ntotal: 5\n", "last": "a\nb", "code": ["\tx\n  y \n"],
        });
        assert_eq!(
            written(value),
            "task: Find Ada\ncalls:\n  - { tool: find, arguments: { name: Ada, \"on\": \"yes\", \"n\": \"1\" } }\n\
             text: |\n  Invoice\n\n  total: 5\nlast: |-\n  a\n  b\ncode:\n  - |2\n    \tx\n      y \n"
        );
    }

    fn values() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
            "[a-z :#'\"\\-\\[\\]{}&*!|>%@`,?~]{0,12}",
            "([a-z \t#]{0,6}\n){1,4}[a-z \t]{0,3}",
            "\\PC{0,8}",
            any::<String>(),
            Just("true".to_owned()),
            Just("1e3".to_owned()),
            Just("0x1f".to_owned()),
            Just(".inf".to_owned()),
            Just("2026-01-01".to_owned()),
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-1e6f64..1e6).prop_map(Value::from),
            text.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((text.clone(), inner), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_written_value_is_read_back(value in values()) {
            let value = json!({"value": value});
            let text = written(value.clone());
            let read: Value = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            prop_assert_eq!(read, value, "{}", text);
        }
    }
}
