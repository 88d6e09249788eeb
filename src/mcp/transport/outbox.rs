//! Bounded writer: messages on their way to a server that reads a stream.
//!
//! Messages to a server that does not read pile up in memory. So waiting messages are counted, and replies to the
//! server's own requests have a lower limit than requests, because the server decides how many there are.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// The limits of waiting messages: their number, and their bytes.
const MAX_WAITING: usize = 4096;
const MAX_BYTES: usize = 256 * 1024 * 1024;
/// How many replies may wait before reading from the server pauses.
pub(super) const MAX_REPLIES: usize = 256;
/// How long a server may read nothing while that many replies wait.
pub(super) const STALL_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a server may take to read the waiting messages when the stream is closed.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);

/// A disconnection by the transport, with its reason. Clones share the same state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disconnection(Arc<DisconnectionState>);

#[derive(Debug, Default)]
struct DisconnectionState {
    reason: OnceLock<String>,
    happened: CancellationToken,
}

impl Disconnection {
    /// The reason, for a sentence "the server broke off the connection: ...".
    pub(crate) fn reason(&self) -> Option<&str> {
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

/// The waiting messages, and their stream.
#[derive(Debug)]
pub(super) struct Outbox<W> {
    stream: Arc<tokio::sync::Mutex<Option<W>>>,
    queue: Arc<Queue>,
    cut: Disconnection,
}

#[derive(Debug)]
struct Queue {
    waiting: Mutex<QueueState>,
    /// Notified whenever bytes were taken.
    taken: Notify,
}

#[derive(Clone, Copy, Debug)]
struct QueueState {
    messages: usize,
    replies: usize,
    bytes: usize,
    /// The last time that bytes were taken, or nothing waited.
    moved: Instant,
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An answer to a request of the server.
    Reply,
    /// A message that toolgate sends on its own.
    Own,
}

/// A waiting message. Dropping it ends the wait.
#[derive(Debug)]
struct QueueSlot {
    queue: Arc<Queue>,
    kind: Kind,
    bytes: usize,
}

impl<W: AsyncWrite + Unpin + Send + 'static> Outbox<W> {
    /// An empty outbox for this stream.
    pub(super) fn to(stream: W, cut: Disconnection) -> Self {
        let waiting = QueueState { messages: 0, replies: 0, bytes: 0, moved: Instant::now() };
        let queue = Arc::new(Queue { waiting: Mutex::new(waiting), taken: Notify::new() });
        Self { stream: Arc::new(tokio::sync::Mutex::new(Some(stream))), queue, cut }
    }

    /// Sends a message, with its line end, after the waiting ones. Its place among them is taken by the call, not by the first
    /// poll: the SDK polls each message on a task of its own, and tasks start in any order.
    pub(super) fn send(&self, message: Vec<u8>, kind: Kind) -> impl Future<Output = io::Result<()>> + Send + use<W> {
        let place = self.enter(message.len(), kind);
        let mut turn = Box::pin(self.stream.clone().lock_owned());
        let at_once = (&mut turn).now_or_never();
        let (queue, cut) = (self.queue.clone(), self.cut.clone());
        async move {
            let _place = place?;
            let write = async {
                let mut stream = match at_once {
                    Some(stream) => stream,
                    None => turn.await,
                };
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

    /// Waits until there is room for more requests of the server. The error is that it does not read and was
    /// disconnected.
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
                () = sleep_until(waiting.moved + STALL_TIMEOUT) => {}
            }
            let waiting = *self.queue.lock();
            if waiting.replies >= MAX_REPLIES && waiting.moved + STALL_TIMEOUT <= Instant::now() {
                self.cut.make(format!(
                    "it does not read what it is sent: {} replies to its own requests wait, and it took nothing for {} s; \
                     it has to read its stdin while it writes",
                    waiting.replies,
                    STALL_TIMEOUT.as_secs()
                ));
                return Err(());
            }
        }
    }

    /// Closes the stream. Waiting messages are sent if the server takes them at once.
    pub(super) async fn close(&self) {
        let _ = timeout(SHUTDOWN_TIMEOUT, async { drop(self.stream.lock().await.take()) }).await;
        self.cut.0.happened.cancel();
        drop(self.stream.lock().await.take());
    }

    fn enter(&self, bytes: usize, kind: Kind) -> io::Result<QueueSlot> {
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
        Ok(QueueSlot { queue: self.queue.clone(), kind, bytes })
    }
}

impl Queue {
    fn moved(&self) {
        self.lock().moved = Instant::now();
        self.taken.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        let mut waiting = self.queue.lock();
        waiting.messages -= 1;
        waiting.bytes -= self.bytes;
        waiting.replies -= usize::from(self.kind == Kind::Reply);
        drop(waiting);
        self.queue.taken.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;
    use tokio::io::{AsyncReadExt as _, DuplexStream};

    use super::*;

    /// An outbox, and the server's side of its stream, with a buffer of 8 bytes.
    fn outbox() -> (Outbox<DuplexStream>, DuplexStream, Disconnection) {
        let (writing, reading) = tokio::io::duplex(8);
        let cut = Disconnection::default();
        (Outbox::to(writing, cut.clone()), reading, cut)
    }

    fn reason(error: Option<io::Result<()>>) -> String {
        error.expect("it ended").expect_err("it was not sent").to_string()
    }

    #[tokio::test]
    async fn messages_are_sent_in_order_whatever_they_are() {
        let (outbox, mut server, _) = outbox();
        let kinds = [Kind::Own, Kind::Reply].into_iter().cycle();
        let sending = (0..50).zip(kinds).map(|(number, kind)| outbox.send(format!("{number:03}\n").into_bytes(), kind));
        let sending = join_all(sending.collect::<Vec<_>>());
        let mut read = vec![0; 200];
        let (sent, received) = tokio::join!(sending, server.read_exact(&mut read));
        assert!(sent.into_iter().all(|sent| sent.is_ok()) && received.is_ok());
        let expected: String = (0..50).map(|number| format!("{number:03}\n")).collect();
        assert_eq!(String::from_utf8_lossy(&read), expected);
    }

    #[tokio::test]
    async fn messages_are_sent_in_the_order_of_the_calls_whichever_is_polled_first() {
        let (outbox, mut server, _) = outbox();
        let mut sending: Vec<_> =
            (0..5).map(|number| outbox.send(format!("{number:03}\n").into_bytes(), Kind::Own)).collect();
        sending.reverse();
        let mut read = vec![0; 20];
        let (_, received) = tokio::join!(join_all(sending), server.read_exact(&mut read));
        assert!(received.is_ok());
        assert_eq!(String::from_utf8_lossy(&read), "000\n001\n002\n003\n004\n");
    }

    #[tokio::test(start_paused = true)]
    async fn replies_have_a_bound_that_requests_do_not_count_towards() {
        let (outbox, mut server, _) = outbox();
        let own: Vec<_> = (0..MAX_REPLIES).map(|_| outbox.send(vec![b'o'; 9], Kind::Own)).collect();
        assert_eq!(outbox.has_room().await, Ok(()), "requests are toolgate's own");
        drop(own);
        let mut replies = Box::pin(join_all((0..MAX_REPLIES).map(|_| outbox.send(vec![b'r'; 9], Kind::Reply))));
        assert!((&mut replies).now_or_never().is_none());
        assert!(outbox.has_room().now_or_never().is_none(), "nothing more is read of the server");
        let mut read = [0; 18];
        let taken = async { server.read_exact(&mut read).await.is_ok() };
        tokio::select! {
            _ = &mut replies => panic!("the server took two replies only"),
            taken = taken => assert!(taken),
        }
        assert!((&mut replies).now_or_never().is_none());
        assert_eq!(outbox.has_room().await, Ok(()), "it took replies");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_takes_no_reply_is_cut_and_all_that_waits_ends_with_the_reason() {
        let (outbox, _server, cut) = outbox();
        let request = outbox.send(vec![b'o'; 9], Kind::Own);
        let replies = join_all((0..MAX_REPLIES).map(|_| outbox.send(vec![b'r'; 9], Kind::Reply)));
        let mut waiting = Box::pin(futures::future::join(request, replies));
        assert!((&mut waiting).now_or_never().is_none());
        let begun = Instant::now();
        assert_eq!(outbox.has_room().await, Err(()));
        assert_eq!(begun.elapsed(), STALL_TIMEOUT);
        let why = cut.reason().expect("a reason").to_owned();
        assert!(why.starts_with("it does not read what it is sent: 256 replies to its own requests wait"), "{why}");
        let (request, replies) = waiting.await;
        let reasons = [request].into_iter().chain(replies).map(|ended| reason(Some(ended)));
        assert!(reasons.into_iter().all(|reason| reason == why));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_takes_replies_slowly_is_not_cut() {
        let (outbox, mut server, cut) = outbox();
        let mut replies = Box::pin(join_all((0..=MAX_REPLIES).map(|_| outbox.send(vec![b'r'; 80], Kind::Reply))));
        assert!((&mut replies).now_or_never().is_none());
        let slowly = async {
            for _ in 0..10 {
                tokio::time::sleep(STALL_TIMEOUT / 2).await;
                assert!(server.read_exact(&mut [0; 8]).await.is_ok());
            }
        };
        tokio::select! {
            _ = &mut replies => panic!("most replies wait"),
            room = outbox.has_room() => panic!("there is no room: {room:?}"),
            () = slowly => {}
        }
        assert_eq!(cut.reason(), None);
    }

    #[tokio::test]
    async fn the_message_beyond_the_bound_is_refused_and_ends_the_connection() {
        let (outbox, _server, cut) = outbox();
        let mut first = Box::pin(outbox.send(vec![b'o'; 9], Kind::Own));
        assert!((&mut first).now_or_never().is_none());
        let others: Vec<_> = (1..MAX_WAITING).map(|_| outbox.send(vec![b'o'; 9], Kind::Own)).collect();
        assert_eq!(cut.reason(), None);
        let beyond = outbox.send(vec![b'o'; 9], Kind::Own);
        let why = cut.reason().expect("a reason").to_owned();
        assert!(why.starts_with("it does not read what it is sent: 4096 messages with 0 MiB wait"), "{why}");
        assert_eq!(reason(beyond.now_or_never()), why);
        assert_eq!(reason(first.now_or_never()), why, "nothing is dropped without an error");
        drop(others);
    }

    #[tokio::test]
    async fn many_bytes_are_refused_unless_they_are_the_only_message() {
        let (outbox, _server, cut) = outbox();
        let half = outbox.send(vec![0; MAX_BYTES / 2 + 1], Kind::Own);
        assert_eq!(cut.reason(), None);
        drop(half);
        let whole = outbox.send(vec![0; MAX_BYTES + 1], Kind::Own);
        assert_eq!(cut.reason(), None, "it is alone");
        let beyond = outbox.send(vec![0], Kind::Own);
        assert!(reason(beyond.now_or_never()).contains("1 messages with 256 MiB wait"));
        drop(whole);
    }

    #[tokio::test(start_paused = true)]
    async fn closing_drops_messages_that_the_server_does_not_take() {
        let (outbox, mut server, _) = outbox();
        let mut sending = Box::pin(outbox.send(vec![b'o'; 9], Kind::Own));
        assert!((&mut sending).now_or_never().is_none());
        let begun = Instant::now();
        tokio::join!(outbox.close(), async { assert!((&mut sending).await.is_err()) });
        assert_eq!(begun.elapsed(), SHUTDOWN_TIMEOUT);
        let mut read = Vec::new();
        assert_eq!(server.read_to_end(&mut read).await.ok(), Some(8), "the stream is over");
    }
}
