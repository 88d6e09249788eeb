//! Explicit refresh and restart: list the tools although they are current, and reconnect although there is a
//! connection.

use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::time::{Instant, timeout};

use super::{Dial, Link as _, ListRetry, Question, State, Supervisor};

impl<D: Dial> Supervisor<D> {
    /// Requests the tool list, even if it is current. The error states why that failed.
    pub(crate) async fn refresh(self: &Arc<Self>, meta: Map<String, Value>) -> Result<(), String> {
        self.refresh_since(Instant::now(), meta).await
    }

    /// Ends the connection and the calls in flight on it, opens another one, and lists the tools. Ignores a retry
    /// delay that a failure set. A start that is already under way counts as the restart.
    pub(crate) async fn restart(self: &Arc<Self>, meta: Map<String, Value>) -> Result<(), String> {
        let begun = Instant::now();
        self.need_for(&meta);
        let mut states = self.connection_state.subscribe();
        let awaited = self.awaited();
        if states.borrow().starts < awaited {
            self.restarts.send_modify(|times| *times += 1);
            self.start();
        }
        let has_ended = states.wait_for(|connection_state| {
            let is_over = connection_state.starts >= awaited && !matches!(connection_state.state, State::Starting);
            is_over || self.closing.is_cancelled()
        });
        let longest = 2 * self.budget;
        let is_there = match timeout(longest, has_ended).await {
            Ok(ended) => ended.is_ok_and(|connection_state| connection_state.link().is_some()),
            Err(_) => return Err(self.still_waiting(longest)),
        };
        if !is_there {
            return Err(if self.closing.is_cancelled() {
                self.closed()
            } else {
                self.sentence(self.connection_state().reason())
            });
        }
        self.refresh_since(begun, meta).await
    }

    /// Requests the tools, unless another request has done so since then.
    pub(super) async fn refresh_since(
        self: &Arc<Self>,
        since: Instant,
        meta: Map<String, Value>,
    ) -> Result<(), String> {
        self.need_for(&meta);
        let longest = 2 * self.budget;
        let refreshed = timeout(longest, async {
            // A connection that turns out to be lost only during the request is replaced at once.
            for _ in 0..2 {
                let link = self.link(Instant::now() + self.budget).await?;
                let question = Question { not_before: since, budget: self.budget, retry: ListRetry::Anyway };
                let asking = self.tasks.spawn(self.clone().ask(link.clone(), meta.clone(), question));
                let panicked = "could not be asked for its tools: the code that does it panicked";
                asking.await.map_err(|_| self.sentence(panicked))?;
                if !link.signals().lost.is_cancelled() {
                    return Ok(());
                }
            }
            let lost = || self.sentence("lost its connection when it was asked for its tools");
            Err(self.cache.complaint().unwrap_or_else(lost))
        });
        refreshed.await.unwrap_or_else(|_| Err(self.still_waiting(longest)))?;
        self.cache.complaint().map_or(Ok(()), Err)
    }
}
