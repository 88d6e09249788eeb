//! What people ask for by name: the tools once more, although they are current; and another connection, although there is one.

use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::time::{Instant, timeout};

use super::{Dial, Link as _, Question, State, Supervisor, Wish};

impl<D: Dial> Supervisor<D> {
    /// Asks for the tools, whatever is promised about them. The error says why they are not known anew.
    pub(in crate::mcp) async fn refresh(self: &Arc<Self>, meta: Map<String, Value>) -> Result<(), String> {
        self.refresh_since(Instant::now(), meta).await
    }

    /// Ends the connection with whatever is under way on it, makes another one, and asks for the tools. Waits for no time that
    /// was set after a failure. A start that is under way already is the one that is wanted.
    pub(in crate::mcp) async fn restart(self: &Arc<Self>, meta: Map<String, Value>) -> Result<(), String> {
        let begun = Instant::now();
        self.need_for(&meta);
        let mut standings = self.standing.subscribe();
        let awaited = {
            let standing = standings.borrow();
            standing.starts + u64::from(!matches!(standing.state, State::Starting))
        };
        if standings.borrow().starts < awaited {
            self.restarts.send_modify(|times| *times += 1);
            self.start();
        }
        let has_ended = standings.wait_for(|standing| {
            let is_over = standing.starts >= awaited && !matches!(standing.state, State::Starting);
            is_over || self.closing.is_cancelled()
        });
        let longest = 2 * self.budget;
        let is_there = match timeout(longest, has_ended).await {
            Ok(ended) => ended.is_ok_and(|standing| standing.link().is_some()),
            Err(_) => return Err(self.still_waiting(longest)),
        };
        if !is_there {
            return Err(if self.closing.is_cancelled() {
                self.closed()
            } else {
                self.sentence(self.standing().reason())
            });
        }
        self.refresh_since(begun, meta).await
    }

    /// The tools, unless somebody asked for them since.
    pub(super) async fn refresh_since(
        self: &Arc<Self>,
        since: Instant,
        meta: Map<String, Value>,
    ) -> Result<(), String> {
        self.need_for(&meta);
        let longest = 2 * self.budget;
        let asked = timeout(longest, async {
            // A connection of which only the question shows that it is lost is replaced at once.
            for _ in 0..2 {
                let link = self.link(Instant::now() + self.budget).await?;
                let question = Question { not_before: since, budget: self.budget, wish: Wish::Anyway };
                let asking = self.tasks.spawn(self.clone().ask(link.clone(), meta.clone(), question));
                let panicked = "could not be asked for its tools: the code that does it panicked";
                asking.await.map_err(|_| self.sentence(panicked))?;
                if !link.signals().lost.is_cancelled() {
                    return Ok(());
                }
            }
            let lost = || self.sentence("lost its connection when it was asked for its tools");
            Err(self.shelf.complaint().unwrap_or_else(lost))
        });
        asked.await.unwrap_or_else(|_| Err(self.still_waiting(longest)))?;
        self.shelf.complaint().map_or(Ok(()), Err)
    }
}
