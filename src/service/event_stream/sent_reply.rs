//! What a client has received of the reply that a model is streaming.

use std::cmp::Ordering;

use toolgate_core::lifecycle::{Delta, FragmentPosition};
use toolgate_runner::ReplySoFar;

/// The next positions of the fragments of one attempt.
#[derive(Debug, Default)]
pub(super) struct SentReply {
    /// The position of the attempt's `llm.call.started`.
    call: u64,
    text: u64,
    reasoning: u64,
}

impl SentReply {
    /// Compares a fragment with the client's position: a smaller one was sent, a greater one is not the next.
    pub(super) fn compare(&self, delta: &Delta, position: FragmentPosition) -> Ordering {
        let (text, reasoning) = self.next_positions(position.call);
        let sent = match delta {
            Delta::Text { .. } => text,
            Delta::Reasoning { .. } => reasoning,
            Delta::Progress { .. } => return Ordering::Less,
        };
        position.index.cmp(&sent)
    }

    /// Records that a fragment is sent.
    pub(super) fn add(&mut self, delta: &Delta, position: FragmentPosition) {
        if self.call != position.call {
            *self = Self { call: position.call, ..Self::default() };
        }
        let next = position.index + delta.chars();
        match delta {
            Delta::Text { .. } => self.text = next,
            Delta::Reasoning { .. } => self.reasoning = next,
            Delta::Progress { .. } => {}
        }
    }

    /// The fragments of a reply that the client does not have.
    pub(super) fn missing(&self, reply: &ReplySoFar) -> Vec<(Delta, FragmentPosition)> {
        let (text, reasoning) = self.next_positions(reply.call);
        reply.after(text, reasoning).collect()
    }

    /// The next positions in the text and in the reasoning of an attempt.
    fn next_positions(&self, call: u64) -> (u64, u64) {
        if self.call == call { (self.text, self.reasoning) } else { (0, 0) }
    }
}
