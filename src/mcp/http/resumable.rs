//! Streams that the SDK may resume.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;

/// How many ends of streams are remembered, in case the SDK resumes one.
const MAX_RESUMABLE: usize = 64;

/// Streams that ended after an event with an id, and the requests that they answer. Clones share the same streams.
#[derive(Clone, Debug, Default)]
pub(super) struct Resumable(Arc<Mutex<VecDeque<(String, RequestId)>>>);

impl Resumable {
    /// Records the end of a request's stream after this event.
    pub(super) fn note(&self, last_event: String, request: RequestId) {
        let mut streams = self.streams();
        if streams.len() == MAX_RESUMABLE {
            streams.pop_front();
        }
        streams.push_back((last_event, request));
    }

    /// The request whose stream ended last at this event.
    pub(super) fn request(&self, last_event: &str) -> Option<RequestId> {
        self.streams().iter().rev().find(|(id, _)| id == last_event).map(|(_, request)| request.clone())
    }

    fn streams(&self) -> MutexGuard<'_, VecDeque<(String, RequestId)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
