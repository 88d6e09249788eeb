//! Reader of HTTP responses: converts JSON bodies and event streams to messages for the SDK.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::{BoxStream, unfold};
use rmcp::model::{JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::Sse;
use toolgate_core::sse::{Decoder, Event, EventTooLarge};

use super::confidential::Confidential;
use super::seen::Seen;
use crate::transport::{self, Disposition, Incoming, Stream};

pub(super) type Events = BoxStream<'static, Result<Sse, SseError>>;

/// How many events are passed on before other tasks get a turn.
const IN_A_ROW: usize = 32;

/// The context of a response.
#[derive(Clone)]
pub(super) struct Reader {
    pub(super) seen: Seen,
    /// The request that it answers.
    pub(super) request: Option<RequestId>,
    /// The requests that its messages can belong to.
    pub(super) stream: Stream,
    /// Whether it lists tools in the modern era; `None` if it lists none.
    pub(super) lists_tools: Option<bool>,
    /// The secrets that must not be quoted.
    pub(super) confidential: Arc<Confidential>,
}

impl Reader {
    /// The messages in a text.
    pub(super) fn read(&self, text: &[u8]) -> Vec<Disposition> {
        if self.lists_tools == Some(false) {
            self.seen.task_only.look_at(text);
        }
        self.seen.traffic.record(text);
        let requests = &self.seen.requests;
        let incoming = transport::read(text, |id| requests.is_in_flight(id));
        incoming.into_iter().map(|incoming| self.admitted(incoming)).collect()
    }

    /// Processes one incoming item.
    pub(super) fn admitted(&self, incoming: Incoming) -> Disposition {
        let incoming = match incoming {
            Incoming::Unreadable { id, why } => Incoming::Unreadable { id, why: self.confidential.redacted(&why) },
            Incoming::Message(message, flaws) => Incoming::Message(Box::new(self.without_secrets(*message)), flaws),
            Incoming::Noise => Incoming::Noise,
        };
        let admitted = self.seen.requests.admit(incoming, &self.stream);
        if let Disposition::Message(message) = &admitted {
            self.seen.replies.record(message);
            if self.lists_tools == Some(true)
                && let JsonRpcMessage::Response(response) = &**message
                && let Ok(result) = serde_json::to_value(&response.result)
            {
                self.seen.tools.inspect(&result);
            }
        }
        admitted
    }

    /// An error may repeat the request, as that of a refused request does.
    fn without_secrets(&self, message: ServerJsonRpcMessage) -> ServerJsonRpcMessage {
        match message {
            JsonRpcMessage::Error(mut error) => {
                error.error = self.confidential.error(error.error);
                JsonRpcMessage::Error(error)
            }
            other @ (JsonRpcMessage::Request(_) | JsonRpcMessage::Response(_) | JsonRpcMessage::Notification(_)) => {
                other
            }
        }
    }

    /// The failure of the request that the response answers, if there is one.
    pub(super) fn failure(&self, why: String) -> Option<ServerJsonRpcMessage> {
        let request = self.request.clone()?;
        Some(self.seen.requests.fail(request, self.confidential.redacted(&why)))
    }

    /// The events of a stream, as far as the SDK needs them.
    pub(super) fn events(self, response: reqwest::Response, max: usize) -> Events {
        let over = match &self.stream {
            Stream::Of(id) => Some(ReadGuard { seen: self.seen.clone(), id: id.clone() }),
            Stream::Shared => None,
        };
        let reading = StreamState {
            response,
            decoder: Decoder::up_to(max),
            reader: self,
            ready: VecDeque::new(),
            last_id: None,
            in_a_row: 0,
            is_over: false,
            _over: over,
        };
        unfold(reading, |mut reading| async move { reading.next().await.map(|event| (event, reading)) }).boxed()
    }
}

/// Messages as events for the SDK.
pub(super) fn events_of(messages: Vec<ServerJsonRpcMessage>) -> Events {
    futures::stream::iter(messages.into_iter().map(|message| Ok(event(&message)))).boxed()
}

fn event(message: &ServerJsonRpcMessage) -> Sse {
    Sse::default().data(serde_json::to_string(message).unwrap_or_default())
}

/// A request whose response is being read. Dropping it ends the reading.
struct ReadGuard {
    seen: Seen,
    id: RequestId,
}

impl Drop for ReadGuard {
    fn drop(&mut self) {
        self.seen.requests.over(&self.id);
    }
}

struct StreamState {
    response: reqwest::Response,
    decoder: Decoder,
    reader: Reader,
    ready: VecDeque<Result<Sse, SseError>>,
    /// The id of the last event that had one.
    last_id: Option<String>,
    in_a_row: usize,
    is_over: bool,
    _over: Option<ReadGuard>,
}

impl StreamState {
    async fn next(&mut self) -> Option<Result<Sse, SseError>> {
        if self.in_a_row >= IN_A_ROW {
            self.in_a_row = 0;
            tokio::task::yield_now().await;
        }
        self.in_a_row += 1;
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.is_over {
                return None;
            }
            if let Err(why) = self.reader.seen.replies.has_room().await {
                self.fail(why);
                continue;
            }
            match self.response.chunk().await {
                Ok(Some(bytes)) => {
                    for found in self.decoder.push(&bytes) {
                        self.take(found);
                    }
                }
                Err(error) => {
                    self.end();
                    self.ready.push_back(Err(SseError::Body(Box::new(error))));
                }
                Ok(None) => {
                    if let Some(event) = self.decoder.finish() {
                        self.take(Ok(event));
                    }
                    self.end();
                }
            }
        }
    }

    /// The stream ended. The SDK resumes it if an event had an id.
    fn end(&mut self) {
        self.is_over = true;
        if let (Some(id), Some(request)) = (self.last_id.take(), self.reader.request.clone()) {
            self.reader.seen.resumable.note(id, request);
        }
    }

    fn take(&mut self, found: Result<Event, EventTooLarge>) {
        let Event { kind, data, id, retry } = match found {
            Ok(event) => event,
            Err(EventTooLarge { limit }) => {
                let longest = limit >> 20;
                return self.fail(format!(
                    "it sent an event longer than {longest} MiB; let the tool return less, or in pieces"
                ));
            }
        };
        // The SDK cannot forget an id.
        let id = id.filter(|id| !id.is_empty());
        if id.is_some() {
            self.last_id.clone_from(&id);
        }
        // A resumed stream continues after the last id, so the id is passed on.
        let mut place = Sse { id, retry, ..Sse::default() };
        let is_message = kind.as_deref().is_none_or(|kind| kind == "message");
        for admitted in data.filter(|_| is_message).map(|data| self.reader.read(&data)).unwrap_or_default() {
            match admitted {
                Disposition::Message(message) => {
                    let place = std::mem::take(&mut place);
                    self.ready.push_back(Ok(Sse { id: place.id, retry: place.retry, ..event(&message) }));
                }
                Disposition::Ignored => {}
                Disposition::Noise => tracing::debug!("event of an MCP server ignored: not a message"),
            }
        }
        if place != Sse::default() {
            self.ready.push_back(Ok(place));
        }
    }

    fn fail(&mut self, why: String) {
        tracing::warn!(why, "event stream of an MCP server ended");
        self.is_over = true;
        if let Some(failure) = self.reader.failure(why) {
            self.ready.push_back(Ok(event(&failure)));
        }
    }
}
