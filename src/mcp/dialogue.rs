//! Questions over an open connection: how servers of the revisions up to 2025-11-25 ask in the middle of a call.
//!
//! Nobody holds a connection for a person who answers tomorrow. A question whose answer is known, because the call was
//! put aside for it before, is answered at once. For any other the call is taken back: the server is told that it is
//! cancelled, then that its question is, and the call is made afresh when there is an answer. In this order, so that a
//! server that goes on without an answer does so, if it can tell, for a call that nobody wants any more. Whose question it
//! is that a server asks is found out at the [`desk`](super::desk).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::elicitation::{MAX_QUESTIONS, digest};
use crate::core::run::Answered;
use crate::core::tool::{InputNeeded, Question, Reaction};

/// One call, as far as it may be asked about.
#[derive(Debug, Default)]
pub(super) struct Dialogue {
    known: Known,
    open: Mutex<BTreeMap<String, Question>>,
    /// Cancelled when there is a question without an answer.
    is_stuck: CancellationToken,
    /// Cancelled when the server was told that the call is.
    is_taken_back: CancellationToken,
}

/// Answers by the digests of their questions: what the state of a call that starts afresh is made of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Known {
    answers: BTreeMap<String, Reaction>,
}

impl Dialogue {
    /// Of a call with the answers it brings along.
    pub(super) fn of(answered: Option<&Answered>) -> Arc<Self> {
        Arc::new(Self { known: answered.map(Known::from).unwrap_or_default(), ..Self::default() })
    }

    /// Waits until the server asked something that has no answer yet.
    pub(super) async fn stuck(&self) {
        self.is_stuck.cancelled().await;
    }

    /// The server knows that the call is cancelled. What it asked is what the call waits for. `None` if it asked nothing.
    pub(super) fn taken_back(&self) -> Option<InputNeeded> {
        let questions = std::mem::take(&mut *self.open());
        (!questions.is_empty()).then(|| self.put_aside(questions))
    }

    /// The call is made afresh once these are answered, with all answers that there are by then.
    pub(super) fn put_aside(&self, questions: BTreeMap<String, Question>) -> InputNeeded {
        InputNeeded { questions, state: serde_json::to_string(&self.known).ok(), task: None, restarts: true }
    }

    /// The answer to the question with that digest, if the call brought it along.
    pub(super) fn answer(&self, digest: &str) -> Option<Reaction> {
        self.known.answers.get(digest).cloned()
    }

    /// The call waits for an answer to this, until the server is told that it need not wait. Nobody answers endless
    /// questions, so what is beyond the measure is not even noted.
    pub(super) async fn remain_unanswered(&self, digest: String, question: Question) {
        if self.note(digest, question) {
            self.is_stuck.cancel();
            self.is_taken_back.cancelled().await;
        }
    }

    /// The server knows whatever it is to know of the call, and may know the same of its questions.
    pub(super) fn is_over(&self) {
        self.is_taken_back.cancel();
    }

    fn note(&self, digest: String, question: Question) -> bool {
        let mut open = self.open();
        let is_room = open.len() < MAX_QUESTIONS || open.contains_key(&digest);
        if is_room {
            open.insert(digest, question);
        }
        is_room
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<String, Question>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<&Answered> for Known {
    fn from(answered: &Answered) -> Self {
        let earlier = answered.needed.state.as_deref().filter(|_| answered.needed.restarts);
        let mut known: Self = earlier.and_then(|state| serde_json::from_str(state).ok()).unwrap_or_default();
        for (key, question) in &answered.needed.questions {
            if let Some(reaction) = answered.given.reactions.get(key) {
                known.answers.insert(digest(question), reaction.clone());
            }
        }
        known
    }
}
