//! A look at the lines of a stream while they pass. They are handed on unchanged.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

/// A longer line is not shown to anybody. No list of tools is that long.
const LONGEST: usize = 4 * 1024 * 1024;

/// A stream whose lines are shown to somebody, each when it is complete.
pub(in crate::mcp) struct LineTap<R> {
    inner: R,
    line: Vec<u8>,
    is_too_long: bool,
    show: Box<dyn Fn(&str) + Send + Sync>,
}

impl<R> LineTap<R> {
    /// Shows the lines of the stream to `show`.
    pub(in crate::mcp) fn new(inner: R, show: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { inner, line: Vec::new(), is_too_long: false, show: Box::new(show) }
    }

    fn watch(&mut self, chunk: &[u8]) {
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.is_too_long |= self.line.len() + piece.len() > LONGEST;
            if !self.is_too_long {
                self.line.extend_from_slice(piece);
            }
            if piece.ends_with(b"\n") {
                if let (false, Ok(line)) = (self.is_too_long, std::str::from_utf8(&self.line)) {
                    (self.show)(line);
                }
                self.line.clear();
                self.line.shrink_to(64 * 1024);
                self.is_too_long = false;
            }
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for LineTap<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buf);
        if let Poll::Ready(Ok(())) = read {
            self.watch(buf.filled().get(before..).unwrap_or_default());
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn every_line_is_shown_once_whole_and_handed_on_unless_it_is_too_long_to_be_looked_at() {
        let long = "x".repeat(LONGEST + 1);
        let sent = format!("one\ntwo\n{long}\nthree\nunfinished");
        let shown = Arc::new(Mutex::new(Vec::new()));
        let note = shown.clone();
        let mut tap = LineTap::new(sent.as_bytes(), move |line: &str| note.lock().unwrap().push(line.to_owned()));
        let (mut handed_on, mut chunk) = (Vec::new(), [0; 7]);
        while let Ok(read @ 1..) = tap.read(&mut chunk).await {
            handed_on.extend_from_slice(&chunk[..read]);
        }
        assert!(handed_on == sent.as_bytes());
        assert_eq!(*shown.lock().unwrap(), ["one\n", "two\n", "three\n"]);
    }
}
