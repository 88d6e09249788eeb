//! Line transport: messages over two byte streams, one message a line. For child processes, and for servers inside this
//! program.

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
use tokio::time::timeout;

use super::frames::{Frame, Frames};
use super::message::{self, Incoming};
use super::outbox::{Cut, Kind, Outbox};
use super::requests::{Admitted, Requests, Stream};

/// The longest text that is read, in bytes: a 20 MB answer that is sent both as text and structured must fit.
pub(in crate::mcp) const MAX_TEXT: usize = 64 * 1024 * 1024;
/// How long the next line of a text that goes over several is waited for.
const PAUSE: Duration = Duration::from_secs(1);
/// How many requests of a server are answered at a time, pings excepted. Others are refused.
const MAX_ASKED: usize = 64;
/// How many messages are handed on before those that handle them get a turn.
const IN_A_ROW: usize = 32;

/// An observer of texts, as bytes.
type OnText = Box<dyn Fn(&[u8]) + Send + Sync>;
/// A function that takes secrets out of a text.
type Redact = Box<dyn Fn(&str) -> String + Send + Sync>;

/// What else is done with the texts of a stream.
pub(in crate::mcp) struct Taps {
    /// Sees each text that is a message.
    pub(in crate::mcp) on_message: OnText,
    /// Sees each text that is not a message.
    pub(in crate::mcp) on_noise: OnText,
    /// Takes secrets out of quotes.
    pub(in crate::mcp) redact: Redact,
}

impl Default for Taps {
    fn default() -> Self {
        Self { on_message: Box::new(|_| {}), on_noise: Box::new(|_| {}), redact: Box::new(str::to_owned) }
    }
}

/// A transport over two streams.
pub(in crate::mcp) struct LineTransport<R, W> {
    reading: BufReader<R>,
    frames: Frames,
    ready: VecDeque<ServerJsonRpcMessage>,
    requests: Requests,
    asked: Asked,
    outbox: Outbox<W>,
    cut: Cut,
    /// Replies that the transport gives by itself.
    replying: JoinSet<()>,
    in_a_row: usize,
    is_over: bool,
    taps: Taps,
}

/// The requests of the server that wait for a reply.
#[derive(Clone, Debug, Default)]
struct Asked(Arc<Mutex<HashSet<RequestId>>>);

impl Asked {
    fn lock(&self) -> MutexGuard<'_, HashSet<RequestId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: AsyncRead + Unpin + Send + 'static, W: AsyncWrite + Unpin + Send + 'static> LineTransport<R, W> {
    /// Over these streams, for these requests. It sets `cut` when it ends the connection.
    pub(in crate::mcp) fn new(reading: R, writing: W, requests: Requests, cut: Cut, taps: Taps) -> Self {
        Self {
            reading: BufReader::with_capacity(16 * 1024, reading),
            frames: Frames::up_to(MAX_TEXT),
            ready: VecDeque::new(),
            requests,
            asked: Asked::default(),
            outbox: Outbox::to(writing, cut.clone()),
            cut,
            replying: JoinSet::new(),
            in_a_row: 0,
            is_over: false,
            taps,
        }
    }

    /// Reads until there is a message or the stream is over. Can be given up and tried again.
    async fn fill(&mut self) {
        while self.ready.is_empty() && !self.is_over {
            while self.replying.try_join_next().is_some() {}
            if self.outbox.has_room().await.is_err() {
                self.is_over = true;
                return;
            }
            let is_unfinished = self.frames.is_unfinished();
            let read = match is_unfinished {
                true => timeout(PAUSE, self.reading.fill_buf()).await,
                false => Ok(self.reading.fill_buf().await),
            };
            let frames = match read {
                Ok(Ok(bytes)) if !bytes.is_empty() => {
                    let (length, frames) = (bytes.len(), self.frames.push(bytes));
                    self.reading.consume(length);
                    frames
                }
                Ok(_) => {
                    self.is_over = true;
                    self.frames.finish()
                }
                Err(_) => self.frames.give_up().into_iter().collect(),
            };
            for frame in frames {
                self.take(frame);
            }
        }
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
        for incoming in message::read(&text, |id| self.requests.is_in_flight(id)) {
            let incoming = match incoming {
                Incoming::Unreadable { id, why } => Incoming::Unreadable { id, why: (self.taps.redact)(&why) },
                other @ (Incoming::Message(..) | Incoming::Noise) => other,
            };
            match self.requests.admit(incoming, &Stream::Shared) {
                Admitted::Message(message) => self.deliver(*message),
                Admitted::Ignored => {}
                Admitted::Noise => is_noise = true,
            }
        }
        match is_noise {
            true => (self.taps.on_noise)(&text),
            false => (self.taps.on_message)(&text),
        }
    }

    /// Hands a message on, unless it is a request that is answered here.
    #[expect(clippy::wildcard_enum_match_arm, reason = "an open enum of the SDK")]
    fn deliver(&mut self, message: ServerJsonRpcMessage) {
        let reply = match &message {
            JsonRpcMessage::Request(request) => match request.request {
                ServerRequest::PingRequest(_) => {
                    Some(JsonRpcMessage::response(ClientResult::empty(()), request.id.clone()))
                }
                _ => {
                    let mut asked = self.asked.lock();
                    let is_full = asked.len() >= MAX_ASKED;
                    if !is_full {
                        asked.insert(request.id.clone());
                    }
                    is_full.then(|| too_many(request.id.clone()))
                }
            },
            JsonRpcMessage::Notification(notification) => {
                if let ServerNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.asked.lock().remove(id);
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
    let words = format!("this client answers {MAX_ASKED} requests at a time");
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
                self.asked.lock().remove(&response.id);
                Kind::Reply
            }
            JsonRpcMessage::Error(error) => {
                if let Some(id) = &error.id {
                    self.asked.lock().remove(id);
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
