//! Questions over an open connection: how servers of the revisions up to 2025-11-25 ask in the middle of a call.
//!
//! Nobody holds a connection for a person who answers tomorrow. A question whose answer is known, because the call was
//! put aside for it before, is answered at once. For any other the call is taken back: the server is told that it is
//! cancelled, then that its question is, and the call is made afresh when there is an answer. In this order, so that a
//! server that goes on without an answer does so, if it can tell, for a call that nobody wants any more.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::elicitation::digest;
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

    /// The server knows that the call is cancelled; it may know the same of its questions. What it asked is what the
    /// call waits for. `None` if it asked nothing.
    pub(super) fn taken_back(&self) -> Option<InputNeeded> {
        self.is_taken_back.cancel();
        let questions = std::mem::take(&mut *self.open());
        (!questions.is_empty()).then(|| self.put_aside(questions))
    }

    /// The call is made afresh once these are answered, with all answers that there are by then.
    pub(super) fn put_aside(&self, questions: BTreeMap<String, Question>) -> InputNeeded {
        InputNeeded { questions, state: serde_json::to_string(&self.known).ok(), task: None, restarts: true }
    }

    fn answer(&self, digest: &str) -> Option<Reaction> {
        self.known.answers.get(digest).cloned()
    }

    async fn remain_unanswered(&self, digest: String, question: Question) {
        self.open().insert(digest, question);
        self.is_stuck.cancel();
        self.is_taken_back.cancelled().await;
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

/// The calls of a connection that may be asked about.
#[derive(Clone, Debug, Default)]
pub(super) struct Desk {
    state: Arc<Mutex<Calls>>,
    changed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Calls {
    under_way: HashMap<RequestId, Arc<Dialogue>>,
    /// Open questions of which it is not clear whose they are.
    unclear: usize,
}

/// A call that is under way at the desk.
#[derive(Debug)]
pub(super) struct Present {
    desk: Desk,
    id: RequestId,
    dialogue: Arc<Dialogue>,
}

impl Desk {
    /// The call begins.
    pub(super) fn enter(&self, id: RequestId, dialogue: Arc<Dialogue>) -> Present {
        self.calls().under_way.insert(id.clone(), dialogue.clone());
        Present { desk: self.clone(), id, dialogue }
    }

    /// A server asks; `call` is the request it asks about, where the transport tells. Comes back with the answer, or
    /// with none once the call was taken back. A question that belongs to no call gets none either.
    pub(super) async fn ask(&self, call: Option<&RequestId>, question: Question) -> Reaction {
        // One question that turned out to be anybody's does not make the others less so while it is open.
        let (askers, _unclear) = match call {
            Some(call) => (self.calls().under_way.get(call).cloned().into_iter().collect(), None),
            None => {
                let unclear = Unclear::begins(self);
                (self.askers().await, Some(unclear))
            }
        };
        let digest = digest(&question);
        if let Some(answer) = askers.iter().find_map(|asker| asker.answer(&digest)) {
            return answer;
        }
        let unanswered = askers.iter().map(|asker| asker.remain_unanswered(digest.clone(), question.clone()));
        futures::future::join_all(unanswered).await;
        Reaction::cancel()
    }

    /// Whose question it may be when the transport does not tell. While other calls are under way that may end by
    /// themselves, it is waited for that, since a wrong guess would make a call twice that had nothing to ask.
    async fn askers(&self) -> Vec<Arc<Dialogue>> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let calls = self.calls();
                if calls.under_way.len() <= calls.unclear {
                    return calls.under_way.values().cloned().collect();
                }
            }
            changed.await;
        }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nobody waits for answers any more.
impl Drop for Present {
    fn drop(&mut self) {
        self.dialogue.is_taken_back.cancel();
        self.desk.calls().under_way.remove(&self.id);
        self.desk.changed.notify_waiters();
    }
}

struct Unclear<'a>(&'a Desk);

impl<'a> Unclear<'a> {
    fn begins(desk: &'a Desk) -> Self {
        desk.calls().unclear += 1;
        desk.changed.notify_waiters();
        Self(desk)
    }
}

impl Drop for Unclear<'_> {
    fn drop(&mut self) {
        self.0.calls().unclear -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Map, json};

    use super::*;
    use crate::core::run::InputGiven;

    fn question(message: &str) -> Question {
        Question::Form { message: message.into(), schema: json!({"type": "object"}) }
    }

    fn answered(needed: InputNeeded, answer: &str) -> Answered {
        let reaction = Reaction::accept(Map::from_iter([("is".to_owned(), json!(answer))]));
        let reactions = needed.questions.keys().map(|key| (key.clone(), reaction.clone())).collect();
        Answered { needed: needed.into(), given: InputGiven { reactions, by: "test".into() }.into() }
    }

    async fn is_waiting(future: impl Future<Output = Reaction> + Unpin) -> bool {
        tokio::time::timeout(Duration::from_millis(20), future).await.is_err()
    }

    #[tokio::test]
    async fn answers_of_all_rounds_are_known_in_whatever_order_they_are_asked_for() {
        let (desk, id) = (Desk::default(), RequestId::Number(1));
        let mut brought: Option<Answered> = None;
        for round in ["first", "second"] {
            let dialogue = Dialogue::of(brought.as_ref());
            let _present = desk.enter(id.clone(), dialogue.clone());
            let take_back = async {
                dialogue.stuck().await;
                dialogue.taken_back()
            };
            let (reaction, needed) = tokio::join!(desk.ask(Some(&id), question(round)), take_back);
            assert_eq!(reaction, Reaction::cancel());
            let needed = needed.expect("a question");
            assert!(needed.restarts && needed.questions.values().eq([&question(round)]), "{needed:?}");
            brought = Some(answered(needed, round));
        }
        let dialogue = Dialogue::of(brought.as_ref());
        let _present = desk.enter(id.clone(), dialogue.clone());
        for round in ["second", "first"] {
            let content = desk.ask(Some(&id), question(round)).await.content.expect("an answer");
            assert_eq!(content["is"], round);
        }
        assert_eq!(dialogue.taken_back(), None);
    }

    #[tokio::test]
    async fn a_question_waits_until_it_is_clear_whose_it_is() {
        let desk = Desk::default();
        let (one, other) = (Dialogue::of(None), Dialogue::of(None));
        let _one = desk.enter(RequestId::Number(1), one.clone());
        let present = desk.enter(RequestId::Number(2), other.clone());
        let mut asking = Box::pin(desk.ask(None, question("whose?")));
        assert!(is_waiting(&mut asking).await);
        assert!(!one.is_stuck.is_cancelled() && !other.is_stuck.is_cancelled());
        drop(present);
        assert!(is_waiting(&mut asking).await);
        assert!(one.is_stuck.is_cancelled() && !other.is_stuck.is_cancelled());
        assert!(one.taken_back().is_some());
        assert_eq!(asking.await, Reaction::cancel());
    }

    #[tokio::test]
    async fn calls_that_all_wait_for_answers_are_all_taken_back() {
        let desk = Desk::default();
        let dialogues = [1, 2].map(|id| (RequestId::Number(id), Dialogue::of(None)));
        let _present: Vec<_> = dialogues.iter().map(|(id, one)| desk.enter(id.clone(), one.clone())).collect();
        let mut asking =
            Box::pin(async { tokio::join!(desk.ask(None, question("a")), desk.ask(None, question("b"))).0 });
        assert!(is_waiting(&mut asking).await);
        for (_, dialogue) in &dialogues {
            assert_eq!(dialogue.taken_back().expect("questions").questions.len(), 2);
        }
        asking.await;
    }

    #[tokio::test]
    async fn a_question_outside_of_any_call_is_cancelled() {
        let desk = Desk::default();
        assert_eq!(desk.ask(None, question("who?")).await, Reaction::cancel());
        assert_eq!(desk.ask(Some(&RequestId::Number(7)), question("who?")).await, Reaction::cancel());
    }
}
