//! Write timeout: a socket whose writes have to make progress. A client that never reads its stream would hold a task,
//! a buffer and a watcher for ever; heartbeats do not help, because they fill the buffer and then wait like everything
//! else.
//!
//! The socket also reports the end of its input one poll later than it is known. hyper drops a request in progress when it
//! reads that end, and can read it together with the request, before the handler began (decision 0020).

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// The socket.
pub(super) struct WriteTimeout<S> {
    socket: S,
    longest: Duration,
    /// Runs while a write waits.
    stalled: Option<Pin<Box<Sleep>>>,
    flushed: Flushed,
    /// Whether the end of the input was read.
    has_ended: bool,
}

/// Whether the last write to a socket was followed by a complete flush. Hyper flushes the socket only after it has written
/// its whole buffer.
#[derive(Clone)]
pub(super) struct Flushed(Arc<AtomicBool>);

impl Flushed {
    pub(super) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, is_flushed: bool) {
        self.0.store(is_flushed, Ordering::Relaxed);
    }
}

impl<S> WriteTimeout<S> {
    /// A socket on which a write that waits for `longest` fails.
    pub(super) fn new(socket: S, longest: Duration) -> Self {
        Self { socket, longest, stalled: None, flushed: Flushed(Arc::new(AtomicBool::new(true))), has_ended: false }
    }

    /// Follows the state of the socket.
    pub(super) fn flushed(&self) -> Flushed {
        self.flushed.clone()
    }

    fn watched<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let longest = self.longest;
        ready!(self.stalled.get_or_insert_with(|| Box::pin(sleep(longest))).as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.socket).poll_read(cx, buffer));
        let is_end = read.is_err() || (buffer.filled().len() == before && buffer.remaining() > 0);
        if is_end && !std::mem::replace(&mut self.has_ended, true) {
            // After an error, the next read reports the end.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.flushed.set(false);
        let written = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.watched(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.flushed.set(false);
        let written = Pin::new(&mut self.socket).poll_write_vectored(cx, slices);
        self.watched(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.socket).poll_flush(cx);
        self.flushed.set(matches!(flushed, Poll::Ready(Ok(()))));
        self.watched(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.socket).poll_shutdown(cx);
        self.watched(cx, shut)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_stalled_write_fails_and_a_slow_one_does_not() {
        let (ours, mut theirs) = duplex(4);
        let mut steady = WriteTimeout::new(ours, Duration::from_secs(60));
        let reads_slowly = tokio::spawn(async move {
            for _ in 0..3 {
                tokio::time::sleep(Duration::from_secs(50)).await;
                theirs.read_exact(&mut [0; 4]).await.unwrap();
            }
            theirs
        });
        steady.write_all(&[7; 16]).await.unwrap();
        let _theirs = reads_slowly.await.unwrap();
        let error = steady.write_all(&[7; 16]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
