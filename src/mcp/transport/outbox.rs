//! Bounded writer: messages on their way to a server that reads a stream.
//!
//! A server that does not read leaves what it is sent in memory here. So what waits is counted, and replies to what the
//! server itself asks have a smaller bound than requests, because the server decides how many there are.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// How many messages may wait, and how many bytes they may have.
const MAX_WAITING: usize = 4096;
const MAX_BYTES: usize = 256 * 1024 * 1024;
/// How many replies may wait before nothing more is read of the server.
pub(super) const MAX_REPLIES: usize = 256;
/// How long a server may read nothing while that many replies wait.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// How long a server may take to read what waits when the stream is closed.
const GOODBYE: Duration = Duration::from_millis(500);

/// The end of a connection that the transport decided on, with its reason. Clones are the same end.
#[derive(Clone, Debug, Default)]
pub(in crate::mcp) struct Cut(Arc<Ending>);

#[derive(Debug, Default)]
struct Ending {
    reason: OnceLock<String>,
    happened: CancellationToken,
}

impl Cut {
    /// Why, for a sentence "the server broke off the connection: ...".
    pub(in crate::mcp) fn reason(&self) -> Option<&str> {
        self.0.reason.get().map(String::as_str)
    }

    /// Ends the connection. The first reason counts.
    pub(super) fn make(&self, reason: String) {
        let _ = self.0.reason.set(reason);
        self.0.happened.cancel();
    }

    async fn happened(&self) {
        self.0.happened.cancelled().await;
    }

    fn error(&self) -> io::Error {
        io::Error::new(io::ErrorKind::BrokenPipe, self.reason().unwrap_or("the connection was closed").to_owned())
    }
}

/// The messages that wait, and the stream that they wait for.
#[derive(Debug)]
pub(super) struct Outbox<W> {
    stream: Arc<tokio::sync::Mutex<Option<W>>>,
    queue: Arc<Queue>,
    cut: Cut,
}

#[derive(Debug)]
struct Queue {
    waiting: Mutex<Waiting>,
    /// Rings whenever bytes were taken.
    taken: Notify,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    messages: usize,
    replies: usize,
    bytes: usize,
    /// When bytes were taken last, or nothing waited.
    moved: Instant,
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The server asked for it.
    Reply,
    /// toolgate sends it by itself.
    Own,
}

/// A message that waits. Dropping it ends that.
#[derive(Debug)]
struct Place {
    queue: Arc<Queue>,
    kind: Kind,
    bytes: usize,
}

impl<W: AsyncWrite + Unpin + Send + 'static> Outbox<W> {
    /// Nothing waits for this stream yet.
    pub(super) fn to(stream: W, cut: Cut) -> Self {
        let waiting = Waiting { messages: 0, replies: 0, bytes: 0, moved: Instant::now() };
        let queue = Arc::new(Queue { waiting: Mutex::new(waiting), taken: Notify::new() });
        Self { stream: Arc::new(tokio::sync::Mutex::new(Some(stream))), queue, cut }
    }

    /// Sends a message, which has its line end, behind those that wait.
    pub(super) fn send(&self, message: Vec<u8>, kind: Kind) -> impl Future<Output = io::Result<()>> + Send + use<W> {
        let place = self.enter(message.len(), kind);
        let (stream, queue, cut) = (self.stream.clone(), self.queue.clone(), self.cut.clone());
        async move {
            let _place = place?;
            let write = async {
                let mut stream = stream.lock().await;
                let stream = stream.as_mut().ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected))?;
                let mut left = message.as_slice();
                while !left.is_empty() {
                    let written = stream.write(left).await?;
                    if written == 0 {
                        return Err(io::ErrorKind::WriteZero.into());
                    }
                    left = left.get(written..).unwrap_or_default();
                    queue.moved();
                }
                stream.flush().await
            };
            tokio::select! {
                biased;
                () = cut.happened() => Err(cut.error()),
                written = write => written,
            }
        }
    }

    /// Waits until the server may ask for more. The error is that it does not read, for which it was cut.
    pub(super) async fn has_room(&self) -> Result<(), ()> {
        loop {
            let taken = self.queue.taken.notified();
            let waiting = *self.queue.lock();
            if waiting.replies < MAX_REPLIES {
                return Ok(());
            }
            tokio::select! {
                biased;
                () = self.cut.happened() => return Err(()),
                () = taken => continue,
                () = sleep_until(waiting.moved + PATIENCE) => {}
            }
            let waiting = *self.queue.lock();
            if waiting.replies >= MAX_REPLIES && waiting.moved + PATIENCE <= Instant::now() {
                self.cut.make(format!(
                    "it does not read what it is sent: {} replies to its own requests wait, and it took nothing for {} s; \
                     it has to read its stdin while it writes",
                    waiting.replies,
                    PATIENCE.as_secs()
                ));
                return Err(());
            }
        }
    }

    /// Closes the stream. What waits is sent if the server takes it at once.
    pub(super) async fn close(&self) {
        let _ = timeout(GOODBYE, async { drop(self.stream.lock().await.take()) }).await;
        self.cut.0.happened.cancel();
        drop(self.stream.lock().await.take());
    }

    fn enter(&self, bytes: usize, kind: Kind) -> io::Result<Place> {
        let mut waiting = self.queue.lock();
        if waiting.messages == 0 {
            waiting.moved = Instant::now();
        }
        if waiting.messages >= MAX_WAITING || (waiting.messages > 0 && waiting.bytes + bytes > MAX_BYTES) {
            let (messages, mebibytes) = (waiting.messages, waiting.bytes / 1024 / 1024);
            drop(waiting);
            self.cut.make(format!(
                "it does not read what it is sent: {messages} messages with {mebibytes} MiB wait; it has to read its stdin"
            ));
            return Err(self.cut.error());
        }
        waiting.messages += 1;
        waiting.bytes += bytes;
        waiting.replies += usize::from(kind == Kind::Reply);
        Ok(Place { queue: self.queue.clone(), kind, bytes })
    }
}

impl Queue {
    fn moved(&self) {
        self.lock().moved = Instant::now();
        self.taken.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut waiting = self.queue.lock();
        waiting.messages -= 1;
        waiting.bytes -= self.bytes;
        waiting.replies -= usize::from(self.kind == Kind::Reply);
        drop(waiting);
        self.queue.taken.notify_waiters();
    }
}
