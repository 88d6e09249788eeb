//! Bound on what a server asks over HTTP without taking the replies, each of which is a POST of its own.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{
    ClientJsonRpcMessage, JsonRpcMessage, RequestId, ServerJsonRpcMessage, ServerNotification, ServerRequest,
};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// How many requests of a server may wait for their replies before nothing more is read of it.
const MAX_ASKED: usize = 64;
/// How long a server may take no reply while that many wait.
const PATIENCE: Duration = Duration::from_secs(10);

/// The requests of the server behind one connection that wait for replies. Clones are the same requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Replies(Arc<State>);

#[derive(Default)]
struct State {
    /// With whether a person may have to answer it.
    asked: Mutex<HashMap<RequestId, bool>>,
    moved: Mutex<Option<Instant>>,
    taken: Notify,
}

impl Replies {
    /// The server said something, which may be a request.
    #[expect(clippy::wildcard_enum_match_arm, reason = "open enums of the SDK; nothing else asks or takes back")]
    pub(super) fn heard(&self, message: &ServerJsonRpcMessage) {
        match message {
            JsonRpcMessage::Request(request) => {
                let for_a_person = match &request.request {
                    ServerRequest::ElicitRequest(_) => true,
                    ServerRequest::CustomRequest(custom) => custom.method == crate::mcp::elicitation::METHOD,
                    _ => false,
                };
                let mut asked = self.asked();
                if asked.len() < MAX_ASKED {
                    // Its patience begins when there is no room any more.
                    *self.0.moved.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
                }
                asked.insert(request.id.clone(), for_a_person);
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

    /// A message was taken by the server, or cannot be; it may be a reply.
    pub(super) fn delivered(&self, message: &ClientJsonRpcMessage) {
        match message {
            JsonRpcMessage::Response(response) => self.is_replied(&response.id),
            JsonRpcMessage::Error(error) => error.id.iter().for_each(|id| self.is_replied(id)),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {}
        }
    }

    /// Waits until the server may ask for more. The error is that it takes no replies.
    pub(super) async fn has_room(&self) -> Result<(), String> {
        loop {
            let taken = self.0.taken.notified();
            let (waiting, for_people) = {
                let asked = self.asked();
                (asked.len(), asked.values().filter(|for_a_person| **for_a_person).count())
            };
            if waiting < MAX_ASKED {
                return Ok(());
            }
            let moved = *self.0.moved.lock().unwrap_or_else(PoisonError::into_inner);
            let patience = moved.unwrap_or_else(Instant::now) + PATIENCE;
            // A person takes as long as it takes.
            let is_to_blame = waiting - for_people >= MAX_ASKED / 2;
            tokio::select! {
                biased;
                () = taken => {}
                () = sleep_until(patience), if is_to_blame => {
                    return Err(format!(
                        "it does not take what it asked for: replies to {waiting} requests of its own wait, and it took \
                         nothing for {} s",
                        PATIENCE.as_secs()
                    ));
                }
            }
        }
    }

    fn is_replied(&self, id: &RequestId) {
        if self.asked().remove(id).is_some() {
            *self.0.moved.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
            self.0.taken.notify_waiters();
        }
    }

    fn asked(&self) -> MutexGuard<'_, HashMap<RequestId, bool>> {
        self.0.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replies").finish_non_exhaustive()
    }
}
