//! Text typed while a run executes. What Enter ended is sent to the run, or by the next message prompt; the rest is where
//! that prompt begins. Prompts that ask for a decision never see it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::keys::Key;
use super::line::Line;

static TYPED: Mutex<Typed> = Mutex::new(Typed { entries: VecDeque::new(), line: Line::EMPTY, is_kept: false });

fn typed() -> MutexGuard<'static, Typed> {
    TYPED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Default)]
struct Typed {
    /// What Enter ended, as long as it is not sent.
    entries: VecDeque<String>,
    line: Line,
    /// Whether Esc kept the line for the next message, and no key has changed it since.
    is_kept: bool,
}

impl Typed {
    fn edit(&mut self, key: Key) {
        self.is_kept = false;
        if key == Key::Erase && self.line.is_empty() {
            self.line.replace(&self.entries.pop_back().unwrap_or_default());
        } else if key != Key::Enter {
            self.line.edit(key);
        } else if !self.line.continue_after_backslash() {
            let entry = self.take_line();
            self.entries.extend(Some(entry).filter(|entry| !entry.trim().is_empty()));
        }
    }

    fn text(&self) -> String {
        let entries: String = self.entries.iter().map(|entry| format!("{entry}\n")).collect();
        entries + &self.line.text()
    }

    fn take(&mut self) -> (String, bool) {
        let Some(mut entry) = self.entries.pop_front() else { return (self.take_line(), false) };
        while !is_command(&entry)
            && let Some(next) = self.entries.pop_front_if(|next| !is_command(next))
        {
            entry = entry + "\n" + &next;
        }
        (entry, true)
    }

    fn take_line(&mut self) -> String {
        std::mem::take(&mut self.line).text()
    }

    fn take_command(&mut self, names: &[&str]) -> Option<String> {
        let is_named =
            |entry: &String| entry.split(char::is_whitespace).next().is_some_and(|word| names.contains(&word));
        self.entries.remove(self.entries.iter().position(is_named)?)
    }

    fn restore(&mut self) -> (String, Vec<String>) {
        let line = Some(self.take_line()).filter(|line| !line.is_empty());
        let (commands, mut messages): (Vec<String>, Vec<String>) =
            self.entries.drain(..).partition(|entry| is_command(entry));
        messages.extend(line);
        (messages.join("\n"), commands)
    }
}

/// Whether an entry has the form of a command: its first word is a slash and letters.
fn is_command(entry: &str) -> bool {
    let word = entry.split(char::is_whitespace).next().and_then(|word| word.strip_prefix('/'));
    word.is_some_and(|word| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase()))
}

/// Applies a key.
pub(super) fn edit(key: Key) {
    typed().edit(key);
}

/// The text that the user typed while a run executes, with a line end after each entry that Enter ended.
pub(in crate::cli) fn text() -> String {
    typed().text()
}

/// Keeps a text for the next message.
pub(super) fn put(text: &str) {
    typed().line.replace(text);
}

/// The first entry, if it is a message.
pub(in crate::cli) fn first_message() -> Option<String> {
    typed().entries.front().filter(|entry| !is_command(entry)).cloned()
}

/// Takes the first entry if it is this one.
pub(in crate::cli) fn take_entry(entry: &str) -> bool {
    typed().entries.pop_front_if(|first| first == entry).is_some()
}

/// The entries that wait, and the line that no Enter has ended.
pub(in crate::cli) fn shown() -> (Vec<String>, String) {
    let typed = typed();
    (typed.entries.iter().cloned().collect(), typed.line.text())
}

/// Puts an entry back that could not be sent.
pub(in crate::cli) fn put_back(entry: String) {
    typed().entries.push_front(entry);
}

/// Takes what the next prompt sends, or begins with, and whether Enter ended it. A command is an entry of its own; other
/// entries are one message.
pub(super) fn take() -> (String, bool) {
    typed().take()
}

/// Takes the first entry that is one of these commands.
pub(super) fn take_command(names: &[&str]) -> Option<String> {
    typed().take_command(names)
}

/// Takes the text of all that was typed, which is not sent, and apart from it the commands.
pub(super) fn restore() -> (String, Vec<String>) {
    typed().restore()
}

/// The text that no Enter has ended.
pub(super) fn line() -> String {
    typed().line.text()
}

/// Whether the line has text that Esc has not kept for the next message.
pub(super) fn is_in_progress() -> bool {
    let typed = typed();
    !typed.is_kept && !typed.line.is_empty()
}

/// Keeps the line for the next message. The next key that changes it ends that.
pub(super) fn keep_line() {
    typed().is_kept = true;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typing(text: &str) -> Typed {
        let mut typed = Typed::default();
        text.chars().for_each(|c| typed.edit(if c == '\n' { Key::Enter } else { Key::Char(c) }));
        typed
    }

    #[test]
    fn a_command_is_an_entry_of_its_own() {
        let first = |text| typing(text).take();
        for (text, entry) in [("one\ntwo\n", "one\ntwo"), ("one\n/cost\n", "one"), ("/cost\none\n", "/cost")] {
            assert_eq!(first(text), (entry.to_owned(), true), "{text}");
        }
        for text in ["/cost", "", "a /b"] {
            assert_eq!(first(text), (text.to_owned(), false));
        }
    }

    #[test]
    fn what_is_not_sent_is_restored_without_its_commands() {
        let mut typed = typing("one\n/model big\n/new\ntwo");
        assert_eq!(typed.take_command(&["/model"]), Some("/model big".to_owned()));
        assert_eq!(typed.take_command(&["/model"]), None);
        assert_eq!(typed.restore(), ("one\ntwo".to_owned(), vec!["/new".to_owned()]));
        assert_eq!(typed.text(), "");
        let mut typed = typing("one\ntwo");
        assert_eq!([typed.take(), typed.take()], [("one".into(), true), ("two".into(), false)]);
    }

    #[test]
    fn a_backslash_before_enter_goes_on_and_erasing_comes_back_to_an_entry() {
        assert_eq!(typing("one\\\ntwo\n").text(), "one\ntwo\n");
        let mut typed = typing("/cots\n");
        (0..3).for_each(|_| typed.edit(Key::Erase));
        assert_eq!(typed.text(), "/co");
    }
}
