//! Requests in flight, and the matching of answers to them.
//!
//! The id decides; `"7"` is 7, because some servers turn numbers into text. Over HTTP an answer that names no request
//! in flight belongs to the request whose response carries it. Over a stream that all requests share:
//!
//! - An answer with the id of a request in flight is its answer. If it cannot be read, the request fails at once.
//! - An answer with an id that was used before is late, or a duplicate. The SDK skips it.
//! - An answer with an id that was never used is ignored, with a warning. It fails no request: a server that several
//!   clients share sends each of them the answers of all, and a call that continues must not be reported as failed.
//! - *Anonymous* answers are an answer without a usable id, a text that cannot be read and has none, and an error
//!   whose id is a word (`"server-error"`). Such an answer can be meant for the only request in flight. It fails that
//!   request unless the right answer arrives within [`GRACE`]. In the handshake it fails the request at once, because
//!   nothing else can be meant. With several requests in flight it is ignored, with a warning.
//! - An answer in the wrong place (behind other text, on a line without an end) fails its request in the same way.
//! - Some servers answer notifications, and replies to their own requests, with an anonymous error. Such an error
//!   fails no call that was in flight with one of those: the effects of the call are real, and its answer follows.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage, ServerNotification,
};
use tokio::time::Instant;

use super::json::JsonFlaw;
use super::json_rpc::Incoming;
use super::progress;
use crate::fault::NO_CODE;

/// How many findings are kept. An unread finding belongs to a request whose caller stopped waiting.
const MAX_FINDINGS: usize = 256;
/// How long the right answer may follow an anonymous one.
const GRACE: Duration = Duration::from_secs(2);

/// The requests of one connection. Clones share the same requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    in_flight: HashMap<RequestId, Request>,
    findings: VecDeque<(RequestId, ResponseFinding)>,
    /// The numeric ids that were used, as ranges. The SDK counts, and so does the handshake.
    used: Vec<RangeInclusive<i64>>,
    /// How many messages were sent.
    sent: u64,
    /// The number of the last message without an answer: a notification or a reply.
    unasked: u64,
    /// The highest number among answered requests.
    settled: u64,
    /// The first anonymous answer to the only request in flight.
    anonymous: Option<Anonymous>,
    has_warned: bool,
}

/// An answer that names no request.
#[derive(Debug)]
struct Anonymous {
    /// The request that it may answer.
    request: RequestId,
    failure: Failure,
    /// When it takes effect.
    due: Instant,
}

/// The part of an answer that fails a request.
#[derive(Debug)]
enum Failure {
    Error(ErrorData),
    /// An unreadable answer, with the reason.
    Unreadable(String),
}

/// The addressee of an answer.
enum Address {
    /// This request, which is or was in flight.
    Request(RequestId),
    /// The request whose response carries it, although it names another one.
    Response(RequestId),
    /// A request that was never made.
    Stranger(RequestId),
    Anonymous,
}

#[derive(Debug)]
struct Request {
    number: u64,
    kind: Kind,
}

/// The kind of a request, for the rule about anonymous answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It begins the connection.
    Handshake,
    /// It may have effects.
    Call,
    /// It stays open for as long as the connection.
    Subscription,
    /// It can be repeated.
    Question,
}

/// A finding of the transport about an answer, besides the SDK's result.
#[derive(Debug, PartialEq)]
pub(crate) enum ResponseFinding {
    /// The answer could not be read, for this reason.
    Unreadable(String),
    /// Parts of the answer are not JSON values.
    Flaws(Vec<JsonFlaw>),
    /// The response ended without an answer. What the server wrote or did instead, for a sentence "broke off the
    /// connection: ...", if it wrote or did anything.
    Unanswered(Option<String>),
}

/// The stream that carries a message.
#[derive(Clone, Debug)]
pub(crate) enum Stream {
    /// All requests share it.
    Shared,
    /// The response to this request.
    Of(RequestId),
}

/// The disposition of an incoming item.
#[derive(Debug)]
pub(crate) enum Disposition {
    /// It is passed to the SDK.
    Message(Box<ServerJsonRpcMessage>),
    /// It has no effect.
    Ignored,
    /// It is not a message, or names no request.
    Noise,
}

impl Requests {
    /// Records a message that is about to be sent.
    pub(crate) fn sending(&self, message: &ClientJsonRpcMessage) {
        let mut state = self.lock();
        state.sent += 1;
        let number = state.sent;
        match message {
            JsonRpcMessage::Request(request) => {
                state.use_up(&request.id);
                state
                    .in_flight
                    .insert(request.id.clone(), Request { number, kind: Kind::from_request(&request.request) });
            }
            JsonRpcMessage::Notification(notification) => {
                state.unasked = number;
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    state.remove(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => state.unasked = number,
        }
    }

    /// Records the end of a request, answered or not.
    pub(crate) fn over(&self, id: &RequestId) {
        let mut state = self.lock();
        if let Some(request) = state.remove(id) {
            state.settled = state.settled.max(request.number);
        }
    }

    /// Records a finding about a request that is still in flight.
    pub(crate) fn note(&self, id: RequestId, finding: ResponseFinding) {
        if self.is_in_flight(&id) {
            self.add_finding(id, finding);
        }
    }

    /// Whether requests other than this one wait for an answer.
    pub(crate) fn are_others_in_flight(&self, own: &RequestId) -> bool {
        let state = self.lock();
        state.in_flight.iter().any(|(id, request)| id != own && request.kind != Kind::Subscription)
    }

    /// Whether a request with this id is in flight.
    pub(crate) fn is_in_flight(&self, id: &RequestId) -> bool {
        self.lock().in_flight.contains_key(&canonical(id))
    }

    /// Decides whether an incoming item is passed to the SDK, and in which form.
    pub(crate) fn admit(&self, incoming: Incoming, stream: &Stream) -> Disposition {
        match incoming {
            Incoming::Noise => Disposition::Noise,
            Incoming::Misplaced { id, why } => {
                self.misplaced(&id, why);
                Disposition::Noise
            }
            Incoming::Unreadable { id, why } => match self.address(id.as_ref(), stream) {
                Address::Request(id) | Address::Response(id) => Disposition::Message(Box::new(self.fail(id, why))),
                Address::Stranger(id) => self.ignored(&id),
                Address::Anonymous => self.anonymous(Failure::Unreadable(why)),
            },
            Incoming::Message(message, flaws) => match *message {
                JsonRpcMessage::Response(mut response) => {
                    let id = match self.address(Some(&response.id), stream) {
                        Address::Request(id) => id,
                        Address::Response(id) => {
                            let why = format!("it answered under the id `{}`, which no request has", response.id);
                            return Disposition::Message(Box::new(self.fail(id, why)));
                        }
                        Address::Stranger(id) => return self.ignored(&id),
                        Address::Anonymous => return Disposition::Noise,
                    };
                    if !flaws.is_empty() {
                        self.add_finding(id.clone(), ResponseFinding::Flaws(flaws));
                    }
                    self.over(&id);
                    response.id = id;
                    Disposition::Message(Box::new(JsonRpcMessage::Response(response)))
                }
                JsonRpcMessage::Error(mut error) => {
                    let id = error.id.as_ref().filter(|id| matches!(canonical(id), RequestId::Number(_)));
                    let id = match self.address(id, stream) {
                        Address::Request(id) | Address::Response(id) => id,
                        Address::Stranger(id) => return self.ignored(&id),
                        Address::Anonymous => return self.anonymous(Failure::Error(error.error)),
                    };
                    self.over(&id);
                    error.id = Some(id);
                    Disposition::Message(Box::new(JsonRpcMessage::Error(error)))
                }
                JsonRpcMessage::Notification(mut notification) => {
                    if let ServerNotification::CustomNotification(custom) = &notification.notification
                        && let Some(report) = progress::typed(&custom.method, custom.params.as_ref())
                    {
                        notification.notification = report;
                    }
                    match is_of_use(&notification.notification) {
                        true => Disposition::Message(Box::new(JsonRpcMessage::Notification(notification))),
                        false => Disposition::Ignored,
                    }
                }
                request @ JsonRpcMessage::Request(_) => Disposition::Message(Box::new(request)),
            },
        }
    }

    /// Fails a request with this reason.
    pub(crate) fn fail(&self, id: RequestId, why: String) -> ServerJsonRpcMessage {
        let words = format!("its answer cannot be read: {why}");
        self.add_finding(id.clone(), ResponseFinding::Unreadable(why));
        self.over(&id);
        JsonRpcMessage::error(ErrorData::new(ErrorCode(NO_CODE), words, None), Some(id))
    }

    /// Takes the finding about the answer to a request.
    pub(crate) fn take_finding(&self, id: &RequestId) -> Option<ResponseFinding> {
        let mut state = self.lock();
        let place = state.findings.iter().position(|(request, _)| request == id)?;
        state.findings.remove(place).map(|(_, finding)| finding)
    }

    /// When the anonymous answer takes effect.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.lock().anonymous.as_ref().map(|anonymous| anonymous.due)
    }

    /// The failure of an anonymous answer, if the right answer is late, or cannot arrive any more.
    pub(crate) fn take_due(&self, is_over: bool) -> Option<ServerJsonRpcMessage> {
        let is_due = |anonymous: &mut Anonymous| is_over || anonymous.due <= Instant::now();
        let Anonymous { request, failure, .. } = self.lock().anonymous.take_if(is_due)?;
        Some(self.failed(request, failure))
    }

    fn address(&self, id: Option<&RequestId>, stream: &Stream) -> Address {
        let state = self.lock();
        let id = id.map(canonical);
        match (id, stream) {
            (Some(id), _) if state.in_flight.contains_key(&id) => Address::Request(id),
            (_, Stream::Of(request)) => Address::Response(request.clone()),
            (Some(id), Stream::Shared) if state.was_used(&id) => Address::Request(id),
            (Some(id), Stream::Shared) => Address::Stranger(id),
            (None, Stream::Shared) => Address::Anonymous,
        }
    }

    fn anonymous(&self, failure: Failure) -> Disposition {
        let mut state = self.lock();
        match state.only_one_in_flight() {
            Some((request, Kind::Handshake)) => {
                drop(state);
                return Disposition::Message(Box::new(self.failed(request, failure)));
            }
            Some((request, kind)) if kind != Kind::Call || state.unasked <= state.settled => {
                let due = Instant::now() + GRACE;
                state.anonymous.get_or_insert(Anonymous { request, failure, due });
                return Disposition::Ignored;
            }
            Some(_) | None => {}
        }
        drop(state);
        self.warn(&format!("it names no request: {failure}"));
        Disposition::Noise
    }

    /// Fails a request whose answer is in the wrong place, unless the answer arrives in the right one in time: servers
    /// log what they send.
    fn misplaced(&self, id: &RequestId, why: String) {
        let mut state = self.lock();
        let request = canonical(id);
        if state.in_flight.contains_key(&request) {
            let (failure, due) = (Failure::Unreadable(why), Instant::now() + GRACE);
            state.anonymous.get_or_insert(Anonymous { request, failure, due });
        }
    }

    fn ignored(&self, id: &RequestId) -> Disposition {
        self.warn(&format!("its id is `{id}`, which no request had"));
        Disposition::Noise
    }

    /// Logs an ignored answer, at `warn` only once a connection: a server may send any number of them.
    fn warn(&self, why: &str) {
        match std::mem::replace(&mut self.lock().has_warned, true) {
            false => tracing::warn!(why, "answer of an MCP server ignored"),
            true => tracing::debug!(why, "answer of an MCP server ignored"),
        }
    }

    fn failed(&self, request: RequestId, failure: Failure) -> ServerJsonRpcMessage {
        match failure {
            Failure::Error(error) => {
                self.over(&request);
                JsonRpcMessage::error(error, Some(request))
            }
            Failure::Unreadable(why) => self.fail(request, why),
        }
    }

    /// Records a finding about a request.
    pub(crate) fn add_finding(&self, id: RequestId, finding: ResponseFinding) {
        let mut state = self.lock();
        if state.findings.len() == MAX_FINDINGS {
            state.findings.pop_front();
        }
        state.findings.push_back((id, finding));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The request that an anonymous answer may be meant for.
    fn only_one_in_flight(&self) -> Option<(RequestId, Kind)> {
        let mut candidates = self.in_flight.iter().filter(|(_, request)| request.kind != Kind::Subscription);
        match (candidates.next(), candidates.next()) {
            (Some((id, request)), None) => Some((id.clone(), request.kind)),
            _ => None,
        }
    }

    fn remove(&mut self, id: &RequestId) -> Option<Request> {
        self.anonymous.take_if(|anonymous| anonymous.request == *id);
        self.in_flight.remove(id)
    }

    fn use_up(&mut self, id: &RequestId) {
        let RequestId::Number(number) = *id else { return };
        if self.used.iter().any(|range| range.contains(&number)) {
            return;
        }
        match self.used.iter_mut().find(|range| range.end().checked_add(1) == Some(number)) {
            Some(range) => *range = *range.start()..=number,
            None => self.used.push(number..=number),
        }
    }

    fn was_used(&self, id: &RequestId) -> bool {
        match id {
            RequestId::Number(number) => self.used.iter().any(|range| range.contains(number)),
            RequestId::String(_) => false,
        }
    }
}

impl Kind {
    #[expect(clippy::wildcard_enum_match_arm, reason = "an open enum of the SDK; what it adds is asked, not done")]
    fn from_request(request: &ClientRequest) -> Self {
        match request {
            ClientRequest::InitializeRequest(_) | ClientRequest::DiscoverRequest(_) => Self::Handshake,
            ClientRequest::CallToolRequest(_) => Self::Call,
            ClientRequest::SubscriptionsListenRequest(_) => Self::Subscription,
            _ => Self::Question,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(error) => write!(to, "the JSON-RPC error {}", error.code.0),
            Self::Unreadable(why) => to.write_str(why),
        }
    }
}

fn canonical(id: &RequestId) -> RequestId {
    match id {
        RequestId::String(text) => text.parse().map_or_else(|_| id.clone(), RequestId::Number),
        RequestId::Number(_) => id.clone(),
    }
}

/// Whether a notification has an effect. Servers send their logs as notifications, without limit.
fn is_of_use(notification: &ServerNotification) -> bool {
    !matches!(
        notification,
        ServerNotification::LoggingMessageNotification(_)
            | ServerNotification::ResourceUpdatedNotification(_)
            | ServerNotification::ResourceListChangedNotification(_)
            | ServerNotification::PromptListChangedNotification(_)
            | ServerNotification::CustomNotification(_)
    )
}

#[cfg(test)]
mod tests;
