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

/// Takes the text, without the line ends after it, and whether Enter ended it.
pub(super) fn take() -> (String, bool) {
    let text = std::mem::take(&mut *typed()).text();
    let message = text.trim_end();
    (message.to_owned(), text.ends_with('\n') && !message.is_empty())
}
