//! Text that is being typed for the next message when a question comes, or when a turn did not complete. None of its letters
//! decides, and none is lost, except that Esc drops a few letters that can only have been decisions.

use std::io;
use std::time::{Duration, Instant};

use super::keys::Key;
use super::{PromptEvent, Terminal, typed_ahead};
use crate::cli::prompt::console::{Accepts, Console as _};

/// The minimum time to read a question and answer it. A key that is pressed twice arrives within this time.
const READING: Duration = Duration::from_millis(300);
/// The longest pause between two keys of a text.
const TYPING: Duration = Duration::from_millis(800);
/// The longest pause between a letter and the next one of the same word.
const NEXT_LETTER: Duration = Duration::from_millis(400);
/// The letters that decide.
const DECISIONS: &str = "abdegloqrswxyn";
/// The most letters that are taken for decisions about several questions.
const MOST_DECISIONS: usize = 3;
const QUESTION: &str =
    "  end your message first, then decide: Enter sends it, Esc keeps it for later, and drops a few letters\n> ";

impl Terminal {
    /// Drops the keys that were pressed before the question could be read. A text among them, or one that was being typed
    /// before, is ended as a message.
    pub(super) fn end_typing(&mut self) -> io::Result<()> {
        loop {
            if !typed_ahead::is_in_progress() {
                let early = self.early_keys()?;
                if !is_text(&early) {
                    let has_letter = early.iter().any(|key| matches!(key, Key::Char(_)));
                    if std::mem::take(&mut self.is_repeated) || has_letter {
                        self.say(
                            "  a key came before this question could be read, and decided nothing; press it again",
                        )?;
                    }
                    return Ok(());
                }
                early.into_iter().for_each(typed_ahead::edit);
            }
            if self.line(QUESTION, Accepts::Draft)?.is_none() {
                if are_decisions(&typed_ahead::line()) {
                    typed_ahead::put("");
                    self.say("  dropped; decide now")?;
                }
                typed_ahead::keep_line();
            }
        }
    }

    /// The keys that are pressed within the time to read a question, or within that of a text after the first of them. Ends
    /// at once when they are a text, which is not lost if the question is withdrawn.
    fn early_keys(&mut self) -> io::Result<Vec<Key>> {
        let (mut until, mut early) = (Instant::now() + READING, Vec::new());
        while let Some(rest) = until.checked_duration_since(Instant::now()) {
            if let PromptEvent::Keys(keys) = self.next_event(Some(rest))? {
                // A key that is held down repeats until it is released.
                until = until.max(Instant::now() + if early.is_empty() { TYPING } else { READING });
                early.extend(self.rest_of_burst(keys)?);
                if is_text(&early) {
                    break;
                }
            }
        }
        Ok(early)
    }

    /// The keys after a letter that decides: the rest of its burst, and those that follow like the letters of a text.
    pub(super) fn rest_of_text(&mut self, first: &Key, keys: impl IntoIterator<Item = Key>) -> io::Result<Vec<Key>> {
        let mut rest = self.rest_of_burst(keys)?;
        let until = Instant::now() + NEXT_LETTER;
        while let Some(wait) = until.checked_duration_since(Instant::now())
            && !is_text_from(first, &rest)
        {
            if let PromptEvent::Keys(keys) = self.next_event(Some(wait))? {
                rest.extend(self.rest_of_burst(keys)?);
            }
        }
        Ok(rest)
    }

    /// Whether a letter at a question and the keys after it are a message that a person types. Lines that arrive together are
    /// pasted.
    pub(super) fn is_message(first: &Key, rest: &[Key]) -> bool {
        is_text_from(first, rest) && !rest.contains(&Key::Enter)
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

fn is_text_from(first: &Key, rest: &[Key]) -> bool {
    is_text(&[std::slice::from_ref(first), rest].concat())
}

/// Whether a text is a few letters that decide, pressed for the questions that follow. As a message, Enter would send it.
fn are_decisions(text: &str) -> bool {
    text.chars().count() <= MOST_DECISIONS && text.chars().all(|letter| DECISIONS.contains(letter))
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
    fn a_few_letters_that_decide_are_not_kept_as_a_message() {
        for (text, expected) in [("ad", true), ("aad", true), ("also", false), ("in", false), ("a m", false)] {
            assert_eq!(are_decisions(text), expected, "{text}");
        }
    }

    #[test]
    fn a_letter_pressed_twice_is_no_text() {
        let keys = |text: &str| text.chars().map(Key::Char).collect::<Vec<_>>();
        assert!(!is_text(&[]) && !is_text(&keys("aa")) && !is_text(&[keys("a"), vec![Key::Enter]].concat()));
        assert!(is_text(&keys("make")));
        assert!(
            Terminal::is_message(&Key::Char('s'), &keys("o")) && !Terminal::is_message(&Key::Char('s'), &keys("s"))
        );
        assert!(!Terminal::is_message(&Key::Char('t'), &[keys("ouch pwned"), vec![Key::Enter]].concat()));
    }
}
