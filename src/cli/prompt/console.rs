//! Console port of the prompts: shows questions and reads lines. The terminal implements it, and so does a test fake.

use std::io;

use super::menu::Menu;
use crate::cli::paint::Paint;

/// The input that a question accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Accepts<'a> {
    /// Text, typed or pasted.
    Text,
    /// One of the lines of a text that only the end of the input ends.
    Lines,
    /// Text that is there already, to be changed.
    Change(&'a str),
    /// The message that was being typed when another question came.
    Draft,
    /// A letter that decides, without Enter. Pasted text is rejected.
    Key,
    /// The number of an option, or text. The arrow keys mark an option, and Enter on an empty line takes it.
    Choice(&'a Menu),
    /// A message of a conversation: text with history and completion. Alt-Enter, or Enter after a backslash, begins
    /// another line of it.
    Message(&'a Recall),
}

impl Accepts<'_> {
    /// Whether Esc leaves the question, as the end of the input does. A message or a text of several lines is not lost by it.
    pub(super) fn is_left_by_escape(self) -> bool {
        match self {
            Self::Text | Self::Change(_) | Self::Draft | Self::Key | Self::Choice(_) => true,
            Self::Lines | Self::Message(_) => false,
        }
    }
}

/// What the keys of a message recall: Up and Down the earlier messages, Tab the words that complete its beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::cli) struct Recall {
    /// Oldest first.
    pub(in crate::cli) messages: Vec<String>,
    pub(in crate::cli) words: Vec<String>,
    /// The command that Shift-Tab enters.
    pub(in crate::cli) back_tab: Option<String>,
    /// Whether a message that Enter ended while a run executed is sent without another key.
    pub(in crate::cli) sends_typed_ahead: bool,
    /// The commands that are executed in any case.
    pub(in crate::cli) choices: &'static [&'static str],
}

/// The longest common beginning of the words that begin with this text, if it is longer than the text.
pub(super) fn completion(words: &[String], text: &str) -> Option<String> {
    let mut words = words.iter().filter(|word| word.starts_with(text));
    let first = words.next()?;
    let common = words.fold(first.as_str(), |common, word| {
        let same = common.char_indices().zip(word.chars()).find(|((_, a), b)| a != b);
        let end = same.map_or(common.len().min(word.len()), |((at, _), _)| at);
        common.get(..end).unwrap_or_default()
    });
    (common.len() > text.len()).then(|| common.to_owned())
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

    /// Begins a question: what is shown from now on belongs to it.
    fn begin_question(&mut self) {}

    /// Discards input typed before the user could read the question, except a text in progress, which the user ends first.
    /// Call it when the question is on the screen.
    fn discard_typed_ahead(&mut self) -> io::Result<()>;

    /// Lets the user change a text in the editor that the environment names (`VISUAL`, `EDITOR`); `None` without one. The
    /// editor shows the error that the text had before.
    fn editor(&mut self, text: &str, error: Option<&str>) -> io::Result<Option<String>>;

    /// Reads one line; `None` if the person left the question, with Esc or at the end of the input. Fails if the prompt is
    /// withdrawn.
    fn line(&mut self, question: &str, accepts: Accepts<'_>) -> io::Result<Option<Entry>>;
}

/// Strict fake console: enters these lines one after another, then ends the input. A line with an ESC alone is the key.
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

    fn editor(&mut self, _: &str, _: Option<&str>) -> io::Result<Option<String>> {
        Ok(None)
    }

    fn line(&mut self, question: &str, accepts: Accepts<'_>) -> io::Result<Option<Entry>> {
        if let Accepts::Choice(menu) = accepts {
            self.shown.push_str(&menu.text(menu.usual(), 80, usize::MAX));
        }
        self.shown.push_str(&crate::cli::terminal_escape::escape(question, Paint::Plain));
        Ok(self.entries.next().filter(|entry| entry.text != "\u{1b}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_completed_as_far_as_it_is_clear() {
        let words = ["/tools", "/trace", "/model"].map(str::to_owned);
        let complete = |text| completion(&words, text);
        assert_eq!([complete("/m"), complete("/tr")], [Some("/model".into()), Some("/trace".into())]);
        assert_eq!([complete("/t"), complete("/x"), complete("/model")], [None, None, None]);
        assert_eq!(complete(""), Some("/".into()));
    }
}
