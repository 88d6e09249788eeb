//! Reply so far: what a model has streamed of a reply that is not complete.

use toolgate_core::lifecycle::{Delta, FragmentPosition};

/// The text and the visible reasoning that a model has streamed of its current reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplySoFar {
    /// The journal position of the attempt's `llm.call.started`.
    pub call: u64,
    /// The text, from its beginning.
    pub text: String,
    /// The visible reasoning, from its beginning.
    pub reasoning: String,
}

impl ReplySoFar {
    pub(super) fn new(call: u64) -> Self {
        Self { call, text: String::new(), reasoning: String::new() }
    }

    pub(super) fn push(&mut self, delta: &Delta) {
        match delta {
            Delta::Text { text } => self.text.push_str(text),
            Delta::Reasoning { text } => self.reasoning.push_str(text),
            Delta::Progress { .. } => {}
        }
    }

    /// The rest for a reader that has that many characters of the text and of the reasoning: at most one fragment of
    /// each, the reasoning first.
    pub fn after(&self, text: u64, reasoning: u64) -> impl Iterator<Item = (Delta, FragmentPosition)> {
        let position = |index| FragmentPosition { call: self.call, index };
        let reasoning =
            rest(&self.reasoning, reasoning).map(|text| (Delta::Reasoning { text: text.into() }, position(reasoning)));
        let text = rest(&self.text, text).map(|rest| (Delta::Text { text: rest.into() }, position(text)));
        reasoning.into_iter().chain(text)
    }
}

/// The text after its first characters, unless there is no more.
fn rest(text: &str, after: u64) -> Option<&str> {
    let after = usize::try_from(after).ok()?;
    let (start, _) = text.char_indices().nth(after)?;
    text.get(start..)
}
