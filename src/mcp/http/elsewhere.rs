//! Answers that arrive on the response of another request.
//!
//! A server that keeps one response for all requests writes the answers of parallel calls to one stream. The SDK ends a
//! request's stream at the first answer on it, whichever request that answer belongs to. So an answer to another
//! request moves to the response of its own request, and the rest of a stream is read while other requests are in
//! flight.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use tokio::sync::{mpsc, oneshot};

use super::client::Events;

/// How many rests of streams are read at a time. Further ones are dropped.
const MAX_RESTS: usize = 16;

/// The receiver of an answer that arrives elsewhere.
pub(super) type AnswerElsewhere = oneshot::Receiver<ServerJsonRpcMessage>;

/// The requests of one connection that wait for an answer, and the rests of streams. Clones share both.
#[derive(Clone, Debug)]
pub(super) struct Elsewhere(Arc<State>);

#[derive(Debug)]
struct State {
    waiting: Mutex<HashMap<RequestId, oneshot::Sender<ServerJsonRpcMessage>>>,
    /// The number of responses that are being read, and of rests.
    open: AtomicUsize,
    rests: mpsc::Sender<Events>,
    /// Taken by the transport of the connection.
    unread_rests: Mutex<Option<mpsc::Receiver<Events>>>,
}

impl Default for Elsewhere {
    fn default() -> Self {
        let (rests, unread) = mpsc::channel(MAX_RESTS);
        Self(Arc::new(State {
            waiting: Mutex::default(),
            open: AtomicUsize::new(0),
            rests,
            unread_rests: Mutex::new(Some(unread)),
        }))
    }
}

impl Elsewhere {
    /// Waits for an answer to this request on the responses of others.
    pub(super) fn expect(&self, request: RequestId) -> AnswerElsewhere {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.waiting();
        waiting.retain(|_, sender| !sender.is_closed());
        waiting.insert(request, sender);
        receiver
    }

    /// Moves an answer to another request to the response of that request. Returns every other message.
    pub(super) fn sort(&self, message: ServerJsonRpcMessage, own: &RequestId) -> Option<ServerJsonRpcMessage> {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let Some(other) = answered.filter(|id| *id != own) else { return Some(message) };
        // Without a waiting request the answer is late, or a duplicate.
        let sender = self.waiting().remove(other)?;
        let _ = sender.send(message);
        None
    }

    /// Counts a response until the guard is dropped.
    pub(super) fn open(&self) -> OpenResponse {
        self.0.open.fetch_add(1, Ordering::Relaxed);
        OpenResponse(self.clone())
    }

    /// Whether another response than one is being read, so that an answer may arrive on it.
    pub(super) fn has_others_open(&self) -> bool {
        self.0.open.load(Ordering::Relaxed) > 1
    }

    /// Leaves the rest of a stream to the transport.
    pub(super) fn leave(&self, rest: Events) {
        let _ = self.0.rests.try_send(rest);
    }

    /// The rests of streams, once.
    pub(super) fn rests(&self) -> Option<mpsc::Receiver<Events>> {
        self.0.unread_rests.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<RequestId, oneshot::Sender<ServerJsonRpcMessage>>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A response that is being read, from its beginning to the end of its rest.
#[derive(Debug)]
pub(super) struct OpenResponse(Elsewhere);

impl Drop for OpenResponse {
    fn drop(&mut self) {
        self.0.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}
