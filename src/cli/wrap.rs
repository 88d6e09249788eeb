//! Word wrap of lines for a terminal. Without it the terminal breaks words at its edge. Pure.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// An indent that is wider than the terminal divided by this is not repeated.
const INDENT_SHARE: usize = 2;

/// The columns that a text with colours takes.
pub(super) fn visible_width(text: &str) -> usize {
    without_colours(text).width()
}

/// The text with each of its lines wrapped at words. A continued line has the indent of its beginning, with the gutter of
/// quoted text. A longer word is broken where a gutter or the mark of a difference frames it, and elsewhere stays whole, as a
/// command does: both are copied in one piece.
pub(super) fn wrap(text: &str, columns: usize) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| wrap_line(line, columns)).collect();
    lines.join("\n")
}

fn wrap_line(line: &str, columns: usize) -> String {
    let plain = without_colours(line);
    if plain.width() <= columns || plain.trim_start().starts_with("toolgate ") {
        return line.to_owned();
    }
    let Indent { text: indent, begins, is_frame } = Indent::of(&plain, columns);
    let (mut wrapped, mut used, mut is_first) = (String::with_capacity(line.len() + 16), 0, true);
    for word in words(line) {
        let needed = visible_width(word.trim_end());
        let is_broken = is_frame && indent.width() + needed > columns;
        if !is_first && !is_broken && needed > 0 && used + needed > columns {
            wrapped.truncate(wrapped.trim_end_matches(' ').len());
            wrapped.push('\n');
            wrapped.push_str(&indent);
            used = indent.width();
        }
        let parts = if is_broken { letters(word) } else { vec![(word, visible_width(word))] };
        for (part, width) in parts {
            if is_broken && used + width > columns && part != " " {
                wrapped.push('\n');
                wrapped.push_str(&indent);
                used = indent.width();
            }
            wrapped.push_str(part);
            used += width;
        }
        is_first &= used <= begins;
    }
    wrapped
}

/// The parts of a text after which a line may end: words, each with the space after it, and the characters of scripts without
/// spaces, each with the punctuation that belongs to it.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let pairs = rest.char_indices().zip(rest.chars().skip(1));
        let end = pairs.map(|((at, a), b)| (at + a.len_utf8(), a, b)).find(|(_, a, b)| may_break(*a, *b));
        let (word, after) = rest.split_at(end.map_or(rest.len(), |(end, ..)| end));
        rest = after;
        (!word.is_empty()).then_some(word)
    })
}

/// Whether a line may end between two characters.
pub(super) fn may_break(a: char, b: char) -> bool {
    let is_ideograph = |c: char| c.is_alphanumeric() && c.width() == Some(2);
    let is_opening = matches!(a, '「' | '『' | '（' | '【' | '〈' | '《' | '［');
    let is_before = a.is_alphanumeric() || a.width() == Some(2);
    a == ' ' || (is_ideograph(b) && is_before && !is_opening) || (is_ideograph(a) && b.is_ascii_alphanumeric())
}

/// The beginning of a continued line.
struct Indent {
    text: String,
    /// The column of the first word of the whole line.
    begins: usize,
    /// Whether it frames the text, so that no part of it may begin elsewhere.
    is_frame: bool,
}

impl Indent {
    /// The spaces and gutters before the first word, and the columns of the mark of a difference.
    fn of(plain: &str, columns: usize) -> Self {
        let text: String = plain.chars().take_while(|c| matches!(c, ' ' | '|')).collect();
        let (has_gutter, rest) = (text.contains('|'), plain.get(text.len()..).unwrap_or_default());
        let has_mark = rest.starts_with("+ ") || rest.starts_with("- ");
        let text = if has_mark { text + "  " } else { text };
        let begins = text.width();
        let text = match begins * INDENT_SHARE > columns {
            true if has_gutter => "| ".to_owned(),
            true => String::new(),
            false => text,
        };
        Self { text, begins, is_frame: has_gutter || has_mark }
    }
}

/// The line in at most these columns, with a mark for the omitted end.
pub(super) fn cut(line: &str, columns: usize) -> String {
    if visible_width(line) <= columns {
        return line.to_owned();
    }
    let mut used = 1;
    let shown = letters(line).into_iter().take_while(|(_, width)| {
        used += width;
        used <= columns
    });
    shown.map(|(letter, _)| letter).chain(["…"]).collect()
}

/// The letters of a word with the columns of each. A sequence that sets a colour takes none, and a letter has the marks and
/// the joined emoji that follow it.
pub(super) fn letters(word: &str) -> Vec<(&str, usize)> {
    let (mut letters, mut rest) = (Vec::new(), word);
    while let Some(first) = rest.chars().next() {
        let colour = rest.strip_prefix("\x1b[").and_then(|codes| Some("\x1b[".len() + codes.find('m')? + 1));
        let (letter, after) = rest.split_at(colour.unwrap_or_else(|| letter_length(rest, first)));
        letters.push((letter, visible_width(letter)));
        rest = after;
    }
    letters
}

/// The length of the first letter of a text: the characters that take no further columns belong to it.
fn letter_length(text: &str, first: char) -> usize {
    let mut end = first.len_utf8();
    for c in text.chars().skip(1).take_while(|c| *c != '\x1b') {
        let longer = text.get(..end + c.len_utf8()).unwrap_or(text);
        let is_part = c.width() == Some(0) || longer.width() == text.get(..end).map_or(0, |letter| letter.width());
        if !is_part {
            break;
        }
        end += c.len_utf8();
    }
    end
}

/// The beginning of a line and then a text, wrapped at words so that its further lines begin below its first word.
pub(super) fn hanging(beginning: &str, text: &str, columns: usize) -> Vec<String> {
    let indent = visible_width(beginning);
    let lines = wrap(text, columns.saturating_sub(indent));
    let lines = lines.lines().enumerate();
    let begin = |position| if position == 0 { beginning.to_owned() } else { " ".repeat(indent) };
    lines.map(|(position, line)| format!("{}{line}", begin(position))).collect()
}

/// The text without sequences that set colours.
pub(super) fn without_colours(text: &str) -> String {
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
        assert_eq!(wrap("請求書を「三枚」送りました。", 12), "請求書を「三\n枚」送りまし\nた。");
    }

    #[test]
    fn commands_and_long_words_stay_whole() {
        assert_eq!(wrap("  toolgate resume run_1 --approve", 10), "  toolgate resume run_1 --approve");
        assert_eq!(wrap("a abcdefghijklm b", 6), "a\nabcdefghijklm\nb");
        assert_eq!(wrap("            deep words", 16), "            deep\nwords");
        assert_eq!(wrap("  https://example.com/abc", 10), "  https://example.com/abc");
    }

    #[test]
    fn a_long_word_in_a_frame_is_broken_within_it() {
        assert_eq!(wrap("  | abcdefghijkl mn", 8), "  | abcd\n  | efgh\n  | ijkl\n  | mn");
        assert_eq!(wrap("  | a 山田太郎b ", 9), "  | a 山\n  | 田太\n  | 郎b ");
        assert_eq!(wrap("  + abcdef - g", 8), "  + abcd\n    ef -\n    g");
        assert_eq!(wrap("      | abcdefghij", 10), "      | ab\n| cdefghij");
        assert_eq!(wrap("\x1b[32m  + abcdef\x1b[0m", 8), "\x1b[32m  + abcd\n    ef\x1b[0m");
    }

    #[test]
    fn a_cut_line_fits_with_its_mark() {
        assert_eq!([cut("abcd", 4), cut("abcde", 4), cut("山田太郎", 6)], ["abcd", "abc…", "山田…"]);
    }

    #[test]
    fn joined_emoji_are_one_letter_and_never_cut_apart() {
        let family = "👩\u{200d}👩\u{200d}👧";
        assert_eq!(letters(&format!("a{family}❤\u{fe0f}\x1b[0m")).len(), 4);
        assert_eq!(
            [cut(&format!("{family}ab"), 4), cut(&format!("{family}{family}"), 3)],
            [format!("{family}ab"), format!("{family}…")]
        );
    }

    #[test]
    fn the_further_lines_of_a_description_hang_below_its_first_word() {
        assert_eq!(hanging("  /a  ", "one two three", 13), ["  /a  one two", "      three"]);
        assert_eq!(hanging("── ", "one", 80), ["── one"]);
    }

    #[test]
    fn colours_take_no_columns() {
        assert_eq!(visible_width("\x1b[2mabc\x1b[0m d"), 5);
        assert_eq!(wrap("\x1b[2mone two three\x1b[0m", 8), "\x1b[2mone two\nthree\x1b[0m");
    }
}
