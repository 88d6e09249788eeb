//! Requests in flight, and which of them an answer belongs to.
//!
//! An answer belongs to the request of its id; `"7"` is 7, because servers are known to turn numbers into text. An answer
//! that names no request fails the one request that can be meant: over HTTP that of the response it came in, over a stream
//! that all requests share the only one in flight.

use std::collections::{HashMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage, ServerNotification,
};

use super::json::Flaw;
use super::message::Incoming;
use crate::mcp::fault::NO_CODE;

/// How many remarks are kept. A remark that is not read belongs to a request that nothing waits for.
const MAX_REMARKS: usize = 256;

/// The requests of one connection. Clones are the same requests.
#[derive(Clone, Debug, Default)]
pub(in crate::mcp) struct Requests(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    in_flight: HashMap<RequestId, Request>,
    remarks: VecDeque<(RequestId, Remark)>,
    /// The numbers that were in use as ids, as ranges. The SDK counts, and so does the handshake.
    used: Vec<RangeInclusive<i64>>,
    /// How many messages were sent.
    sent: u64,
    /// The number of the last notification.
    notified: u64,
    /// The highest number among requests that were answered.
    settled: u64,
}

#[derive(Debug)]
struct Request {
    number: u64,
    /// Whether it stays open for as long as the connection.
    is_subscription: bool,
}

/// What the transport found in an answer besides what the SDK makes of it.
#[derive(Debug, PartialEq)]
pub(in crate::mcp) enum Remark {
    /// It could not be read, for the reason in words.
    Unreadable(String),
    /// Parts of it are no JSON values.
    Flaws(Vec<Flaw>),
}

/// The stream on which something came in.
#[derive(Clone, Debug)]
pub(in crate::mcp) enum Stream {
    /// All requests share it.
    Shared,
    /// The response to this request.
    Of(RequestId),
}

/// What becomes of something that came in.
#[derive(Debug)]
pub(in crate::mcp) enum Admitted {
    /// The SDK gets it.
    Message(Box<ServerJsonRpcMessage>),
    /// Nothing that is done depends on it.
    Ignored,
    /// It is no message, or names no request.
    Noise,
}

impl Requests {
    /// A message is about to be sent.
    pub(in crate::mcp) fn sending(&self, message: &ClientJsonRpcMessage) {
        let mut state = self.lock();
        state.sent += 1;
        let number = state.sent;
        match message {
            JsonRpcMessage::Request(request) => {
                let is_subscription = matches!(request.request, ClientRequest::SubscriptionsListenRequest(_));
                state.use_up(&request.id);
                state.in_flight.insert(request.id.clone(), Request { number, is_subscription });
            }
            JsonRpcMessage::Notification(notification) => {
                state.notified = number;
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    state.in_flight.remove(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }

    /// A request is over, answered or not.
    pub(in crate::mcp) fn over(&self, id: &RequestId) {
        let mut state = self.lock();
        if let Some(request) = state.in_flight.remove(id) {
            state.settled = state.settled.max(request.number);
        }
    }

    /// Whether a request of this id waits for its answer.
    pub(in crate::mcp) fn is_in_flight(&self, id: &RequestId) -> bool {
        self.lock().in_flight.contains_key(&canonical(id))
    }

    /// Says what the SDK gets of something that came in.
    pub(in crate::mcp) fn admit(&self, incoming: Incoming, stream: &Stream) -> Admitted {
        match incoming {
            Incoming::Noise => Admitted::Noise,
            Incoming::Unreadable { id, why } => self.unreadable(id.as_ref(), why, stream),
            Incoming::Message(message, flaws) => match *message {
                JsonRpcMessage::Response(mut response) => {
                    let Some(id) = self.answered(&response.id, stream) else {
                        let why = format!("it answered under the id `{}`, which no request has", response.id);
                        return self.unreadable(None, why, stream);
                    };
                    if !flaws.is_empty() {
                        self.remark(id.clone(), Remark::Flaws(flaws));
                    }
                    self.over(&id);
                    response.id = id;
                    Admitted::Message(Box::new(JsonRpcMessage::Response(response)))
                }
                JsonRpcMessage::Error(mut error) => {
                    let named = error.id.as_ref().and_then(|id| self.answered(id, stream));
                    let Some(id) = named.or_else(|| self.meant(stream)) else { return Admitted::Noise };
                    self.over(&id);
                    error.id = Some(id);
                    Admitted::Message(Box::new(JsonRpcMessage::Error(error)))
                }
                JsonRpcMessage::Notification(notification) if !is_of_use(&notification.notification) => {
                    Admitted::Ignored
                }
                other @ (JsonRpcMessage::Notification(_) | JsonRpcMessage::Request(_)) => {
                    Admitted::Message(Box::new(other))
                }
            },
        }
    }

    /// Fails a request for the reason.
    pub(in crate::mcp) fn fail(&self, id: RequestId, why: String) -> ServerJsonRpcMessage {
        let words = format!("its answer cannot be read: {why}");
        self.remark(id.clone(), Remark::Unreadable(why));
        self.over(&id);
        JsonRpcMessage::error(ErrorData::new(ErrorCode(NO_CODE), words, None), Some(id))
    }

    /// What was found in the answer to a request.
    pub(in crate::mcp) fn take_remark(&self, id: &RequestId) -> Option<Remark> {
        let mut state = self.lock();
        let place = state.remarks.iter().position(|(request, _)| request == id)?;
        state.remarks.remove(place).map(|(_, remark)| remark)
    }

    fn unreadable(&self, id: Option<&RequestId>, why: String, stream: &Stream) -> Admitted {
        match id.and_then(|id| self.answered(id, stream)).or_else(|| self.meant(stream)) {
            Some(id) => Admitted::Message(Box::new(self.fail(id, why))),
            None => {
                tracing::warn!(why, "an MCP server sent an answer that cannot be read and names no request in flight");
                Admitted::Noise
            }
        }
    }

    /// The request that an answer with this id belongs to. An answer under an id that was in use before is late, or comes
    /// twice; the SDK passes over it.
    fn answered(&self, id: &RequestId, stream: &Stream) -> Option<RequestId> {
        let id = canonical(id);
        let state = self.lock();
        if state.in_flight.contains_key(&id) {
            return Some(id);
        }
        match stream {
            Stream::Of(_) => None,
            Stream::Shared => state.was_used(&id).then_some(id),
        }
    }

    /// The request that an answer without a usable id belongs to, if there is but one that can be meant. Some servers answer
    /// a notification, with an error that has no id; it is no answer to the request that follows.
    fn meant(&self, stream: &Stream) -> Option<RequestId> {
        if let Stream::Of(id) = stream {
            return Some(id.clone());
        }
        let state = self.lock();
        if state.notified > state.settled {
            return None;
        }
        let mut candidates = state.in_flight.iter().filter(|(_, request)| !request.is_subscription);
        match (candidates.next(), candidates.next()) {
            (Some((id, _)), None) => Some(id.clone()),
            _ => None,
        }
    }

    fn remark(&self, id: RequestId, remark: Remark) {
        let mut state = self.lock();
        if state.remarks.len() == MAX_REMARKS {
            state.remarks.pop_front();
        }
        state.remarks.push_back((id, remark));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
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

fn canonical(id: &RequestId) -> RequestId {
    match id {
        RequestId::String(text) => text.parse().map_or_else(|_| id.clone(), RequestId::Number),
        RequestId::Number(_) => id.clone(),
    }
}

/// Whether anything is done about a notification. Servers write their logs as notifications, without measure.
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
mod tests {
    use rmcp::model::{InitializedNotification, PingRequest};
    use serde_json::{Value, json};

    use super::*;
    use crate::mcp::transport::message;

    /// Requests of which these are in flight.
    fn in_flight(ids: &[i64]) -> Requests {
        let requests = Requests::default();
        ids.iter().for_each(|id| send(&requests, *id));
        requests
    }

    fn send(requests: &Requests, id: i64) {
        let ping = ClientRequest::PingRequest(PingRequest::default());
        requests.sending(&JsonRpcMessage::request(ping, RequestId::Number(id)));
    }

    /// What the SDK gets of a text: the message as JSON, or `null`.
    fn admitted(requests: &Requests, text: &str, stream: &Stream) -> Value {
        let [incoming] = &mut message::read(text.as_bytes(), |id| requests.is_in_flight(id))[..] else {
            panic!("{text}")
        };
        match requests.admit(std::mem::replace(incoming, Incoming::Noise), stream) {
            Admitted::Message(message) => serde_json::to_value(message).expect("JSON"),
            Admitted::Ignored | Admitted::Noise => Value::Null,
        }
    }

    const BROKEN: &str = r#"{"jsonrpc":"2.0","result":"#;
    const NO_ID: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}"#;
    const STRANGER: &str = r#"{"jsonrpc":"2.0","id":99,"result":{}}"#;

    #[test]
    fn an_answer_belongs_to_the_request_of_its_id() {
        let requests = in_flight(&[1, 7]);
        for (text, id) in
            [(r#"{"jsonrpc":"2.0","id":"7","result":{}}"#, 7), (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, 1)]
        {
            assert_eq!(admitted(&requests, text, &Stream::Shared)["id"], id);
            assert!(!requests.is_in_flight(&RequestId::Number(id)));
        }
    }

    #[test]
    fn an_answer_that_names_no_request_fails_the_only_one_in_flight() {
        for (text, why) in [(BROKEN, "it is no JSON"), (STRANGER, "under the id `99`"), (NO_ID, "no")] {
            let requests = in_flight(&[7]);
            let answer = admitted(&requests, text, &Stream::Shared);
            assert_eq!(answer["id"], 7, "{text}");
            assert!(answer["error"]["message"].as_str().is_some_and(|words| words.contains(why)), "{answer}");
            let of_two = in_flight(&[6, 7]);
            assert_eq!(admitted(&of_two, text, &Stream::Shared), Value::Null, "{text}: it may be for either");
            let answer = admitted(&of_two, text, &Stream::Of(RequestId::Number(6)));
            assert_eq!(answer["id"], 6, "{text}: a response belongs to its request");
        }
    }

    #[test]
    fn what_was_found_in_an_answer_is_kept_for_its_request_alone() {
        let requests = in_flight(&[7]);
        admitted(&requests, BROKEN, &Stream::Shared);
        assert_eq!(requests.take_remark(&RequestId::Number(6)), None);
        assert!(matches!(requests.take_remark(&RequestId::Number(7)), Some(Remark::Unreadable(_))));
        assert_eq!(requests.take_remark(&RequestId::Number(7)), None);
    }

    #[test]
    fn a_late_answer_and_one_to_a_notification_fail_no_request() {
        let requests = in_flight(&[6]);
        requests.over(&RequestId::Number(6));
        let done = ClientNotification::InitializedNotification(InitializedNotification::default());
        requests.sending(&JsonRpcMessage::notification(done));
        send(&requests, 7);
        let late = admitted(&requests, r#"{"jsonrpc":"2.0","id":6,"result":{}}"#, &Stream::Shared);
        assert_eq!(late["id"], 6, "the SDK passes over it");
        assert_eq!(admitted(&requests, NO_ID, &Stream::Shared), Value::Null, "it may answer the notification");
        assert_eq!(admitted(&requests, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, &Stream::Shared)["id"], 7);
        send(&requests, 8);
        assert_eq!(admitted(&requests, NO_ID, &Stream::Shared)["id"], 8, "the notification lies before an answer");
    }

    #[test]
    fn what_nothing_is_done_about_does_not_reach_the_sdk() {
        let requests = in_flight(&[7]);
        for (method, is_of_use) in [
            ("notifications/message", false),
            ("notifications/made-up", false),
            ("notifications/tools/list_changed", true),
        ] {
            let params = json!({"level": "info", "data": 1});
            let text = json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string();
            assert_eq!(!admitted(&requests, &text, &Stream::Shared).is_null(), is_of_use, "{method}");
        }
    }
}
