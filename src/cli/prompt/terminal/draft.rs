//! Text that is being typed for the next message when a question comes, or when a turn did not complete. None of its letters
//! decides, and none is lost.

use std::io;
use std::time::{Duration, Instant};

use super::keys::Key;
use super::{PromptEvent, Terminal, typed_ahead};
use crate::cli::prompt::console::{Accepts, Console as _};

/// The minimum time to read a question and answer it. A key that is pressed twice arrives within this time.
const READING: Duration = Duration::from_millis(300);
/// The longest pause between two keys of a text.
const TYPING: Duration = Duration::from_millis(800);
const QUESTION: &str = "  end your message first, then decide: Enter sends it, Esc keeps it for later\n> ";

impl Terminal {
    /// Drops the keys that were pressed before the question could be read. A text among them, or one that was being typed
    /// before, is ended as a message.
    pub(super) fn end_typing(&mut self) -> io::Result<()> {
        let early = self.early_keys()?;
        if typed_ahead::has_line() || is_text(&early) {
            early.into_iter().for_each(typed_ahead::edit);
        }
        while typed_ahead::has_line() {
            let ended = self.line(QUESTION, Accepts::Draft)?;
            let is_kept = ended.is_none();
            if let Some(entry) = ended {
                typed_ahead::put(&entry.text);
                typed_ahead::edit(Key::Enter);
            }
            self.early_keys()?;
            if is_kept {
                break;
            }
        }
        Ok(())
    }

    /// The keys that are pressed within the time to read a question, and those that follow without a pause.
    fn early_keys(&mut self) -> io::Result<Vec<Key>> {
        let (mut until, mut early) = (Instant::now() + READING, Vec::new());
        while let Some(rest) = until.checked_duration_since(Instant::now()) {
            if let PromptEvent::Keys(keys) = self.next_event(Some(rest))? {
                early.extend(self.rest_of_burst(keys)?);
                until = until.max(Instant::now() + TYPING);
            }
        }
        Ok(early)
    }

    /// The text that was typed and not sent, for the next message. Commands in it are dropped, and named.
    pub(super) fn restored(&mut self) -> io::Result<String> {
        let (text, commands) = typed_ahead::restore();
        if !commands.is_empty() {
            self.say(&format!("not executed: {}", commands.join(", ")))?;
        }
        Ok(text)
    }
}

/// Whether these keys are a text: more than one letter that was pressed several times.
fn is_text(keys: &[Key]) -> bool {
    let mut letters: Vec<&Key> = keys.iter().filter(|key| matches!(key, Key::Char(_) | Key::Paste(_))).collect();
    letters.dedup();
    letters.len() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_pressed_twice_is_no_text() {
        let keys = |text: &str| text.chars().map(Key::Char).collect::<Vec<_>>();
        assert!(!is_text(&[]) && !is_text(&keys("aa")) && !is_text(&[keys("a"), vec![Key::Enter]].concat()));
        assert!(is_text(&keys("make")));
    }
}
