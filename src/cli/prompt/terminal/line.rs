//! Edit buffer of a prompt: the text, the cursor and their layout on the screen. Pure.

use unicode_width::UnicodeWidthChar;

use super::keys::Key;
use crate::cli::paint::Paint;
use crate::cli::terminal_escape;
use crate::cli::text::{count, size};

/// The most characters and lines of an answer that is shown in full.
const SHOWN_CHARACTERS: usize = 2_000;
const SHOWN_LINES: usize = 20;
/// The number of characters shown of a longer answer.
const EXCERPT: usize = 400;

/// The answer typed so far.
#[derive(Debug, Default)]
pub(super) struct Line {
    text: Vec<char>,
    cursor: usize,
    has_paste: bool,
    /// The text that a key erased last, for Ctrl-Y.
    erased: Vec<char>,
}

impl Line {
    pub(super) const EMPTY: Self = Self { text: Vec::new(), cursor: 0, has_paste: false, erased: Vec::new() };

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether any of it was pasted.
    pub(super) fn has_paste(&self) -> bool {
        self.has_paste
    }

    pub(super) fn text(&self) -> String {
        self.text.iter().collect()
    }

    /// Applies an editing key and ignores any other key.
    pub(super) fn edit(&mut self, key: Key) {
        match key {
            Key::Char(c) => self.insert([c]),
            Key::Break => self.insert(['\n']),
            Key::Paste(text) => {
                self.has_paste = true;
                self.insert(text.chars());
            }
            Key::Erase => drop(self.remove(self.cursor.saturating_sub(1), self.cursor)),
            Key::Delete => drop(self.remove(self.cursor, (self.cursor + 1).min(self.text.len()))),
            Key::EraseWord => self.erased = self.remove(self.word_start(), self.cursor),
            Key::EraseLine => self.erased = self.remove(0, self.cursor),
            Key::EraseRest => self.erased = self.remove(self.cursor, self.text.len()),
            Key::InsertErased => self.insert(self.erased.clone()),
            Key::WordLeft => self.cursor = self.word_start(),
            Key::WordRight => self.cursor = self.word_end(),
            Key::Left => self.cursor = self.cursor.saturating_sub(1),
            Key::Right => self.cursor = (self.cursor + 1).min(self.text.len()),
            Key::Home => self.cursor = self.line_start(self.cursor),
            Key::End => self.cursor = self.line_end(self.cursor),
            Key::Enter
            | Key::BackTab
            | Key::Earlier
            | Key::Later
            | Key::Search
            | Key::EndOfInput
            | Key::Escape
            | Key::Interrupt
            | Key::Quit
            | Key::Suspend
            | Key::OversizedPaste => {}
        }
    }

    /// Replaces the text, with the cursor at its end.
    pub(super) fn replace(&mut self, text: &str) {
        *self = Self { text: text.chars().collect(), erased: std::mem::take(&mut self.erased), ..Self::default() };
        self.cursor = self.text.len();
    }

    /// Moves the cursor to the line before or after its own. Returns whether there is one.
    pub(super) fn step(&mut self, is_back: bool) -> bool {
        let (start, end) = (self.line_start(self.cursor), self.line_end(self.cursor));
        let next = if is_back { start.checked_sub(1).map(|end| self.line_start(end)) } else { Some(end + 1) };
        let Some(next) = next.filter(|next| *next <= self.text.len()) else { return false };
        self.cursor = self.line_end(next).min(next + self.cursor - start);
        true
    }

    fn line_start(&self, at: usize) -> usize {
        let before = self.text.get(..at).unwrap_or_default();
        before.iter().rposition(|c| *c == '\n').map_or(0, |end| end + 1)
    }

    fn line_end(&self, at: usize) -> usize {
        let after = self.text.get(at..).unwrap_or_default();
        after.iter().position(|c| *c == '\n').map_or(self.text.len(), |end| at + end)
    }

    /// Replaces a backslash before the cursor by a line break. Returns whether there was one.
    pub(super) fn continue_after_backslash(&mut self) -> bool {
        let is_continued = self.cursor > 0 && self.text.get(self.cursor - 1) == Some(&'\\');
        if is_continued {
            self.edit(Key::Erase);
            self.edit(Key::Break);
        }
        is_continued
    }

    /// Whether further input arrived with the line. A key pressed twice does not count, and neither does a second Enter.
    pub(super) fn drops(&self, rest: &[Key]) -> bool {
        let again: Vec<Key> = self.text().chars().map(Key::Char).chain([Key::Enter]).collect();
        let is_repeated = !self.is_empty() && rest.chunks(again.len()).all(|keys| again.starts_with(keys));
        !is_repeated && rest.iter().any(|key| matches!(key, Key::Char(_) | Key::Paste(_) | Key::OversizedPaste))
    }

    fn insert(&mut self, inserted: impl IntoIterator<Item = char>) {
        let tail = self.text.split_off(self.cursor);
        self.text.extend(inserted);
        self.cursor = self.text.len();
        self.text.extend(tail);
    }

    fn remove(&mut self, from: usize, to: usize) -> Vec<char> {
        let removed = self.text.drain(from..to).collect();
        self.cursor = from;
        // An empty line contains no pasted text.
        self.has_paste &= !self.text.is_empty();
        removed
    }

    fn word_end(&self) -> usize {
        let after = self.text.get(self.cursor..).unwrap_or_default();
        let word = after.iter().position(|c| !c.is_whitespace()).unwrap_or(after.len());
        let end = after.get(word..).unwrap_or_default().iter().position(|c| c.is_whitespace());
        self.cursor + end.map_or(after.len(), |end| word + end)
    }

    fn word_start(&self) -> usize {
        let before = self.text.get(..self.cursor).unwrap_or_default();
        let word = before.iter().rposition(|c| !c.is_whitespace()).unwrap_or(0);
        before.get(..word).unwrap_or_default().iter().rposition(|c| c.is_whitespace()).map_or(0, |space| space + 1)
    }

    /// The displayed text before and after the cursor. A long answer is shown as an excerpt with the cursor after it.
    pub(super) fn display(&self) -> (String, String) {
        let lines = self.text.iter().filter(|c| **c == '\n').count() + 1;
        if self.text.len() > SHOWN_CHARACTERS || lines > SHOWN_LINES {
            let excerpt: String = self.text.iter().take(EXCERPT).map(|c| if *c == '\n' { ' ' } else { *c }).collect();
            let bytes = self.text.iter().map(|c| c.len_utf8() as u64).sum();
            return (format!("{}… ({}, {})", display_text(&excerpt), count(lines, "line"), size(bytes)), String::new());
        }
        let part = |range: &[char]| display_text(&range.iter().collect::<String>());
        let (before, after) = self.text.split_at(self.cursor);
        (part(before), part(after))
    }
}

/// The displayed form of a text: control characters as codes, and each further line with a mark, so that no line looks
/// like output of the program.
fn display_text(text: &str) -> String {
    terminal_escape::escape(text, Paint::Plain).replace('\t', "    ").replace('\n', "\n  | ")
}

/// The cursor position after a text that begins at the left margin: the row, the column, and whether the last character
/// filled its row, so that the terminal leaves the cursor at the right margin.
pub(super) fn layout(text: &str, columns: usize) -> (usize, usize, bool) {
    let (mut row, mut column, mut is_full) = (0, 0, false);
    for c in text.chars() {
        if c == '\n' {
            (row, column, is_full) = (row + usize::from(!is_full), 0, false);
            continue;
        }
        let width = c.width().unwrap_or(0);
        if column + width > columns {
            (row, column) = (row + 1, 0);
        }
        column += width;
        is_full = column == columns;
        if is_full {
            (row, column) = (row + 1, 0);
        } else if width == 0 {
            // A combining mark stays with the last character of a full row.
            is_full = false;
        }
    }
    (row, column, is_full)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(keys: impl IntoIterator<Item = Key>) -> Line {
        let mut line = Line::default();
        keys.into_iter().for_each(|key| line.edit(key));
        line
    }

    fn typed(text: &str) -> Vec<Key> {
        text.chars().map(Key::Char).collect()
    }

    #[test]
    fn keys_edit_where_the_cursor_is() {
        for (keys, text) in [
            (vec![Key::Erase], "one two thre"),
            (vec![Key::EraseWord], "one two "),
            (vec![Key::EraseWord, Key::EraseWord], "one "),
            (vec![Key::EraseLine], ""),
            (vec![Key::Left, Key::Left, Key::Erase], "one two thee"),
            (vec![Key::Home, Key::Delete, Key::Char('O')], "One two three"),
            (vec![Key::Home, Key::Erase, Key::EraseWord, Key::End, Key::Delete, Key::Right], "one two three"),
            (vec![Key::Home, Key::Paste("zero\n".into())], "zero\none two three"),
        ] {
            assert_eq!(line([typed("one two three"), keys.clone()].concat()).text(), text, "{keys:?}");
        }
    }

    #[test]
    fn what_is_erased_can_be_inserted_again() {
        let moved = [Key::WordLeft, Key::EraseRest, Key::Home, Key::InsertErased, Key::Char(' ')];
        assert_eq!(line([typed("one two three"), moved.to_vec()].concat()).text(), "three one two ");
        let moved = [Key::Home, Key::WordRight, Key::Char('!'), Key::WordRight, Key::Erase];
        assert_eq!(line([typed("one two three"), moved.to_vec()].concat()).text(), "one! tw three");
    }

    #[test]
    fn the_cursor_moves_between_the_lines_of_a_text() {
        let mut line = line([Key::Paste("one two\nto\n\nfour".into())]);
        let mut at = |is_back, mark: char| {
            let moved = line.step(is_back);
            line.edit(Key::Char(mark));
            let text = line.text();
            line.edit(Key::Erase);
            (moved, text)
        };
        assert_eq!(at(true, '1'), (true, "one two\nto\n1\nfour".into()));
        assert_eq!(at(true, '2'), (true, "one two\n2to\n\nfour".into()));
        assert_eq!(at(true, '3'), (true, "3one two\nto\n\nfour".into()));
        assert_eq!(at(true, '4'), (false, "4one two\nto\n\nfour".into()));
        line.edit(Key::End);
        assert!(line.step(false));
        line.edit(Key::Char('!'));
        assert_eq!(line.text(), "one two\nto!\n\nfour");
        line.edit(Key::Home);
        line.edit(Key::Delete);
        assert_eq!((line.step(false), line.step(false), line.step(false)), (true, true, false));
        line.edit(Key::Char('>'));
        assert_eq!(line.text(), "one two\no!\n\n>four");
    }

    #[test]
    fn a_repeated_key_drops_no_input_but_another_line_does() {
        let drops = |text: &str, rest: &str| {
            let rest: Vec<Key> = rest.chars().map(|c| if c == '\n' { Key::Enter } else { Key::Char(c) }).collect();
            line(typed(text)).drops(&rest)
        };
        for rest in ["", "a", "a\n", "a\na\n", "\n"] {
            assert!(!drops("a", rest), "{rest:?}");
        }
        for rest in ["b\n", "a\nb", "touch pwned\n"] {
            assert!(drops("a", rest), "{rest:?}");
        }
        assert!(!drops("", "\n\n") && drops("", "x"));
    }

    #[test]
    fn a_line_break_is_inserted_by_its_key_and_by_a_backslash() {
        let mut line = line([typed("one\\"), vec![Key::Break, Key::Erase]].concat());
        assert!(line.continue_after_backslash() && !line.continue_after_backslash());
        typed("two").into_iter().chain([Key::Break]).for_each(|key| line.edit(key));
        assert_eq!(line.text(), "one\ntwo\n");
        line.replace("all new");
        line.edit(Key::Char('!'));
        assert_eq!(line.text(), "all new!");
    }

    #[test]
    fn an_erased_paste_is_forgotten() {
        let paste = Key::Paste("a\nb".into());
        assert!(line([paste.clone(), Key::Char('c')]).has_paste());
        assert!(!line([paste, Key::EraseLine, Key::Char('c')]).has_paste());
    }

    #[test]
    fn pasted_control_characters_are_shown_by_their_codes() {
        let (before, after) = line([Key::Paste("a\u{1b}[2J\nb\u{202e}".into()), Key::Left]).display();
        assert_eq!((before.as_str(), after.as_str()), ("a\\u{1b}[2J\n  | b", "\\u{202e}"));
    }

    #[test]
    fn a_long_answer_is_shown_as_an_excerpt_and_taken_in_full() {
        let line = line([Key::Paste("{\"a\": 1}\n".repeat(1_000))]);
        let (shown, _) = line.display();
        assert!(shown.len() < 500 && shown.ends_with("… (1001 lines, 9 kB)"), "{shown}");
        assert_eq!(line.text().len(), 9_000);
    }

    #[test]
    fn rows_are_counted_as_a_terminal_breaks_them() {
        for (text, place) in [
            ("", (0, 0, false)),
            ("abc", (0, 3, false)),
            ("abcd", (1, 0, true)),
            ("abcde", (1, 1, false)),
            ("abcd\nx", (1, 1, false)),
            ("a\n\nb", (2, 1, false)),
            ("abc日", (1, 2, false)),
        ] {
            assert_eq!(layout(text, 4), place, "{text:?}");
        }
    }
}
