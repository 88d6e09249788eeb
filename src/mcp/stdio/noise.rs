//! What a child writes to stdout that is no message. It belongs on stderr: clients that are less patient break on it, and
//! an answer that is not one is never waited for in vain without somebody being told. The beginning is kept, because the
//! first such line says what writes them.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::secrets::Secrets;
use crate::mcp::status::StdoutNoise;

const KEPT_LINES: usize = 5;
const KEPT_CHARS: usize = 200;

/// What was overheard so far, shared between the stream and those who explain.
#[derive(Clone, Debug, Default)]
pub(in crate::mcp) struct Noise {
    heard: Arc<Mutex<StdoutNoise>>,
    cut_off: Arc<OnceLock<String>>,
    secrets: Secrets,
}

impl Noise {
    /// Of a child that was given these secrets.
    pub(super) fn without(secrets: Secrets) -> Self {
        Self { secrets, ..Self::default() }
    }

    /// Notes a line, of which the beginning suffices.
    pub(in crate::mcp) fn note(&self, line: &[u8]) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.lines += 1;
        if heard.first.len() < KEPT_LINES {
            heard.first.push(self.beginning(line));
        }
    }

    /// Notes the beginning of a message in the middle of which stdout ended.
    pub(in crate::mcp) fn note_cut_off(&self, text: &[u8]) {
        let _ = self.cut_off.set(self.beginning(text));
    }

    /// The beginning of that message.
    pub(super) fn cut_off(&self) -> Option<&str> {
        self.cut_off.get().map(String::as_str)
    }

    /// Redacted before it is cut: half a secret is one too.
    fn beginning(&self, text: &[u8]) -> String {
        let text = self.secrets.redacted_so_far(String::from_utf8_lossy(text).trim());
        match text.char_indices().nth(KEPT_CHARS) {
            Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
            None => text,
        }
    }

    /// The text without the secrets of the child.
    pub(in crate::mcp) fn redacted(&self, text: &str) -> String {
        self.secrets.redacted_so_far(text)
    }

    /// What was heard.
    pub(in crate::mcp) fn heard(&self) -> StdoutNoise {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
