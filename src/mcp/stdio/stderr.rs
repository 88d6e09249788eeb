//! What a child wrote to stderr last: the one place where a server that failed says why. Bounded, because some servers
//! log without end; never taken for a failure, because some print banners. It is quoted in journals and to models, so
//! the secrets the child was given are taken out: a server that starts badly likes to print its environment.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use secrecy::{ExposeSecret, SecretString};
use tokio::io::{AsyncRead, AsyncReadExt};

const MAX_LINES: usize = 64;
const MAX_BYTES: usize = 8 * 1024;
const SHORTEST_SECRET: usize = 8;

/// The last lines, shared between the task that reads and those who explain.
#[derive(Clone, Debug, Default)]
pub(in crate::mcp) struct StderrTail {
    tail: Arc<Mutex<Tail>>,
    secrets: Arc<[SecretString]>,
}

#[derive(Debug, Default)]
struct Tail {
    lines: VecDeque<String>,
    bytes: usize,
    unfinished: Vec<u8>,
}

impl StderrTail {
    /// Of a child that was given these values. Those that are too short to be secrets (`1`, `debug`) are shown.
    pub(super) fn without<'a>(secrets: impl IntoIterator<Item = &'a SecretString>) -> Self {
        let is_secret = |value: &&SecretString| value.expose_secret().len() >= SHORTEST_SECRET;
        Self { secrets: secrets.into_iter().filter(is_secret).cloned().collect(), tail: Arc::default() }
    }

    /// Reads to the end of the stream.
    pub(super) async fn fill_from(self, mut stderr: impl AsyncRead + Unpin) {
        let mut chunk = [0u8; 2048];
        while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
            self.with(|tail| tail.push(chunk.get(..read).unwrap_or_default()));
        }
    }

    /// The last lines, an unfinished one included.
    pub(in crate::mcp) fn lines(&self) -> Vec<String> {
        self.with(|tail| {
            let unfinished = (!tail.unfinished.is_empty()).then(|| text(&tail.unfinished));
            tail.lines.iter().cloned().chain(unfinished).map(|line| self.redacted(line)).collect()
        })
    }

    fn redacted(&self, line: String) -> String {
        self.secrets.iter().fold(line, |line, secret| line.replace(secret.expose_secret(), "[redacted]"))
    }

    fn with<T>(&self, look: impl FnOnce(&mut Tail) -> T) -> T {
        look(&mut self.tail.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Tail {
    fn push(&mut self, chunk: &[u8]) {
        for byte in chunk {
            match byte {
                b'\n' => self.finish_line(),
                _ if self.unfinished.len() == MAX_BYTES => {
                    self.finish_line();
                    self.unfinished.push(*byte);
                }
                _ => self.unfinished.push(*byte),
            }
        }
    }

    fn finish_line(&mut self) {
        let line = text(&std::mem::take(&mut self.unfinished));
        self.bytes += line.len();
        self.lines.push_back(line);
        while self.lines.len() > MAX_LINES || (self.bytes > MAX_BYTES && self.lines.len() > 1) {
            self.bytes -= self.lines.pop_front().map_or(0, |line| line.len());
        }
    }
}

fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line).trim_end_matches('\r').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn tail_of(bytes: &[u8]) -> Vec<String> {
        let tail = StderrTail::default();
        tail.clone().fill_from(bytes).await;
        tail.lines()
    }

    #[tokio::test]
    async fn the_last_lines_are_kept_and_an_unfinished_one_is_among_them() {
        assert_eq!(tail_of(b"one\r\ntwo\nthree").await, ["one", "two", "three"]);
    }

    #[tokio::test]
    async fn what_the_child_was_given_in_confidence_is_not_repeated() {
        let given: Vec<SecretString> = ["sk-0123456789", "debug"].map(SecretString::from).into();
        let tail = StderrTail::without(&given);
        tail.clone().fill_from(&b"KEY=sk-0123456789 LEVEL=debug\nunfinished sk-0123456789"[..]).await;
        assert_eq!(tail.lines(), ["KEY=[redacted] LEVEL=debug", "unfinished [redacted]"]);
    }

    #[tokio::test]
    async fn a_server_that_logs_without_end_is_cut_to_its_last_words() {
        let many: String = (0..1000).map(|number| format!("line {number}\n")).collect();
        let lines = tail_of(many.as_bytes()).await;
        assert_eq!(lines.len(), MAX_LINES);
        assert_eq!(lines.last().map(String::as_str), Some("line 999"));

        let endless = vec![b'x'; 10 * MAX_BYTES];
        let lines = tail_of(&endless).await;
        assert!(lines.iter().map(String::len).sum::<usize>() <= 2 * MAX_BYTES, "{} lines", lines.len());
    }
}
