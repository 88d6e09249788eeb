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
//! - When one of these calls ends without a result, its server may continue it and wait. No further conclusion is
//!   possible: the question is cancelled.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use tokio::sync::{Notify, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

use super::dialogue::{Attribution, Dialogue};
use super::elicitation::digest;
use crate::core::run::Answered;
use crate::core::tool::{Question, Reaction};

/// The router of one connection. Clones share the same calls.
#[derive(Clone, Debug, Default)]
pub(super) struct Desk {
    state: Arc<Mutex<Calls>>,
    changed: Arc<Notify>,
    turns: Arc<RwLock<()>>,
}

#[derive(Debug, Default)]
struct Calls {
    under_way: HashMap<RequestId, Arc<Dialogue>>,
    /// The open questions without an identified call, with their candidates.
    open: HashMap<u64, HashSet<RequestId>>,
    asked: u64,
}

/// Whether the transport identifies the call of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// As a rule it does.
    Told,
    /// It does not: all calls share one stream.
    Untold,
}

/// The permission to be in flight.
#[derive(Debug)]
pub(super) enum Turn {
    /// Shared with other calls.
    Beside { _others: OwnedRwLockReadGuard<()> },
    /// Exclusive.
    Alone { _nobody: OwnedRwLockWriteGuard<()> },
}

/// A call in flight.
#[derive(Debug)]
pub(super) struct Present {
    desk: Desk,
    id: RequestId,
    dialogue: Arc<Dialogue>,
    leave: Leave,
}

/// How a call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leave {
    /// The caller has stopped waiting, and the state of the call at the server is unknown.
    GivenUp,
    /// It has its result, or is suspended with its question.
    Settled,
}

impl Desk {
    /// Waits for the permission of a call to run, with its answers from an earlier suspension. Required before
    /// anything of the call is sent.
    pub(super) async fn turn(&self, answered: Option<&Answered>, origin: Origin) -> Turn {
        let brings_answers = answered.is_some_and(|answered| answered.needed.restarts);
        // A server that asked over HTTP without naming a call will do so again.
        let is_untold = origin == Origin::Untold || self.calls().asked > 0;
        match brings_answers && is_untold {
            true => Turn::Alone { _nobody: self.turns.clone().write_owned().await },
            false => Turn::Beside { _others: self.turns.clone().read_owned().await },
        }
    }

    pub(super) fn enter(&self, id: RequestId, dialogue: Arc<Dialogue>) -> Present {
        self.calls().under_way.insert(id.clone(), dialogue.clone());
        Present { desk: self.clone(), id, dialogue, leave: Leave::GivenUp }
    }

    /// Handles a question; `call` is the request that it belongs to, where the transport identifies it. Returns the
    /// answer, or a cancellation if the call was cancelled or no call owns the question.
    pub(super) async fn ask(&self, call: Option<&RequestId>, question: Question) -> Reaction {
        // The question stays a candidate until it is answered: an unclear owner does not make the other questions
        // clearer.
        let (askers, _open) = match call {
            Some(call) => (self.calls().under_way.get(call).cloned().into_iter().collect(), None),
            None => {
                let open = Open::begins(self);
                (self.askers(open.number).await, Some(open))
            }
        };
        let digest = digest(&question);
        if let [asker] = askers.as_slice()
            && let Some(answer) = asker.answer(&digest)
        {
            return answer;
        }
        if let [asker] = askers.as_slice() {
            let answer = asker.ask(digest, question, Attribution::Certain).await;
            return answer.unwrap_or_else(Reaction::cancel);
        }
        let unanswered = askers.iter().map(|asker| asker.ask(digest.clone(), question.clone(), Attribution::Ambiguous));
        futures::future::join_all(unanswered).await;
        Reaction::cancel()
    }

    /// The calls that a question may belong to, once that can be decided.
    async fn askers(&self, number: u64) -> Vec<Arc<Dialogue>> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(askers) = self.calls().askers(number) {
                return askers;
            }
            changed.await;
        }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Calls {
    fn askers(&self, number: u64) -> Option<Vec<Arc<Dialogue>>> {
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

    fn leave(&mut self, id: &RequestId, how: Leave) {
        self.under_way.remove(id);
        for candidates in self.open.values_mut() {
            match (candidates.remove(id), how) {
                (true, Leave::GivenUp) => candidates.clear(),
                (true, Leave::Settled) | (false, Leave::GivenUp | Leave::Settled) => {}
            }
        }
    }
}

impl Present {
    /// Records that the call got its result or is suspended: it no longer waits at the server.
    pub(super) fn settle(&mut self) {
        self.leave = Leave::Settled;
    }
}

/// The caller has stopped waiting for answers.
impl Drop for Present {
    fn drop(&mut self) {
        self.dialogue.is_over();
        self.desk.calls().leave(&self.id, self.leave);
        self.desk.changed.notify_waiters();
    }
}

/// An open question.
struct Open<'a> {
    desk: &'a Desk,
    number: u64,
}

impl<'a> Open<'a> {
    fn begins(desk: &'a Desk) -> Self {
        let number = {
            let mut calls = desk.calls();
            calls.asked += 1;
            let (number, candidates) = (calls.asked, calls.under_way.keys().cloned().collect());
            calls.open.insert(number, candidates);
            number
        };
        desk.changed.notify_waiters();
        Self { desk, number }
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.desk.calls().open.remove(&self.number);
    }
}

#[cfg(test)]
mod tests;
