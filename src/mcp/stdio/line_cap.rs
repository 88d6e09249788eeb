//! A bound on the length of one message. The SDK drops a line that is too long and then waits for the answer that was in
//! it; here the stream ends instead, so that the call fails at once and says why.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

/// Set once a line was too long.
#[derive(Clone, Debug, Default)]
pub(in crate::mcp) struct Overflow(Arc<AtomicBool>);

/// A stream that breaks when a line grows beyond the bound.
#[derive(Debug)]
pub(in crate::mcp) struct LineCap<R> {
    inner: R,
    line: usize,
    max: usize,
    overflow: Overflow,
}

impl Overflow {
    /// The longest line that is read, in bytes: a 20 MB answer that is sent both as text and structured must fit.
    pub(in crate::mcp) const MAX_LINE: usize = 64 * 1024 * 1024;

    /// Whether a line was too long.
    pub(in crate::mcp) fn happened(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl<R> LineCap<R> {
    /// Bounds the lines of the stream.
    pub(in crate::mcp) fn new(inner: R, overflow: Overflow) -> Self {
        Self { inner, line: 0, max: Overflow::MAX_LINE, overflow }
    }

    fn admit(&mut self, chunk: &[u8]) -> bool {
        let mut pieces = chunk.split(|byte| *byte == b'\n').map(<[u8]>::len);
        let first = self.line + pieces.next().unwrap_or(0);
        let mut longest = first;
        self.line = first;
        for piece in pieces {
            longest = longest.max(piece);
            self.line = piece;
        }
        longest <= self.max
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for LineCap<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buf);
        if let Poll::Ready(Ok(())) = read
            && !self.admit(buf.filled().get(before..).unwrap_or_default())
        {
            buf.set_filled(before);
            self.overflow.0.store(true, Ordering::Relaxed);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "the message is too long")));
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    async fn read(bytes: &[u8], max: usize) -> (io::Result<usize>, bool) {
        let overflow = Overflow::default();
        let mut capped = LineCap { inner: bytes, line: 0, max, overflow: overflow.clone() };
        let read = capped.read_to_end(&mut Vec::new()).await;
        (read, overflow.happened())
    }

    #[tokio::test]
    async fn lines_within_the_bound_pass_however_many_there_are() {
        let (read, overflow) = read(b"12345\n12345\n\n12345", 5).await;
        assert_eq!((read.expect("passes"), overflow), (18, false));
    }

    #[tokio::test]
    async fn a_line_beyond_the_bound_ends_the_stream_and_is_remembered() {
        let (read, overflow) = read(b"12345\n123456", 5).await;
        assert!(read.is_err() && overflow);
    }
}
