//! Elicitation router: assigns a question that a server asks in the middle of a call to its call.
//!
//! Over HTTP a question arrives on the stream of its call. Where all calls share one stream the transport does not
//! identify the call, and a wrong guess would answer one call with the answer that a person gave for another, or
//! repeat a call that asked nothing. On a shared stream:
//!
//! - A call with answers from an earlier suspension has the stream to itself, and only then are its answers used.
//! - Every call that was in flight when a question arrived is a candidate. A call that gets its result is not: a
//!   server that asks waits. When one candidate is left, the question belongs to it.
//! - A call asks one question at a time: a call that certainly asked another open question did not ask this one.
//! - When as many questions are open as there are candidates, each call waits for one. All of them are suspended, with
//!   all of these questions: an answer on the open call could reach the wrong call.
//! - A question that its server withdraws (`notifications/cancelled`) is no longer open.
//! - When one of these calls ends without a result, its server may continue it and wait. No further conclusion is
//!   possible: the question is cancelled.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use tokio::sync::{Notify, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};
use toolgate_core::run::AnsweredElicitation;
use toolgate_core::tool::{ElicitationResponse, Question};

use super::elicitation::digest;
use super::elicitation_exchange::{Attribution, ElicitationExchange};

/// The router of one connection. Clones share the same calls.
#[derive(Clone, Debug, Default)]
pub(super) struct ElicitationRouter {
    state: Arc<Mutex<CallTable>>,
    changed: Arc<Notify>,
    turns: Arc<RwLock<()>>,
}

#[derive(Debug, Default)]
struct CallTable {
    under_way: HashMap<RequestId, Arc<ElicitationExchange>>,
    /// The open questions without an identified call, with their candidates.
    open: HashMap<u64, HashSet<RequestId>>,
    questions: u64,
}

/// Whether the transport identifies the call of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// As a rule it does.
    Identified,
    /// It does not: all calls share one stream.
    Unidentified,
}

/// The permission to be in flight.
#[derive(Debug)]
pub(super) enum NextElicitation {
    /// Shared with other calls.
    Beside { _others: OwnedRwLockReadGuard<()> },
    /// Exclusive.
    Alone { _exclusive: OwnedRwLockWriteGuard<()> },
}

#[derive(Debug)]
pub(super) struct InFlightCall {
    router: ElicitationRouter,
    id: RequestId,
    elicitations: Arc<ElicitationExchange>,
    leave: CallEnd,
}

/// How a call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallEnd {
    /// The caller has stopped waiting, and the state of the call at the server is unknown.
    GivenUp,
    /// It has its result, or is suspended with its question.
    Settled,
}

impl ElicitationRouter {
    /// Waits for the permission of a call to run, with its answers from an earlier suspension. Required before
    /// anything of the call is sent.
    pub(super) async fn turn(&self, answered: Option<&AnsweredElicitation>, origin: Origin) -> NextElicitation {
        let brings_answers = answered.is_some_and(|answered| answered.needed.restarts);
        // A server that asked over HTTP without naming a call will do so again.
        let is_unidentified = origin == Origin::Unidentified || self.calls().questions > 0;
        match brings_answers && is_unidentified {
            true => NextElicitation::Alone { _exclusive: self.turns.clone().write_owned().await },
            false => NextElicitation::Beside { _others: self.turns.clone().read_owned().await },
        }
    }

    pub(super) fn enter(&self, id: RequestId, elicitations: Arc<ElicitationExchange>) -> InFlightCall {
        self.calls().under_way.insert(id.clone(), elicitations.clone());
        InFlightCall { router: self.clone(), id, elicitations, leave: CallEnd::GivenUp }
    }

    /// Handles a question; `call` is the request that it belongs to, where the transport identifies it. Returns the
    /// answer, or a cancellation if the call was cancelled or no call owns the question.
    pub(super) async fn ask(&self, call: Option<&RequestId>, question: Question) -> ElicitationResponse {
        // The question stays a candidate until it is answered: an unclear owner does not make the other questions
        // clearer.
        let (candidates, _open) = match call {
            Some(call) => (self.calls().under_way.get(call).cloned().into_iter().collect(), None),
            None => {
                let open = OpenElicitation::begins(self);
                (self.candidates(open.number).await, Some(open))
            }
        };
        let digest = digest(&question);
        if let [asker] = candidates.as_slice()
            && let Some(answer) = asker.answer(&digest)
        {
            return answer;
        }
        if let [asker] = candidates.as_slice() {
            let answer = asker.ask(digest, question, Attribution::Certain).await;
            // "The person turned away without a choice"; the call is repeated when the answers arrive (decision 0009).
            return answer.unwrap_or_else(ElicitationResponse::cancel);
        }
        let unanswered =
            candidates.iter().map(|asker| asker.ask(digest.clone(), question.clone(), Attribution::Ambiguous));
        futures::future::join_all(unanswered).await;
        ElicitationResponse::cancel()
    }

    /// The calls that a question may belong to, once that can be decided.
    async fn candidates(&self, number: u64) -> Vec<Arc<ElicitationExchange>> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(candidates) = self.calls().candidates(number) {
                return candidates;
            }
            changed.await;
        }
    }

    fn calls(&self) -> MutexGuard<'_, CallTable> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallTable {
    fn candidates(&self, number: u64) -> Option<Vec<Arc<ElicitationExchange>>> {
        let Some(candidates) = self.open.get(&number) else { return Some(Vec::new()) };
        let candidates = &self.without_certain_askers(number, candidates);
        let is_theirs = |(other, others): &(&u64, &HashSet<RequestId>)| {
            let others = self.without_certain_askers(**other, others);
            !others.is_empty() && others.is_subset(candidates)
        };
        let questions = self.open.iter().filter(is_theirs).count();
        let dialogues = || candidates.iter().filter_map(|id| self.under_way.get(id).cloned()).collect();
        (candidates.len() <= questions).then(dialogues)
    }

    /// The candidates that did not certainly ask another question. All of them if that leaves none: a call may ask two
    /// questions at once after all.
    fn without_certain_askers(&self, number: u64, candidates: &HashSet<RequestId>) -> HashSet<RequestId> {
        let others = self.open.iter().filter(|(other, _)| **other != number);
        let certain: HashSet<&RequestId> = others
            .filter_map(|(_, candidates)| match candidates.len() {
                1 => candidates.iter().next(),
                _ => None,
            })
            .collect();
        let left: HashSet<RequestId> = candidates.iter().filter(|id| !certain.contains(id)).cloned().collect();
        if left.is_empty() { candidates.clone() } else { left }
    }

    fn leave(&mut self, id: &RequestId, how: CallEnd) {
        self.under_way.remove(id);
        for candidates in self.open.values_mut() {
            match (candidates.remove(id), how) {
                (true, CallEnd::GivenUp) => candidates.clear(),
                (true, CallEnd::Settled) | (false, CallEnd::GivenUp | CallEnd::Settled) => {}
            }
        }
    }
}

impl InFlightCall {
    /// Records that the call got its result or is suspended: it no longer waits at the server.
    pub(super) fn settle(&mut self) {
        self.leave = CallEnd::Settled;
    }
}

/// The caller has stopped waiting for answers.
impl Drop for InFlightCall {
    fn drop(&mut self) {
        self.elicitations.is_over();
        self.router.calls().leave(&self.id, self.leave);
        self.router.changed.notify_waiters();
    }
}

/// An open question.
struct OpenElicitation<'a> {
    router: &'a ElicitationRouter,
    number: u64,
}

impl<'a> OpenElicitation<'a> {
    fn begins(router: &'a ElicitationRouter) -> Self {
        let number = {
            let mut calls = router.calls();
            calls.questions += 1;
            let (number, candidates) = (calls.questions, calls.under_way.keys().cloned().collect());
            calls.open.insert(number, candidates);
            number
        };
        router.changed.notify_waiters();
        Self { router, number }
    }
}

impl Drop for OpenElicitation<'_> {
    fn drop(&mut self) {
        self.router.calls().open.remove(&self.number);
        self.router.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
