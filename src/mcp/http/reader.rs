//! Reader of HTTP responses: converts JSON bodies and event streams to messages for the SDK.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::unfold;
use rmcp::model::{JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{SseError, StreamableHttpPostResponse};
use serde_json::Value;
use sse_stream::Sse;
use tokio::time::timeout;
use toolgate_core::sse::{Decoder, Event, EventTooLarge};

use super::client::Events;
use super::confidential::Confidential;
use super::elsewhere::{AnswerElsewhere, OpenResponse};
use super::non_mcp_response::NonMcpResponse;
use super::seen::Seen;
use crate::transport::{self, Disposition, Incoming, ResponseFinding, Stream};

/// How many events are passed on before other tasks get a turn.
const IN_A_ROW: usize = 32;
/// How long an answer may arrive on the response of another request after its own response ended without one.
const GRACE: Duration = Duration::from_secs(2);
/// How long a response may take to its first message and still be read here. The SDK parses an event a second time, in a
/// task of its own; it also ends the stream with its request, and resumes it, which matters only for a longer one.
const AT_ONCE: Duration = Duration::from_millis(100);
/// How often the reader of a rest looks whether other requests are still in flight.
const REST_CHECK: Duration = Duration::from_secs(1);

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
            // The end of the response follows, and quotes the text.
            Incoming::Misplaced { .. } => Incoming::Noise,
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

    /// Moves the answer to another request to the response of that request. Returns every other message.
    pub(super) fn own(&self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        match &self.request {
            Some(own) => self.seen.elsewhere.sort(message, own),
            None => Some(message),
        }
    }

    /// A body without a message.
    pub(super) fn no_message(&self, body: &[u8]) -> NonMcpResponse {
        match serde_json::from_slice::<Value>(body) {
            Ok(json) => NonMcpResponse::Json(self.confidential.beginning(&json.to_string())),
            Err(_) if body.trim_ascii().is_empty() => NonMcpResponse::NotJson("it is empty".into()),
            Err(why) => {
                NonMcpResponse::NotJson(self.confidential.redacted(&format!("{why}: {}", transport::quoted(body))))
            }
        }
    }

    /// The failure of the request that the response answers, if there is one.
    pub(super) fn failure(&self, why: String) -> Option<ServerJsonRpcMessage> {
        let request = self.request.clone()?;
        Some(self.seen.requests.fail(request, self.confidential.redacted(&why)))
    }

    /// The answer in a stream, if it is the first message and arrives within [`AT_ONCE`]. Otherwise the stream.
    pub(super) async fn answer_or_events(
        self,
        response: reqwest::Response,
        max: usize,
        session: Option<String>,
    ) -> StreamableHttpPostResponse {
        let mut stream = self.open(response, max);
        match stream.answer_at_once().await {
            Some(answer) => StreamableHttpPostResponse::Json(answer, session),
            None => StreamableHttpPostResponse::Sse(stream.into_events(), session),
        }
    }

    /// The events of a stream, as far as the SDK needs them.
    pub(super) fn events(self, response: reqwest::Response, max: usize) -> Events {
        self.open(response, max).into_events()
    }

    fn open(self, response: reqwest::Response, max: usize) -> OpenStream {
        let (over, elsewhere) = match &self.stream {
            Stream::Of(id) => {
                let open = self.seen.elsewhere.open();
                let over = ReadGuard { seen: self.seen.clone(), id: id.clone(), _open: open };
                (Some(over), Some(self.seen.elsewhere.expect(id.clone())))
            }
            Stream::Shared => (None, None),
        };
        let reading = StreamState {
            response,
            decoder: Decoder::up_to(max),
            reader: self,
            ready: VecDeque::new(),
            elsewhere,
            may_be_elsewhere: false,
            last_id: None,
            noise: None,
            in_a_row: 0,
            is_over: false,
            is_rest: false,
            _over: over,
        };
        OpenStream(Some(reading))
    }
}

/// Messages as events for the SDK.
pub(super) fn events_of(messages: Vec<ServerJsonRpcMessage>) -> Events {
    futures::stream::iter(messages.into_iter().map(|message| StreamItem::from(message).into_event())).boxed()
}

/// One item of a stream.
enum StreamItem {
    /// A message, with the id and the pause that its event carried.
    Message {
        message: Box<ServerJsonRpcMessage>,
        place: Sse,
    },
    /// An event without a message.
    Place(Sse),
    Failed(SseError),
}

impl StreamItem {
    /// The item as the SDK reads it.
    fn into_event(self) -> Result<Sse, SseError> {
        match self {
            Self::Message { message, place } => Ok(place.data(serde_json::to_string(&message).unwrap_or_default())),
            Self::Place(place) => Ok(place),
            Self::Failed(error) => Err(error),
        }
    }
}

impl From<ServerJsonRpcMessage> for StreamItem {
    fn from(message: ServerJsonRpcMessage) -> Self {
        Self::Message { message: Box::new(message), place: Sse::default() }
    }
}

/// A request whose response is being read. Dropping it ends the reading.
struct ReadGuard {
    seen: Seen,
    id: RequestId,
    _open: OpenResponse,
}

impl Drop for ReadGuard {
    fn drop(&mut self) {
        self.seen.requests.over(&self.id);
    }
}

/// The stream as the SDK holds it. The SDK drops a stream after the answer to its request; answers to other requests
/// may follow on it.
struct OpenStream(Option<StreamState>);

impl OpenStream {
    /// The answer to the request, if it is the first message and arrives in time. Nothing is taken otherwise.
    async fn answer_at_once(&mut self) -> Option<ServerJsonRpcMessage> {
        let state = self.0.as_mut()?;
        let own = state.reader.request.clone()?;
        let mut before = Vec::new();
        let first_message = timeout(AT_ONCE, async {
            loop {
                match state.next().await {
                    Some(place @ StreamItem::Place(_)) => before.push(place),
                    other => break other,
                }
            }
        });
        let other = match first_message.await {
            Ok(Some(StreamItem::Message { message, .. })) if answers(&message, &own) => return Some(*message),
            Ok(other) => other,
            Err(_) => None,
        };
        before.into_iter().chain(other).rev().for_each(|item| state.ready.push_front(item));
        None
    }

    fn into_events(self) -> Events {
        unfold(self, |mut reading| async move {
            let item = reading.0.as_mut()?.next().await?;
            Some((item.into_event(), reading))
        })
        .boxed()
    }
}

/// Whether a message answers this request.
pub(super) fn answers(message: &ServerJsonRpcMessage, request: &RequestId) -> bool {
    match message {
        JsonRpcMessage::Response(response) => response.id == *request,
        JsonRpcMessage::Error(error) => error.id.as_ref() == Some(request),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => false,
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        if let Some(reading) = self.0.take().filter(StreamState::may_have_a_rest) {
            let elsewhere = reading.reader.seen.elsewhere.clone();
            let rest = StreamState { is_rest: true, elsewhere: None, ..reading };
            elsewhere
                .leave(unfold(rest, |mut rest| async move { Some((rest.next().await?.into_event(), rest)) }).boxed());
        }
    }
}

struct StreamState {
    response: reqwest::Response,
    decoder: Decoder,
    reader: Reader,
    ready: VecDeque<StreamItem>,
    /// The answer, if it arrives on another response.
    elsewhere: Option<AnswerElsewhere>,
    /// Whether the stream ended, and the answer may still arrive on another response.
    may_be_elsewhere: bool,
    /// The id of the last event that had one.
    last_id: Option<String>,
    /// The first event that is not a message, for the error of a request without an answer.
    noise: Option<String>,
    in_a_row: usize,
    is_over: bool,
    /// Whether the SDK is done with the stream, which is read for the answers to other requests.
    is_rest: bool,
    _over: Option<ReadGuard>,
}

impl StreamState {
    /// The next item. Cancel safe.
    async fn next(&mut self) -> Option<StreamItem> {
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
                self.may_be_elsewhere.then_some(())?;
                self.wait_elsewhere().await;
                self.may_be_elsewhere = false;
                continue;
            }
            if let Err(why) = self.reader.seen.replies.has_room().await {
                self.fail(why);
                continue;
            }
            let piece = tokio::select! {
                biased;
                Some(answer) = answer_elsewhere(&mut self.elsewhere) => {
                    self.ready.push_back(answer.into());
                    self.is_over = true;
                    continue;
                }
                () = tokio::time::sleep(REST_CHECK), if self.is_rest => {
                    self.is_over = !self.others_are_in_flight();
                    continue;
                }
                piece = self.response.chunk() => piece,
            };
            match piece {
                Ok(Some(bytes)) => {
                    for found in self.decoder.push(&bytes) {
                        self.take(found);
                    }
                }
                Err(error) => {
                    self.end();
                    self.ready.push_back(StreamItem::Failed(SseError::Body(Box::new(error))));
                }
                Ok(None) => {
                    if let Some(event) = self.decoder.finish() {
                        self.take(Ok(event));
                    }
                    self.end();
                    self.may_be_elsewhere = true;
                }
            }
        }
    }

    /// The stream ended. The SDK resumes it if an event had an id.
    fn end(&mut self) {
        self.is_over = true;
        let Some(request) = self.reader.request.clone().filter(|_| !self.is_rest) else { return };
        let is_resumed = matches!(self.reader.stream, Stream::Shared);
        match (self.last_id.take(), self.noise.take()) {
            (Some(id), _) => self.reader.seen.resumable.note(id, request),
            (None, Some(noise)) if !is_resumed => {
                let words = format!("it answered with an event that is no MCP message, {noise}, and nothing more");
                self.reader.seen.requests.note(request, ResponseFinding::Unanswered(Some(words)));
            }
            (None, None) if !is_resumed => {
                self.reader.seen.requests.note(request, ResponseFinding::Unanswered(None));
            }
            (None, Some(_) | None) => {}
        }
    }

    /// Waits for an answer on another response, if there is another one. The request of that response may have its answer
    /// already.
    async fn wait_elsewhere(&mut self) {
        let is_answered = self.reader.request.as_ref().is_none_or(|own| !self.reader.seen.requests.is_in_flight(own));
        let has_others = self.others_are_in_flight() || self.reader.seen.elsewhere.has_others_open();
        if is_answered || self.last_id.is_some() || !has_others {
            return;
        }
        if let Ok(Some(answer)) = timeout(GRACE, answer_elsewhere(&mut self.elsewhere)).await {
            self.ready.push_back(answer.into());
        }
    }

    fn others_are_in_flight(&self) -> bool {
        self.reader.request.as_ref().is_some_and(|own| self.reader.seen.requests.are_others_in_flight(own))
    }

    /// Whether answers to other requests may follow the answer that was read.
    fn may_have_a_rest(&self) -> bool {
        let is_answered = |own| !self.reader.seen.requests.is_in_flight(own);
        !self.is_over
            && !self.is_rest
            && matches!(self.reader.stream, Stream::Of(_))
            && self.reader.request.as_ref().is_some_and(is_answered)
            && self.others_are_in_flight()
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
        let data = data.filter(|_| is_message);
        let mut is_noise = false;
        for admitted in data.as_ref().map(|data| self.reader.read(data)).unwrap_or_default() {
            match admitted {
                Disposition::Message(message) => {
                    self.reader.seen.resumable.moved(self.reader.request.as_ref());
                    let Some(message) = self.reader.own(*message) else { continue };
                    let (message, place) = (Box::new(message), std::mem::take(&mut place));
                    self.ready.push_back(StreamItem::Message { message, place });
                }
                Disposition::Ignored => {}
                Disposition::Noise => {
                    tracing::debug!("event of an MCP server ignored: not a message");
                    is_noise = true;
                }
            }
        }
        if place != Sse::default() {
            self.ready.push_back(StreamItem::Place(place));
        }
        if let Some(data) = data.filter(|data| is_noise && self.noise.is_none() && !data.trim_ascii().is_empty()) {
            self.noise = Some(self.reader.confidential.redacted(&transport::quoted(&data)));
        }
    }

    fn fail(&mut self, why: String) {
        tracing::warn!(why, "event stream of an MCP server ended");
        self.is_over = true;
        if let Some(failure) = self.reader.failure(why) {
            self.ready.push_back(failure.into());
        }
    }
}

/// Waits for the answer on another response. Never ends without one.
async fn answer_elsewhere(elsewhere: &mut Option<AnswerElsewhere>) -> Option<ServerJsonRpcMessage> {
    match elsewhere {
        Some(receiver) => {
            let answer = receiver.await.ok();
            *elsewhere = None;
            answer
        }
        None => std::future::pending().await,
    }
}
