//! Elicitation over an open connection: how servers of the revisions up to 2025-11-25 ask in the middle of a call.
//!
//! A question with a known answer, from an earlier suspension of the call, is answered at once. For any other question
//! the call is held open as long as its driver waits for an answer, and the answer is sent on the open call. A call
//! that is no longer held is cancelled: the server receives the cancellation of the call first, then that of its
//! question. In this order a server that continues without an answer can see that the call is no longer wanted. The
//! elicitation router finds out which call a question belongs to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use toolgate_core::run::AnsweredElicitation;
use toolgate_core::tool::{ElicitationRequest, ElicitationResponse, ElicitationResponses, Question};

use super::elicitation::{MAX_QUESTIONS, digest};

/// The elicitation state of one call.
#[derive(Debug, Default)]
pub(super) struct ElicitationExchange {
    known: KnownAnswers,
    state: Mutex<State>,
    /// Notified when a question without an answer arrives, and when the server withdraws one.
    changed: Notify,
    /// Cancelled when the server was notified of the call's cancellation.
    is_taken_back: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    open: BTreeMap<String, OpenQuestion>,
    /// The answers that were sent on the open call.
    given: BTreeMap<String, ElicitationResponse>,
    /// Whether a question may belong to another call.
    is_ambiguous: bool,
    /// Whether the call is being cancelled to wait for answers. Its server may then withdraw the questions, too.
    is_suspending: bool,
}

#[derive(Debug)]
struct OpenQuestion {
    question: Question,
    answer: watch::Sender<Option<ElicitationResponse>>,
}

/// Answers by the digests of their questions: the state of a call that starts again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct KnownAnswers {
    answers: BTreeMap<String, ElicitationResponse>,
}

/// The confidence that a call asked a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attribution {
    /// No other call can have asked it.
    Certain,
    /// Another call may have asked it. An answer for this call could reach the other.
    Ambiguous,
}

impl ElicitationExchange {
    /// The exchange of a call, with its answers from an earlier suspension.
    pub(super) fn new(answered: Option<&AnsweredElicitation>) -> Arc<Self> {
        Arc::new(Self { known: answered.map(KnownAnswers::from).unwrap_or_default(), ..Self::default() })
    }

    /// Waits until the server asked a question without a known answer.
    pub(super) async fn stuck(&self) {
        self.until(|open| open > 0).await;
    }

    /// Waits until no question is open: the server withdrew them, or they are answered.
    pub(super) async fn unstuck(&self) {
        self.until(|open| open == 0).await;
    }

    /// Whether a question is open.
    pub(super) fn is_stuck(&self) -> bool {
        !self.state().open.is_empty()
    }

    async fn until(&self, is_so: impl Fn(usize) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if is_so(self.state().open.len()) {
                return;
            }
            changed.await;
        }
    }

    /// The questions without an answer. `None` if there are none, or if an answer might reach another call.
    pub(super) fn to_be_answered(&self) -> Option<ElicitationRequest> {
        let state = self.state();
        let questions: BTreeMap<_, _> =
            state.open.iter().map(|(digest, open)| (digest.clone(), open.question.clone())).collect();
        drop(state);
        (!questions.is_empty() && !self.state().is_ambiguous).then(|| self.suspend(questions))
    }

    /// Sends these answers to the server, which waits for them.
    pub(super) fn answer_in_place(&self, reactions: &ElicitationResponses) {
        let mut state = self.state();
        for (digest, reaction) in reactions {
            if let Some(open) = state.open.remove(digest) {
                open.answer.send_replace(Some(reaction.clone()));
                state.given.insert(digest.clone(), reaction.clone());
            }
        }
    }

    /// Records that the call is about to be cancelled at the server, to be made again with the answers.
    pub(super) fn suspending(&self) {
        self.state().is_suspending = true;
    }

    /// Records that the server was notified of the call's cancellation. Returns the questions that the call waits for;
    /// `None` if it asked nothing.
    pub(super) fn withdrawn_questions(&self) -> Option<ElicitationRequest> {
        let open = std::mem::take(&mut self.state().open);
        let questions: BTreeMap<_, _> = open.into_iter().map(|(digest, open)| (digest, open.question)).collect();
        (!questions.is_empty()).then(|| ElicitationRequest { interrupted: true, ..self.suspend(questions) })
    }

    /// Suspends the call until these questions are answered. It is then made from its beginning, with all known
    /// answers.
    pub(super) fn suspend(&self, questions: BTreeMap<String, Question>) -> ElicitationRequest {
        let mut known = self.known.clone();
        known.answers.extend(self.state().given.clone());
        let state = serde_json::to_string(&known).ok();
        ElicitationRequest { questions, state, task: None, restarts: true, interrupted: false }
    }

    /// The answer to the question with that digest, if it is known.
    pub(super) fn answer(&self, digest: &str) -> Option<ElicitationResponse> {
        self.known.answers.get(digest).cloned()
    }

    /// Waits for the answer to a question. `None` once the call was cancelled at the server. Dropping the future
    /// withdraws the question. A person is not asked endless questions, so questions beyond the limit are not recorded.
    pub(super) async fn ask(
        &self,
        digest: String,
        question: Question,
        attribution: Attribution,
    ) -> Option<ElicitationResponse> {
        let answer = self.note(&digest, question, attribution)?;
        self.changed.notify_waiters();
        let mut asking = AskedQuestion { exchange: self, digest, answer: Some(answer) };
        let answered = tokio::select! {
            biased;
            answered = asking.answered() => answered,
            () = self.is_taken_back.cancelled() => None,
        };
        // It has ended in order: the entry belongs to the suspended call.
        asking.answer = None;
        answered
    }

    /// Records that the cancellation of the call was sent, so that its questions may be cancelled too.
    pub(super) fn is_over(&self) {
        self.is_taken_back.cancel();
    }

    fn note(
        &self,
        digest: &str,
        question: Question,
        attribution: Attribution,
    ) -> Option<watch::Receiver<Option<ElicitationResponse>>> {
        let mut state = self.state();
        let is_room = state.open.len() < MAX_QUESTIONS || state.open.contains_key(digest);
        if !is_room {
            return None;
        }
        state.is_ambiguous |= attribution == Attribution::Ambiguous;
        let open = state.open.entry(digest.to_owned());
        Some(open.or_insert_with(|| OpenQuestion { question, answer: watch::Sender::new(None) }).answer.subscribe())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question that waits for its answer. Dropping it while it waits withdraws the question.
struct AskedQuestion<'a> {
    exchange: &'a ElicitationExchange,
    digest: String,
    answer: Option<watch::Receiver<Option<ElicitationResponse>>>,
}

impl AskedQuestion<'_> {
    async fn answered(&mut self) -> Option<ElicitationResponse> {
        let answered = self.answer.as_mut()?.wait_for(Option::is_some).await.ok()?;
        answered.clone()
    }
}

impl Drop for AskedQuestion<'_> {
    fn drop(&mut self) {
        if self.answer.take().is_none() {
            return;
        }
        let mut state = self.exchange.state();
        if state.is_suspending {
            return;
        }
        // A server may have asked the same question twice.
        if state.open.get(&self.digest).is_some_and(|open| open.answer.receiver_count() == 0) {
            state.open.remove(&self.digest);
            drop(state);
            self.exchange.changed.notify_waiters();
        }
    }
}

impl From<&AnsweredElicitation> for KnownAnswers {
    fn from(answered: &AnsweredElicitation) -> Self {
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
