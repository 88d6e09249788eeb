//! Lines on a child's stdout that are not messages. They belong on stderr: stricter clients fail on them, and a
//! request whose answer is malformed must be reported instead of waiting in vain. The first lines are kept, because
//! they show which component writes them.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde::Serialize;
use toolgate_core::redact::Secrets;

use crate::transport::character_at;

const KEPT_LINES: usize = 5;
const KEPT_CHARS: usize = 200;

/// Lines on stdout that are not messages of the protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StdoutNoise {
    pub lines: u64,
    /// The first few lines, shortened and redacted.
    pub first: Vec<String>,
}

impl StdoutNoise {
    /// Whether there are no such lines.
    pub fn is_none(&self) -> bool {
        self.lines == 0
    }

    /// A message about these lines, if there are any.
    pub fn describe(&self) -> Option<String> {
        let first = self.first.first()?;
        let lines = self.lines;
        Some(format!("it writes log lines to stdout ({lines} so far, the first: `{first}`); they belong on stderr"))
    }
}

/// The recorded lines, shared between the reader and the error messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Noise {
    heard: Arc<Mutex<StdoutNoise>>,
    cut_off: Arc<OnceLock<String>>,
    secrets: Secrets,
}

impl Noise {
    /// A recorder for a child that received these secrets.
    pub(super) fn without(secrets: Secrets) -> Self {
        Self { secrets, ..Self::default() }
    }

    /// Records a line, shortened.
    pub(crate) fn note(&self, line: &[u8]) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.lines += 1;
        if heard.first.len() < KEPT_LINES {
            heard.first.push(self.beginning(line));
        }
    }

    /// Records the beginning of a message that the end of stdout cut off.
    pub(crate) fn note_cut_off(&self, text: &[u8]) {
        let _ = self.cut_off.set(self.beginning(text));
    }

    /// The beginning of that message.
    pub(super) fn cut_off(&self) -> Option<&str> {
        self.cut_off.get().map(String::as_str)
    }

    /// Redacts before shortening: half a secret is still a secret. A message may be large, and only its beginning counts.
    fn beginning(&self, text: &[u8]) -> String {
        let text = text.trim_ascii_start();
        let end = character_at(text, 4 * KEPT_CHARS + self.secrets.longest());
        let text = text.get(..end).unwrap_or(text);
        let text = self.secrets.redacted_so_far(String::from_utf8_lossy(text).trim()).into_owned();
        match text.char_indices().nth(KEPT_CHARS) {
            Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
            None => text,
        }
    }

    /// The text without the child's secrets.
    pub(crate) fn redacted(&self, text: &str) -> String {
        self.secrets.redacted(text).into_owned()
    }

    /// The recorded lines.
    pub(crate) fn lines(&self) -> StdoutNoise {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use toolgate_core::redact::{SecretsBuilder, Style};

    use super::*;

    #[test]
    fn a_secret_cut_inside_a_character_is_redacted() {
        let secret = "é".repeat(20);
        let noise = Noise::without(SecretsBuilder::of_values([&*secret]).build(Style::MESSAGE));
        for before in 800..840 {
            let text = format!("{}{secret}", "\u{1}".repeat(before));
            assert!(!noise.beginning(text.as_bytes()).contains("éé"), "{before} bytes before it");
        }
    }

    #[test]
    fn parts_of_a_secret_beside_an_omission_are_redacted() {
        let noise = Noise::without(SecretsBuilder::of_values(["sk-0123456789"]).build(Style::MESSAGE));
        assert_eq!(noise.redacted("it is no JSON: `{key: sk-01234...`"), "it is no JSON: `{key: [redacted]...`");
    }
}
