//! Limit for servers that send requests over HTTP without taking the replies, each of which is a POST of its own.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{
    ClientJsonRpcMessage, JsonRpcMessage, RequestId, ServerJsonRpcMessage, ServerNotification, ServerRequest,
};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// How many requests of a server may wait for replies before reading pauses.
const MAX_PENDING: usize = 64;
/// How long a server may take no reply while that many wait.
const STALL_TIMEOUT: Duration = Duration::from_secs(10);

/// The server's requests that wait for replies, for one connection. Clones share the same requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Replies(Arc<State>);

#[derive(Default)]
struct State {
    /// Each request, and whether a person may have to answer it first.
    pending: Mutex<HashMap<RequestId, bool>>,
    moved: Mutex<Option<Instant>>,
    taken: Notify,
}

impl Replies {
    /// Records a message of the server, which may be a request.
    #[expect(clippy::wildcard_enum_match_arm, reason = "open enums of the SDK; nothing else requests or cancels")]
    pub(super) fn record(&self, message: &ServerJsonRpcMessage) {
        match message {
            JsonRpcMessage::Request(request) => {
                let for_a_person = match &request.request {
                    ServerRequest::ElicitRequest(_) => true,
                    ServerRequest::CustomRequest(custom) => custom.method == crate::elicitation::METHOD,
                    _ => false,
                };
                let mut pending = self.pending();
                if pending.len() < MAX_PENDING {
                    // The time limit starts when the room is used up.
                    *self.0.moved.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
                }
                pending.insert(request.id.clone(), for_a_person);
            }
            JsonRpcMessage::Notification(notification) => {
                if let ServerNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.is_replied(id);
                }
            }
            _ => {}
        }
    }

    /// Records that a message is being posted. A reply no longer waits for a person.
    pub(super) fn sending(&self, message: &ClientJsonRpcMessage) {
        let mut pending = self.pending();
        if let Some(for_a_person) = replied(message).and_then(|id| pending.get_mut(id)) {
            *for_a_person = false;
        }
    }

    /// Records that the server took a message, or cannot take it; it may be a reply.
    pub(super) fn delivered(&self, message: &ClientJsonRpcMessage) {
        if let Some(id) = replied(message) {
            self.is_replied(id);
        }
    }

    /// Waits until there is room for more requests. The error is that the server takes no replies.
    pub(super) async fn has_room(&self) -> Result<(), String> {
        loop {
            let taken = self.0.taken.notified();
            let (waiting, for_people) = {
                let pending = self.pending();
                (pending.len(), pending.values().filter(|for_a_person| **for_a_person).count())
            };
            if waiting < MAX_PENDING {
                return Ok(());
            }
            let moved = *self.0.moved.lock().unwrap_or_else(PoisonError::into_inner);
            let give_up_at = moved.unwrap_or_else(Instant::now) + STALL_TIMEOUT;
            // A person has no time limit.
            let is_to_blame = waiting - for_people >= MAX_PENDING / 2;
            tokio::select! {
                biased;
                () = taken => {}
                () = sleep_until(give_up_at), if is_to_blame => {
                    return Err(format!(
                        "it does not accept replies: {waiting} of its requests wait for one, and it accepted none for \
                         {} s",
                        STALL_TIMEOUT.as_secs()
                    ));
                }
            }
        }
    }

    fn is_replied(&self, id: &RequestId) {
        if self.pending().remove(id).is_some() {
            *self.0.moved.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
            self.0.taken.notify_waiters();
        }
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<RequestId, bool>> {
        self.0.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The request that a message replies to.
fn replied(message: &ClientJsonRpcMessage) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replies").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use serde_json::{Value, json};

    use super::*;

    fn hear(replies: &Replies, message: Value) {
        replies.record(&serde_json::from_value(message).expect("a message"));
    }

    fn ask(replies: &Replies, id: usize, method: &str) {
        let params = json!({"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}});
        hear(replies, json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    fn ask_up_to_the_bound(replies: &Replies, method: &str) {
        (0..MAX_PENDING).for_each(|id| ask(replies, id, method));
    }

    fn reply(id: usize) -> ClientJsonRpcMessage {
        serde_json::from_value(json!({"jsonrpc": "2.0", "id": id, "result": {}})).expect("a reply")
    }

    fn deliver(replies: &Replies, id: usize) {
        replies.delivered(&reply(id));
    }

    fn is_full(replies: &Replies) -> bool {
        replies.has_room().now_or_never().is_none()
    }

    #[tokio::test]
    async fn a_server_may_ask_again_when_it_took_a_reply_or_cancelled_a_request() {
        let replies = Replies::default();
        (1..MAX_PENDING).for_each(|id| ask(&replies, id, "ping"));
        assert!(!is_full(&replies));
        ask(&replies, 0, "ping");
        assert!(is_full(&replies));
        let mut room = Box::pin(replies.has_room());
        assert!((&mut room).now_or_never().is_none());
        deliver(&replies, 7);
        assert_eq!(room.await, Ok(()), "it is woken");
        ask(&replies, 7, "ping");
        assert!(is_full(&replies));
        deliver(&replies, 1000);
        assert!(is_full(&replies), "that is not a request of the server");
        let params = json!({"requestId": 3});
        hear(&replies, json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
        assert!(!is_full(&replies));
        ask(&replies, 4, "ping");
        assert!(!is_full(&replies), "the same id is the same request");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_takes_no_reply_is_distinguished_from_a_slow_one() {
        let replies = Replies::default();
        ask_up_to_the_bound(&replies, "roots/list");
        let begun = Instant::now();
        for id in 0..4 {
            tokio::time::advance(STALL_TIMEOUT / 2).await;
            deliver(&replies, id);
            ask(&replies, id, "roots/list");
            assert!(is_full(&replies), "it takes replies slowly");
        }
        let why = replies.has_room().await.expect_err("it takes no reply");
        assert_eq!(begun.elapsed(), STALL_TIMEOUT / 2 * 4 + STALL_TIMEOUT);
        assert!(why.starts_with("it does not accept replies: 64 of its requests wait for one"), "{why}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_is_not_blamed_for_the_time_that_people_take() {
        let replies = Replies::default();
        ask_up_to_the_bound(&replies, "elicitation/create");
        let waited = tokio::time::timeout(STALL_TIMEOUT * 100, replies.has_room()).await;
        assert!(waited.is_err(), "it waits for people: {waited:?}");
        deliver(&replies, 0);
        assert_eq!(replies.has_room().await, Ok(()));
        ask(&replies, 0, "elicitation/create");
        (0..MAX_PENDING / 2).for_each(|id| replies.sending(&reply(id)));
        assert!(replies.has_room().await.is_err(), "people answered, and it takes no reply");
    }

    #[tokio::test]
    async fn clones_count_the_same_requests() {
        let replies = Replies::default();
        ask_up_to_the_bound(&replies.clone(), "ping");
        assert!(is_full(&replies));
    }
}
