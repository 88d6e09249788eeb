//! Word wrap of lines for a terminal. Without it the terminal breaks words at its edge. Pure.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// An indent that is wider than the terminal divided by this is not repeated.
const INDENT_SHARE: usize = 2;

/// The columns that a text with colours takes.
pub(super) fn visible_width(text: &str) -> usize {
    without_colours(text).width()
}

/// The text with each of its lines wrapped at words. A continued line has the indent of its beginning, with the gutter of
/// quoted text. Commands are not wrapped: a command is copied in one piece.
pub(super) fn wrap(text: &str, columns: usize) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| wrap_line(line, columns)).collect();
    lines.join("\n")
}

fn wrap_line(line: &str, columns: usize) -> String {
    let plain = without_colours(line);
    if plain.width() <= columns || plain.trim_start().starts_with("toolgate ") {
        return line.to_owned();
    }
    let indent = indent(&plain, columns);
    let (mut wrapped, mut used, mut is_first) = (String::with_capacity(line.len() + 16), 0, true);
    for word in line.split_inclusive(' ') {
        let plain = without_colours(word);
        let needed = plain.trim_end().width();
        if !is_first && needed > 0 && used + needed > columns {
            wrapped.truncate(wrapped.trim_end_matches(' ').len());
            wrapped.push('\n');
            wrapped.push_str(&indent);
            used = indent.width();
        }
        wrapped.push_str(word);
        used += plain.width();
        is_first &= needed == 0;
    }
    wrapped
}

/// The beginning of a continued line: the spaces and gutters before the first word.
fn indent(plain: &str, columns: usize) -> String {
    let indent: String = plain.chars().take_while(|c| matches!(c, ' ' | '|')).collect();
    if indent.width() * INDENT_SHARE > columns { String::new() } else { indent }
}

/// The text without sequences that set colours.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    let visible = parts.map(|part| part.split_once('m').map_or("", |(_, text)| text));
    visible.fold(first, |text, part| text + part).chars().filter(|c| c.width().is_some()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_break_at_words_and_keep_their_indent() {
        assert_eq!(wrap("one two three", 8), "one two\nthree");
        assert_eq!(wrap("    one two three\nfour", 10), "    one\n    two\n    three\nfour");
        assert_eq!(wrap("  | one two", 8), "  | one\n  | two");
        assert_eq!(wrap("short", 8), "short");
        assert_eq!(wrap("山田太郎 山田太郎", 10), "山田太郎\n山田太郎");
    }

    #[test]
    fn commands_and_long_words_stay_whole() {
        assert_eq!(wrap("  toolgate resume run_1 --approve", 10), "  toolgate resume run_1 --approve");
        assert_eq!(wrap("a abcdefghijklm b", 6), "a\nabcdefghijklm\nb");
        assert_eq!(wrap("            deep words", 16), "            deep\nwords");
    }

    #[test]
    fn colours_take_no_columns() {
        assert_eq!(visible_width("\x1b[2mabc\x1b[0m d"), 5);
        assert_eq!(wrap("\x1b[2mone two three\x1b[0m", 8), "\x1b[2mone two\nthree\x1b[0m");
    }
}
