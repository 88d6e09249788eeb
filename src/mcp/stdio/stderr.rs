//! Last lines of a child's stderr, the one place where a failed server states the reason. Bounded, because some
//! servers log without end; never treated as a failure, because some print banners. Journals and models receive quotes
//! of it, so the child's secrets are redacted: a server that fails to start often prints its environment.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt};
use toolgate_core::redact::Secrets;

const MAX_LINES: usize = 64;
const MAX_BYTES: usize = 8 * 1024;
/// How many frames of a stack trace are kept. Some languages print the reason above the stack, where it would be lost.
const MAX_FRAMES: usize = 3;

/// The last lines, shared between the reader and the error messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct StderrTail {
    tail: Arc<Mutex<Tail>>,
    secrets: Secrets,
}

#[derive(Debug, Default)]
struct Tail {
    lines: VecDeque<String>,
    /// The number of finished lines, including those that are not kept.
    finished: u64,
    bytes: usize,
    unfinished: Vec<u8>,
    /// Consecutive stack frames.
    frames: usize,
}

impl StderrTail {
    /// The stderr of a child that received these secrets.
    pub(super) fn without(secrets: Secrets) -> Self {
        Self { secrets, tail: Arc::default() }
    }

    /// Reads to the end of the stream.
    pub(super) async fn fill_from(self, mut stderr: impl AsyncRead + Unpin) {
        let mut chunk = [0u8; 2048];
        while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
            self.with(|tail| tail.push(chunk.get(..read).unwrap_or_default(), &self.secrets));
        }
    }

    /// The last lines, including an unfinished one.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.since(0)
    }

    /// The number of finished lines so far.
    pub(super) fn finished(&self) -> u64 {
        self.with(|tail| tail.finished)
    }

    /// The kept lines after the first `finished` ones, including an unfinished one.
    pub(super) fn since(&self, finished: u64) -> Vec<String> {
        // The reader waits for the lock, and redaction takes time.
        let (lines, unfinished): (Vec<String>, _) = self.with(|tail| {
            let newer = usize::try_from(tail.finished.saturating_sub(finished)).unwrap_or(usize::MAX);
            let unfinished = (!tail.unfinished.is_empty()).then(|| text(&tail.unfinished));
            (tail.lines.iter().skip(tail.lines.len().saturating_sub(newer)).cloned().collect(), unfinished)
        });
        let lines = lines.iter().map(|line| self.secrets.redacted(line).into_owned());
        lines.chain(unfinished.map(|line| self.secrets.redacted_so_far(&line).into_owned())).collect()
    }

    fn with<T>(&self, look: impl FnOnce(&mut Tail) -> T) -> T {
        look(&mut self.tail.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Tail {
    fn push(&mut self, chunk: &[u8], secrets: &Secrets) {
        // A secret that begins within the limit is read to its end before the line is cut.
        let most = MAX_BYTES + secrets.longest();
        for byte in chunk {
            match byte {
                b'\n' => self.finish_line(),
                _ if self.unfinished.len() == most => {
                    let rest = self.unfinished.split_off(secrets.cut(&self.unfinished, MAX_BYTES));
                    self.finish_line();
                    self.unfinished = rest;
                    self.unfinished.push(*byte);
                }
                _ => self.unfinished.push(*byte),
            }
        }
    }

    fn finish_line(&mut self) {
        let mut line = text(&std::mem::take(&mut self.unfinished));
        self.frames = if is_frame(&line) { self.frames + 1 } else { 0 };
        if self.frames > MAX_FRAMES {
            line = format!("    ... {} more frames", self.frames - MAX_FRAMES);
            if self.frames > MAX_FRAMES + 1 {
                self.bytes -= self.lines.pop_back().map_or(0, |line| line.len());
                self.finished -= 1;
            }
        }
        self.bytes += line.len();
        self.finished += 1;
        self.lines.push_back(line);
        while self.lines.len() > MAX_LINES || (self.bytes > MAX_BYTES && self.lines.len() > 1) {
            self.bytes -= self.lines.pop_front().map_or(0, |line| line.len());
        }
    }
}

/// Whether a line is a stack frame of Node or the JVM.
fn is_frame(line: &str) -> bool {
    line.starts_with([' ', '\t']) && line.trim_start().starts_with("at ")
}

fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line).trim_end_matches('\r').to_owned()
}

#[cfg(test)]
mod tests {
    use toolgate_core::redact::{SecretsBuilder, Style};

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
    async fn secrets_of_the_child_are_redacted() {
        let given = SecretsBuilder::of_values(["sk-0123456789", "debug"]);
        let tail = StderrTail::without(given.build(Style::MESSAGE));
        tail.clone().fill_from(&b"KEY=sk-0123456789 LEVEL=debug\nunfinished sk-0123456789"[..]).await;
        assert_eq!(tail.lines(), ["KEY=[redacted] LEVEL=debug", "unfinished [redacted]"]);
    }

    #[tokio::test]
    async fn a_line_without_end_is_not_cut_through_a_secret() {
        let secrets = SecretsBuilder::of_values(["sk-0123456789"]).build(Style::MESSAGE);
        for before in MAX_BYTES - 14..MAX_BYTES + 2 {
            let tail = StderrTail::without(secrets.clone());
            let line = format!("{}sk-0123456789{}", "x".repeat(before), "y".repeat(99));
            tail.clone().fill_from(line.as_bytes()).await;
            let shown = tail.lines().concat();
            assert_eq!(shown.replace(['x', 'y'], ""), "[redacted]", "{before} bytes before it");
        }
    }

    #[tokio::test]
    async fn lines_after_a_mark_are_distinguished_from_earlier_ones() {
        let tail = StderrTail::default();
        tail.clone().fill_from(&b"banner\nready\n"[..]).await;
        let mark = tail.finished();
        assert_eq!(tail.since(mark), [""; 0]);
        tail.clone().fill_from(&b"oops\nagain"[..]).await;
        assert_eq!(tail.since(mark), ["oops", "again"]);
        tail.clone().fill_from("x\n".repeat(2 * MAX_LINES).as_bytes()).await;
        assert_eq!(tail.since(mark).len(), MAX_LINES, "no more than is kept");
    }

    #[tokio::test]
    async fn the_reason_above_a_long_stack_is_kept() {
        let frames: String = (0..500).map(|line| format!("    at step (index.js:{line})\n")).collect();
        let lines = tail_of(format!("Error: no token\n{frames}\nNode.js v22\n").as_bytes()).await;
        assert_eq!(lines.first().map(String::as_str), Some("Error: no token"));
        assert_eq!(
            lines.iter().skip(4).map(String::as_str).collect::<Vec<_>>(),
            ["    ... 497 more frames", "", "Node.js v22"]
        );
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
