//! Text formatting: truncation, counts, units and quoting.

use std::fmt::Display;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use unicode_width::UnicodeWidthChar as _;

use super::wrap::{cut, visible_width};
use crate::core::tool::file_change::named_file;
use crate::core::tool::{escape_untrusted, with_escapes};

/// The length limit of arguments or a result on one line.
pub(super) const COMPACT: usize = 120;

/// The text on one line of at most `max` columns, with a mark for omitted text.
pub(super) fn one_line(text: &str, max: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    // Control characters of a tool's answer must not reach a terminal.
    let line = words.join(" ");
    let line: String = with_escapes(&line).map(|(c, is_escaped)| if is_escaped { '·' } else { c }).collect();
    cut(&line, max)
}

/// The same, of a text with several lines the beginning and the end: the last line of an output often says how it ended.
pub(super) fn ends(text: &str, max: usize) -> String {
    let (whole, last) = (one_line(text, usize::MAX), text.trim_end().lines().next_back().unwrap_or_default());
    let tail = one_line(last, max / 3);
    if visible_width(&whole) <= max || text.trim_end().lines().count() < 2 || tail.is_empty() {
        return one_line(text, max);
    }
    format!("{} {tail}", one_line(text, max.saturating_sub(visible_width(&tail) + 1)))
}

/// The end of a text in one line of at most this many columns, as a line editor shows what is being typed.
pub(super) fn end_of_line(text: &str, max: usize) -> String {
    let whole = one_line(text, usize::MAX);
    let mut room = max.saturating_sub(1);
    let fits = |c: &char| match room.checked_sub(c.width().unwrap_or(0)) {
        Some(rest) => {
            room = rest;
            true
        }
        None => false,
    };
    if visible_width(&whole) <= max {
        return whole;
    }
    let end: Vec<char> = whole.chars().rev().take_while(fits).collect();
    format!("…{}", end.iter().rev().collect::<String>())
}

/// Untrusted text that may have several lines. Each line but the first is marked, so that it cannot pass for a line of
/// the program. Invisible characters appear as their codes.
pub(super) fn block(text: &str) -> String {
    let lines = text.trim_end().lines().map(|line| escape_untrusted(&line.replace('\t', "    ")));
    lines.collect::<Vec<_>>().join("\n| ")
}

/// Untrusted text below a line of the program: every line is marked, including the first.
pub(super) fn gutter(text: &str) -> Vec<String> {
    let text = block(text);
    if text.is_empty() { Vec::new() } else { format!("| {text}").lines().map(str::to_owned).collect() }
}

/// A JSON value on one short line.
pub(super) fn compact(value: &Value, max: usize) -> String {
    one_line(&value.to_string(), max.min(COMPACT))
}

/// The arguments of a call on one short line, such as `order_id: "A-1", amount: 3`.
pub(super) fn arguments_line(arguments: &Value, max: usize) -> String {
    match arguments {
        Value::Object(members) if members.is_empty() => "no arguments".to_owned(),
        Value::Object(members) => {
            let max = max.min(COMPACT);
            // Of a long path, the end tells it from others.
            let file = named_file(members).filter(|file| file.len() > max / 2);
            let shown = |value: &Value| {
                let json = value.to_string();
                let is_file = file.is_some() && value.as_str() == file;
                let path = json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).filter(|_| is_file);
                path.map(|path| format!("\"{}\"", end_of_line(path, max / 2))).unwrap_or(json)
            };
            let members: Vec<String> =
                members.iter().map(|(name, value)| format!("{name}: {}", shown(value))).collect();
            one_line(&members.join(", "), max)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => compact(arguments, max),
    }
}

/// Milliseconds in readable units: `85 ms`, `1.2 s`, `3 min 5 s`.
pub(super) fn duration(milliseconds: u64) -> String {
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => format!("{:.1} s", Duration::from_millis(milliseconds).as_secs_f64()),
        _ => {
            let seconds = milliseconds / 1_000;
            let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
            if hours > 0 { format!("{hours} h {minutes} min") } else { format!("{minutes} min {} s", seconds % 60) }
        }
    }
}

/// The time since then in readable units.
pub(super) fn age(since: Timestamp, now: Timestamp) -> String {
    duration(u64::try_from(now.duration_since(since).as_millis()).unwrap_or(0))
}

/// Seconds in the largest unit that they fill: `40 s`, `3 min`, `5 h`, `2 d`.
pub(super) fn brief_duration(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        seconds @ 3_600..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// Bytes in readable units: `85 bytes`, `12 kB`, `3.4 MB`.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} kB", (bytes + 500) / 1_000),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10),
    }
}

/// `1 call`, `2 calls`.
pub(super) fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// A comma-separated list for people: `a, b, c`, or `none`.
pub(super) fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    let names: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

/// The text as one word of a POSIX shell command that the user can copy. `HIDDEN` replaces a text with invisible
/// characters, because the user could not check it.
pub(super) fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+,=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    if escape_untrusted(text) != text {
        return "HIDDEN".to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_that_is_typed_is_shown_from_its_end() {
        assert_eq!([end_of_line("one two", 7), end_of_line("one two", 5)], ["one two", "… two"]);
        assert_eq!(end_of_line("山山山", 4), "…山");
    }

    #[test]
    fn a_brief_duration_has_one_unit() {
        let seconds = [-5, 59, 60, 3_599, 3_600, 172_799, 172_800];
        assert_eq!(seconds.map(brief_duration), ["0 s", "59 s", "1 min", "59 min", "1 h", "47 h", "2 d"]);
    }

    #[test]
    fn a_long_value_is_truncated_to_one_line_with_a_mark() {
        assert_eq!(compact(&json!({"a": "x\ny"}), 80), r#"{"a":"x\ny"}"#);
        let cut = compact(&json!("x".repeat(500)), 500);
        assert_eq!((cut.chars().count(), cut.ends_with('…')), (COMPACT, true));
        assert_eq!(one_line("a\n  b\u{1b}[31m", 80), "a b·[31m");
        assert_eq!(one_line("山田 太郎", 8), "山田 太…");
        assert_eq!(one_line("👩\u{200d}👩\u{200d}👧 a\u{200d}b", 80), "👩\u{200d}👩\u{200d}👧 a·b");
        assert_eq!(ends("a\nb\n", 80), "a b");
        assert_eq!(ends(&"x".repeat(50), 10), "xxxxxxxxx…");
        let shown = ends(&format!("{}\n2 failed\n", "dots\n".repeat(50)), 30);
        assert_eq!((shown.as_str(), shown.chars().count()), ("dots dots dots dots … 2 failed", 30));
    }

    #[test]
    fn lines_of_untrusted_text_are_marked() {
        let shown = block("Which?\r\nMay x run?\x1b[2K\n\ta\n");
        assert_eq!(shown, "Which?\n| May x run?\\u{1b}[2K\n|     a");
        assert_eq!(block("a\u{2028}b"), "a\\u{2028}b");
        assert_eq!(gutter("a\n\nb\n"), ["| a", "| ", "| b"]);
        assert_eq!(gutter(" \n"), [] as [&str; 0]);
    }

    #[test]
    fn durations_have_readable_units() {
        let shown: Vec<String> = [85, 1_230, 185_000, 7_260_000].into_iter().map(duration).collect();
        assert_eq!(shown, ["85 ms", "1.2 s", "3 min 5 s", "2 h 1 min"]);
    }

    #[test]
    fn sizes_have_readable_units() {
        let shown: Vec<String> = [85, 1_499, 12_000, 3_460_000].into_iter().map(size).collect();
        assert_eq!(shown, ["85 bytes", "1 kB", "12 kB", "3.4 MB"]);
    }

    #[test]
    fn a_shell_reads_a_quoted_word_back_as_it_was() {
        assert_eq!(shell_word("call_1"), "call_1");
        assert_eq!(shell_word("it's {\"a\":1}"), r#"'it'\''s {"a":1}'"#);
        assert_eq!(shell_word(""), "''");
        assert_eq!(shell_word("a\u{202e}b"), "HIDDEN");
    }
}
