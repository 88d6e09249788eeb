//! Whose question it is that a server asks in the middle of a call.
//!
//! Over HTTP a question comes on the stream of its call. Where all calls share one stream nothing tells, and a wrong
//! guess would hand a call the answer that a person gave for another, or make a call twice that had nothing to ask. There:
//!
//! - A call that brings answers along has the stream to itself, and only then are its answers used.
//! - Any of the calls that were under way when it was asked can have asked a question. Those that get an answer have not:
//!   a server that asks waits. When one is left, it was that one.
//! - A call asks one thing at a time: one that certainly asked another open question has not asked this one.
//! - When as many questions are open as there are calls that can have asked them, each call waits for one. All of them are
//!   suspended, with all of these questions: an answer in place could reach the wrong call.
//! - When one of these calls ends without an answer, its server may go on with it and wait. Nothing is concluded any
//!   more: the question is cancelled.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use tokio::sync::{Notify, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

use super::dialogue::{Attribution, Dialogue};
use super::elicitation::digest;
use crate::core::run::Answered;
use crate::core::tool::{Question, Reaction};

/// The calls of a connection that may be asked about.
#[derive(Clone, Debug, Default)]
pub(super) struct Desk {
    state: Arc<Mutex<Calls>>,
    changed: Arc<Notify>,
    turns: Arc<RwLock<()>>,
}

#[derive(Debug, Default)]
struct Calls {
    under_way: HashMap<RequestId, Arc<Dialogue>>,
    /// The open questions of which the transport did not tell whose they are, with the calls that can have asked them.
    open: HashMap<u64, HashSet<RequestId>>,
    asked: u64,
}

/// Whether a transport tells whose question it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// As a rule it does.
    Told,
    /// All calls share one stream.
    Untold,
}

/// The right to be under way.
#[derive(Debug)]
pub(super) enum Turn {
    /// With others.
    Beside { _others: OwnedRwLockReadGuard<()> },
    /// As the only one.
    Alone { _nobody: OwnedRwLockWriteGuard<()> },
}

/// A call that is under way at the desk.
#[derive(Debug)]
pub(super) struct Present {
    desk: Desk,
    id: RequestId,
    dialogue: Arc<Dialogue>,
    leave: Leave,
}

/// How a call leaves the desk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leave {
    /// Nobody waits for it, and what its server makes of it is not known.
    GivenUp,
    /// It has its answer, or is put aside with its question.
    Settled,
}

impl Desk {
    /// Waits for the turn of a call, with the answers it brings along. To be had before anything of it is sent.
    pub(super) async fn turn(&self, answered: Option<&Answered>, origin: Origin) -> Turn {
        let brings_answers = answered.is_some_and(|answered| answered.needed.restarts);
        // A server that was heard to ask at large over HTTP will do so again.
        let is_untold = origin == Origin::Untold || self.calls().asked > 0;
        match brings_answers && is_untold {
            true => Turn::Alone { _nobody: self.turns.clone().write_owned().await },
            false => Turn::Beside { _others: self.turns.clone().read_owned().await },
        }
    }

    /// The call begins.
    pub(super) fn enter(&self, id: RequestId, dialogue: Arc<Dialogue>) -> Present {
        self.calls().under_way.insert(id.clone(), dialogue.clone());
        Present { desk: self.clone(), id, dialogue, leave: Leave::GivenUp }
    }

    /// A server asks; `call` is the request it asks about, where the transport tells. Comes back with the answer, or
    /// with none once the call was taken back. A question that belongs to no call gets none either.
    pub(super) async fn ask(&self, call: Option<&RequestId>, question: Question) -> Reaction {
        // It counts until it is answered: that it turned out to be anybody's does not make the others less so.
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

    /// Whose that open question is, once it can be known.
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

    /// Those of the calls that did not certainly ask another question. All of them if that leaves none: a call may ask two
    /// things at once after all.
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
    /// The call got its answer, or is put aside: it waits at the server no more.
    pub(super) fn settle(&mut self) {
        self.leave = Leave::Settled;
    }
}

/// Nobody waits for answers any more.
impl Drop for Present {
    fn drop(&mut self) {
        self.dialogue.is_over();
        self.desk.calls().leave(&self.id, self.leave);
        self.desk.changed.notify_waiters();
    }
}

/// A question that is open at the desk.
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
