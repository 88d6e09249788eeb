//! Text typed while a run executes: the next message prompt begins with it, or sends it. Prompts that ask for a decision
//! never see it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::keys::Key;
use super::line::Line;

static TYPED: Mutex<Line> = Mutex::new(Line::EMPTY);

fn typed() -> MutexGuard<'static, Line> {
    TYPED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Applies a key. Enter begins another line; at the end of the text, it also sends the message after a turn that completes.
pub(super) fn edit(key: Key) {
    typed().edit(if key == Key::Enter { Key::Break } else { key });
}

/// The text that the user typed while a run executes, for the next message.
pub(in crate::cli) fn text() -> String {
    typed().text()
}

/// Keeps a text for the next message.
pub(super) fn put(text: &str) {
    typed().replace(text);
}

/// Takes the first entry, without the line ends after it, and whether Enter ended it. A command is an entry of its own; other
/// lines are one message.
pub(super) fn take() -> (String, bool) {
    let mut typed = typed();
    let text = std::mem::take(&mut *typed).text();
    let (entry, rest) = text.split_at(end_of_entry(&text));
    typed.replace(rest);
    let message = entry.trim_end();
    (message.to_owned(), entry.ends_with('\n') && !message.is_empty())
}

/// The length of the first entry, with the line end after it.
fn end_of_entry(text: &str) -> usize {
    let line_ends = text.match_indices('\n').map(|(at, _)| at + 1);
    let is_command = |at: usize| text.get(at..).is_some_and(|rest| rest.starts_with('/'));
    let mut ends = line_ends.filter(|end| is_command(0) || is_command(*end));
    ends.next().unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_an_entry_of_its_own() {
        let first = |text: &'static str| text.split_at(end_of_entry(text)).0;
        assert_eq!(
            [first("one\ntwo\n"), first("one\n/cost\n"), first("/cost\none\n")],
            ["one\ntwo\n", "one\n", "/cost\n"]
        );
        assert_eq!([first("/cost"), first(""), first("a /b\n")], ["/cost", "", "a /b\n"]);
    }
}
