//! Console port of the prompts: shows questions and reads lines. The terminal implements it, and so does a test fake.

use std::io;

use crate::cli::paint::Paint;

/// The input that a question accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Accepts {
    /// Text, typed or pasted.
    Text,
    /// A letter that decides. Pasted text is rejected.
    Key,
}

/// An entered line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::cli) struct Entry {
    /// The line without its line end. A paste may contain line breaks.
    pub(in crate::cli) text: String,
    /// Whether any of it was pasted, if the terminal marks pastes.
    pub(in crate::cli) has_paste: bool,
    /// Whether further lines arrived in the same burst and were discarded.
    pub(in crate::cli) dropped: bool,
    /// Whether the end of the input arrived in the same burst.
    pub(in crate::cli) is_last: bool,
}

/// A console that shows questions and reads lines.
pub(in crate::cli) trait Console {
    /// Whether lines may have colours.
    fn paint(&self) -> Paint;

    /// Shows a line, escaped like all output.
    fn say(&mut self, text: &str) -> io::Result<()>;

    /// Discards input typed before the user could read the question. Call it when the question is on the screen.
    fn discard_typed_ahead(&mut self) -> io::Result<()>;

    /// Reads one line; `None` at the end of the input. Fails if the prompt is withdrawn.
    fn line(&mut self, question: &str, accepts: Accepts) -> io::Result<Option<Entry>>;
}

/// Strict fake console: enters these lines one after another, then ends the input.
#[cfg(test)]
pub(super) struct Script {
    entries: std::vec::IntoIter<Entry>,
    /// The output so far.
    pub(super) shown: String,
}

#[cfg(test)]
impl Script {
    pub(super) fn typing(typed: &str) -> Self {
        Self::new(typed.lines().map(|line| Entry { text: line.to_owned(), ..Entry::default() }).collect())
    }

    pub(super) fn new(entries: Vec<Entry>) -> Self {
        Self { entries: entries.into_iter(), shown: String::new() }
    }
}

#[cfg(test)]
impl Console for Script {
    fn paint(&self) -> Paint {
        Paint::Plain
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        self.shown.push_str(&crate::cli::terminal_escape::escape(text, Paint::Plain));
        self.shown.push('\n');
        Ok(())
    }

    fn discard_typed_ahead(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn line(&mut self, question: &str, _: Accepts) -> io::Result<Option<Entry>> {
        self.shown.push_str(&crate::cli::terminal_escape::escape(question, Paint::Plain));
        Ok(self.entries.next())
    }
}
