//! Port of the prompts: where questions are shown and lines are read. The terminal is one, and tests bring a fake.

use std::io;

/// What a question takes for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Accepts {
    /// Text, typed or pasted.
    Text,
    /// A letter that decides. A paste never does.
    Key,
}

/// A line that was entered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::cli) struct Entry {
    /// The line without its end. A paste may bring line breaks into it.
    pub(in crate::cli) text: String,
    /// Whether any of it was pasted, as far as the terminal marks pastes.
    pub(in crate::cli) has_paste: bool,
    /// Whether more lines came at once with it, which were discarded.
    pub(in crate::cli) dropped: bool,
    /// Whether the end of the input came at once with it.
    pub(in crate::cli) is_last: bool,
}

/// Where questions are shown and lines are read.
pub(in crate::cli) trait Console {
    /// Shows a line, past the guard like everything that is printed.
    fn say(&mut self, text: &str) -> io::Result<()>;

    /// Discards what was typed before the question could be read. To be called when the question is on the screen.
    fn discard_typed_ahead(&mut self) -> io::Result<()>;

    /// One line; `None` at the end of the input. Fails when the prompt is withdrawn.
    fn line(&mut self, question: &str, accepts: Accepts) -> io::Result<Option<Entry>>;
}

/// Strict fake: these lines are entered one after another, and then the input ends.
#[cfg(test)]
pub(super) struct Script {
    entries: std::vec::IntoIter<Entry>,
    /// What was shown.
    pub(super) shown: String,
}

#[cfg(test)]
impl Script {
    pub(super) fn typing(typed: &str) -> Self {
        Self::of(typed.lines().map(|line| Entry { text: line.to_owned(), ..Entry::default() }).collect())
    }

    pub(super) fn of(entries: Vec<Entry>) -> Self {
        Self { entries: entries.into_iter(), shown: String::new() }
    }
}

#[cfg(test)]
impl Console for Script {
    fn say(&mut self, text: &str) -> io::Result<()> {
        self.shown.push_str(&crate::cli::guard::shown(text, crate::cli::paint::Paint::Plain));
        self.shown.push('\n');
        Ok(())
    }

    fn discard_typed_ahead(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn line(&mut self, question: &str, _: Accepts) -> io::Result<Option<Entry>> {
        self.shown.push_str(&crate::cli::guard::shown(question, crate::cli::paint::Paint::Plain));
        Ok(self.entries.next())
    }
}
