//! Line transport: messages over two byte streams, one message a line. It serves child processes and in-process
//! servers.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientResult, ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
    ServerNotification, ServerRequest,
};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, BufReader};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::frames::{Frame, Frames};
use super::json_rpc::{self, Incoming};
use super::outbox::{Disconnection, Kind, Outbox};
use super::requests::{Disposition, Requests, Stream};

/// The longest text, in bytes: a 20 MB answer that is sent both as text and structured must fit.
pub(crate) const MAX_TEXT: usize = 64 * 1024 * 1024;
/// How long to wait for the next line of a text that spans several.
const PAUSE: Duration = Duration::from_secs(1);
/// How long to wait for the end of such a text in all. Log lines can follow a text that its server never finishes.
const LONGEST_TEXT: Duration = Duration::from_secs(10);
/// How many requests of a server are answered at a time, except pings. Further requests are refused.
const MAX_PENDING: usize = 64;
/// How many messages are passed on before other tasks get a turn.
const IN_A_ROW: usize = 32;

/// An observer of texts, as bytes.
type OnText = Box<dyn Fn(&[u8]) + Send + Sync>;
/// A function that redacts a text.
type Redact = Box<dyn Fn(&str) -> String + Send + Sync>;

/// Observers of the texts of a stream.
pub(crate) struct StreamObservers {
    /// Sees each text that is a message.
    pub(crate) on_message: OnText,
    /// Sees each text that is not a message.
    pub(crate) on_noise: OnText,
    /// Sees the beginning of a message that the end of the stream cut off.
    pub(crate) on_cut_off: OnText,
    /// Redacts quotes.
    pub(crate) redact: Redact,
}

impl Default for StreamObservers {
    fn default() -> Self {
        let nothing = || -> OnText { Box::new(|_| {}) };
        Self { on_message: nothing(), on_noise: nothing(), on_cut_off: nothing(), redact: Box::new(str::to_owned) }
    }
}

/// A transport over two streams.
pub(crate) struct LineTransport<R, W> {
    reading: BufReader<R>,
    frames: Frames,
    /// When the text that spans several lines began.
    unfinished_since: Option<Instant>,
    /// How much of a line without an end was examined.
    looked_at: usize,
    ready: VecDeque<ServerJsonRpcMessage>,
    requests: Requests,
    pending: PendingIds,
    outbox: Outbox<W>,
    cut: Disconnection,
    /// Replies that the transport itself sends.
    replying: JoinSet<()>,
    in_a_row: usize,
    is_over: bool,
    taps: StreamObservers,
}

/// The server's requests that wait for a reply.
#[derive(Clone, Debug, Default)]
struct PendingIds(Arc<Mutex<HashSet<RequestId>>>);

impl PendingIds {
    fn lock(&self) -> MutexGuard<'_, HashSet<RequestId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: AsyncRead + Unpin + Send + 'static, W: AsyncWrite + Unpin + Send + 'static> LineTransport<R, W> {
    /// A transport over these streams, for these requests. It sets `cut` when it ends the connection.
    pub(crate) fn new(reading: R, writing: W, requests: Requests, cut: Disconnection, taps: StreamObservers) -> Self {
        Self {
            reading: BufReader::with_capacity(16 * 1024, reading),
            frames: Frames::up_to(MAX_TEXT),
            unfinished_since: None,
            looked_at: 0,
            ready: VecDeque::new(),
            requests,
            pending: PendingIds::default(),
            outbox: Outbox::to(writing, cut.clone()),
            cut,
            replying: JoinSet::new(),
            in_a_row: 0,
            is_over: false,
            taps,
        }
    }

    /// Reads until there is a message or the stream ends. Cancel safe.
    async fn fill(&mut self) {
        while self.ready.is_empty() && !self.is_over {
            while self.replying.try_join_next().is_some() {}
            if self.outbox.has_room().await.is_err() {
                self.is_over = true;
                return;
            }
            if let Some(failure) = self.requests.take_due(false) {
                self.deliver(failure);
                return;
            }
            let goes_on_until = self.goes_on_until();
            let ends_by = (self.frames.unended() > self.looked_at).then(|| Instant::now() + PAUSE);
            let read = match goes_on_until.into_iter().chain(self.requests.due()).chain(ends_by).min() {
                Some(end) => timeout_at(end, self.reading.fill_buf()).await,
                None => Ok(self.reading.fill_buf().await),
            };
            let frames = match read {
                Ok(Ok(bytes)) if !bytes.is_empty() => {
                    let (length, mut frames) = (bytes.len(), self.frames.push(bytes));
                    self.reading.consume(length);
                    if !frames.is_empty() {
                        self.looked_at = 0;
                    }
                    if !frames.is_empty() {
                        self.unfinished_since = None;
                    } else if self.unfinished_since.is_some_and(|since| since.elapsed() >= LONGEST_TEXT) {
                        frames.extend(self.frames.give_up());
                    }
                    frames
                }
                Ok(_) => {
                    self.is_over = true;
                    self.frames.finish()
                }
                Err(_) if goes_on_until.is_some_and(|end| end <= Instant::now()) => {
                    self.frames.give_up().into_iter().collect()
                }
                Err(_) => {
                    if ends_by.is_some_and(|end| end <= Instant::now()) {
                        self.look_at_line();
                    }
                    Vec::new()
                }
            };
            for frame in frames {
                self.take(frame);
            }
        }
        if self.is_over
            && let Some(failure) = self.requests.take_due(true)
        {
            self.deliver(failure);
        }
    }

    /// Looks for an answer on a line that its server does not end.
    fn look_at_line(&mut self) {
        self.looked_at = self.frames.unended();
        for incoming in json_rpc::unended(self.frames.line(), |id| self.requests.is_in_flight(id)) {
            self.requests.admit(self.redacted(incoming), &Stream::Shared);
        }
    }

    fn redacted(&self, incoming: Incoming) -> Incoming {
        match incoming {
            Incoming::Unreadable { id, why } => Incoming::Unreadable { id, why: (self.taps.redact)(&why) },
            Incoming::Misplaced { id, why } => Incoming::Misplaced { id, why: (self.taps.redact)(&why) },
            other @ (Incoming::Message(..) | Incoming::Noise) => other,
        }
    }

    /// The end of the wait for the rest of an unfinished text; `None` without one.
    fn goes_on_until(&mut self) -> Option<Instant> {
        if !self.frames.is_unfinished() {
            self.unfinished_since = None;
            return None;
        }
        let now = Instant::now();
        let since = *self.unfinished_since.get_or_insert(now);
        Some((now + PAUSE).min(since + LONGEST_TEXT))
    }

    fn take(&mut self, frame: Frame) {
        let text = match frame {
            Frame::Text(text) => text,
            Frame::TooLong => {
                let longest = MAX_TEXT / 1024 / 1024;
                let reason =
                    format!("it sent a message longer than {longest} MiB; let the tool return less, or in pieces");
                self.cut.make(reason);
                self.is_over = true;
                return;
            }
        };
        let mut is_noise = false;
        for incoming in json_rpc::read(&text, |id| self.requests.is_in_flight(id)) {
            let incoming = match incoming {
                // The end of the stream explains more than an unreadable last text.
                Incoming::Unreadable { .. } if self.is_over => return (self.taps.on_cut_off)(&text),
                other @ (Incoming::Message(..)
                | Incoming::Unreadable { .. }
                | Incoming::Misplaced { .. }
                | Incoming::Noise) => self.redacted(other),
            };
            match self.requests.admit(incoming, &Stream::Shared) {
                Disposition::Message(message) => self.deliver(*message),
                Disposition::Ignored => {}
                Disposition::Noise => is_noise = true,
            }
        }
        match is_noise {
            true => (self.taps.on_noise)(&text),
            false => (self.taps.on_message)(&text),
        }
    }

    /// Passes a message on, unless it is a request that the transport answers itself.
    #[expect(clippy::wildcard_enum_match_arm, reason = "an open enum of the SDK")]
    fn deliver(&mut self, message: ServerJsonRpcMessage) {
        let reply = match &message {
            JsonRpcMessage::Request(request) => match request.request {
                ServerRequest::PingRequest(_) => {
                    Some(JsonRpcMessage::response(ClientResult::empty(()), request.id.clone()))
                }
                _ => {
                    let mut pending = self.pending.lock();
                    let is_full = pending.len() >= MAX_PENDING;
                    if !is_full {
                        pending.insert(request.id.clone());
                    }
                    is_full.then(|| too_many(request.id.clone()))
                }
            },
            JsonRpcMessage::Notification(notification) => {
                if let ServerNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.pending.lock().remove(id);
                }
                None
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => None,
        };
        match reply {
            Some(reply) => {
                let sending = self.write(&reply, Kind::Reply);
                self.replying.spawn(async move { drop(sending.await) });
            }
            None => self.ready.push_back(message),
        }
    }

    fn write(
        &self,
        message: &ClientJsonRpcMessage,
        kind: Kind,
    ) -> impl Future<Output = io::Result<()>> + Send + use<R, W> {
        let line = serde_json::to_vec(message).map(|mut line| {
            line.push(b'\n');
            self.outbox.send(line, kind)
        });
        async move { line?.await }
    }
}

fn too_many(id: RequestId) -> ClientJsonRpcMessage {
    let words = format!("this client answers {MAX_PENDING} requests at a time");
    JsonRpcMessage::error(ErrorData::new(ErrorCode::INTERNAL_ERROR, words, None), Some(id))
}

impl<R, W> Transport<RoleClient> for LineTransport<R, W>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.requests.sending(&message);
        let kind = match &message {
            JsonRpcMessage::Response(response) => {
                self.pending.lock().remove(&response.id);
                Kind::Reply
            }
            JsonRpcMessage::Error(error) => {
                if let Some(id) = &error.id {
                    self.pending.lock().remove(id);
                }
                Kind::Reply
            }
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => Kind::Own,
        };
        self.write(&message, kind)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        if self.in_a_row >= IN_A_ROW {
            self.in_a_row = 0;
            tokio::task::yield_now().await;
        }
        self.fill().await;
        self.in_a_row += 1;
        self.ready.pop_front()
    }

    async fn close(&mut self) -> io::Result<()> {
        self.replying.abort_all();
        self.outbox.close().await;
        Ok(())
    }
}

impl<R, W> fmt::Debug for LineTransport<R, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineTransport").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
