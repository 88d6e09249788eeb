//! Keeper task of a server: the only task that changes the server's state.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::announcement_debounce::AnnouncementDebounce;
use super::backoff::{STABLE, delay_after, jitter};
use super::connection_state::State;
use super::link::{Dial, Link, NotOpened};
use super::{IN_USE, ListRetry, Question, Supervisor, lock};
use crate::watch::ExchangeKind;

impl<D: Dial> Supervisor<D> {
    /// Runs until the server is closed.
    pub(super) async fn keep(self: Arc<Self>) {
        let mut restarts = self.restarts.subscribe();
        while !self.closing.is_cancelled() {
            // The start that begins now satisfies every restart requested so far.
            restarts.mark_unchanged();
            let turn = tokio::select! {
                biased;
                () = self.closing.cancelled() => break,
                turn = self.starts.turn() => turn,
            };
            let begun = Instant::now();
            self.connection_state.send_modify(|connection_state| {
                connection_state.starts += 1;
                connection_state.enter(State::Starting);
            });
            let opened = tokio::select! {
                biased;
                () = self.closing.cancelled() => break,
                opened = turn.start(self.open()) => opened,
            };
            let entered = match opened {
                Ok(link) => self.serve_connection(Arc::new(link), begun, &mut restarts).await,
                Err(not_opened) => {
                    self.log(&not_opened.reason);
                    self.fail(&not_opened.reason, not_opened.may_pass, UnusedServer::Failed)
                }
            };
            let Some(needed) = entered else { break };
            tokio::select! {
                biased;
                () = self.closing.cancelled() => break,
                _ = restarts.changed() => {}
                () = self.rest(needed) => {}
            }
        }
        self.connection_state.send_modify(|connection_state| connection_state.enter(State::Closed));
    }

    async fn open(&self) -> Result<D::Link, NotOpened> {
        let meta = lock(&self.demand.meta).clone();
        let opened = AssertUnwindSafe(self.dial.open(meta)).catch_unwind().await;
        let panicked = "could not be started: the code that does it panicked; this is a bug in toolgate";
        opened.unwrap_or_else(|_| Err(NotOpened { reason: panicked.into(), may_pass: false }))
    }

    /// Holds a connection until it is lost. Returns how often the server was needed until then, or `None` if it is
    /// closed.
    async fn serve_connection(
        self: &Arc<Self>,
        link: Arc<D::Link>,
        begun: Instant,
        restarts: &mut watch::Receiver<u64>,
    ) -> Option<u64> {
        let ready = Instant::now();
        self.connection_state.send_modify(|connection_state| {
            connection_state.opened = connection_state.starts;
            connection_state.enter(State::Ready(link.clone()));
        });
        let end = self.follow(&link, begun, restarts).await;
        self.watched.report(&self.server, ExchangeKind::Session, ready.elapsed(), end == ConnectionEnd::Lost);
        match end {
            ConnectionEnd::Lost => {}
            ConnectionEnd::Closing => {
                link.close().await;
                return None;
            }
            ConnectionEnd::Restarting => {
                // Requests that arrive from now on wait for the next connection.
                self.connection_state.send_modify(|connection_state| connection_state.enter(State::Idle));
                link.close().await;
                restarts.mark_changed();
                return Some(lock(&self.demand.seen).0);
            }
        }
        let reason = format!("lost its connection: {}", link.exit_report().await);
        tracing::warn!(server = %self.server, reason, "MCP server connection lost");
        if ready.elapsed() >= STABLE {
            self.connection_state.send_modify(|connection_state| connection_state.failures = 0);
        }
        let entered = self.fail(&reason, true, UnusedServer::Idle);
        // Two processes of one server could compete for a port or a lock.
        link.retire(self.closing.clone()).await;
        entered
    }

    /// Handles the signals of the connection until it ends.
    async fn follow(
        self: &Arc<Self>,
        link: &Arc<D::Link>,
        begun: Instant,
        restarts: &mut watch::Receiver<u64>,
    ) -> ConnectionEnd {
        let mut asking = JoinSet::new();
        let meta = std::mem::take(&mut *lock(&self.demand.meta));
        let left = self.budget.saturating_sub(begun.elapsed());
        let first = Question { not_before: begun, budget: left, retry: ListRetry::Anyway };
        asking.spawn(self.clone().ask(link.clone(), meta, first));
        let mut debounce = AnnouncementDebounce::default();
        loop {
            let retry = self.cache.retry().filter(|_| self.is_in_use());
            let due = debounce.due().into_iter().chain(retry).min().filter(|_| asking.is_empty());
            tokio::select! {
                biased;
                () = self.closing.cancelled() => return ConnectionEnd::Closing,
                () = link.lost() => return ConnectionEnd::Lost,
                _ = restarts.changed() => return ConnectionEnd::Restarting,
                () = link.signals().tools_changed.notified() => debounce.announced(Instant::now()),
                Some(_) = asking.join_next() => {}
                // The retry time has changed: compute it again.
                () = self.list_failed.notified() => {}
                () = self.demand.bell.notified(), if self.cache.retry().is_some() && retry.is_none() => {}
                () = until(due) => {
                    let now = Instant::now();
                    debounce.listed(now);
                    let question = Question { not_before: now, budget: self.budget, retry: ListRetry::Anyway };
                    asking.spawn(self.clone().ask(link.clone(), Default::default(), question));
                }
            }
        }
    }

    /// Logs the failure, at `warn` only when the reason is new.
    fn log(&self, reason: &str) {
        if self.connection_state.borrow().reason() == reason {
            tracing::debug!(server = %self.server, reason, "MCP server still unavailable");
        } else {
            tracing::warn!(server = %self.server, reason, "MCP server unavailable");
        }
    }

    /// Records a failure and enters the resulting state. Returns how often the server was needed until then.
    fn fail(&self, reason: &str, may_pass: bool, unneeded: UnusedServer) -> Option<u64> {
        self.cache.away(self.sentence(reason));
        let now = Instant::now();
        let needed = lock(&self.demand.seen).0;
        let is_in_use = self.is_in_use();
        self.connection_state.send_modify(|connection_state| {
            connection_state.fail(reason);
            let until = now + delay_after(connection_state.failures, jitter());
            connection_state.enter(match (may_pass && is_in_use, unneeded) {
                (true, _) => State::BackingOff { until },
                (false, UnusedServer::Failed) => State::Failed { until },
                (false, UnusedServer::Idle) => State::Idle,
            });
        });
        Some(needed)
    }

    /// Whether a request needed the server recently.
    fn is_in_use(&self) -> bool {
        lock(&self.demand.seen).1.is_some_and(|last| Instant::now() < last + IN_USE)
    }

    /// Waits until the next start attempt is due.
    async fn rest(&self, needed: u64) {
        let state = self.connection_state.borrow().state.clone();
        match state {
            State::BackingOff { until } => sleep_until(until).await,
            State::Failed { until } => {
                self.needed_more_often_than(needed).await;
                sleep_until(until).await;
            }
            State::Idle => self.needed_more_often_than(needed).await,
            State::Starting | State::Ready(_) | State::Closed => {}
        }
    }

    async fn needed_more_often_than(&self, times: u64) {
        loop {
            let rung = self.demand.bell.notified();
            if lock(&self.demand.seen).0 > times {
                return;
            }
            rung.await;
        }
    }
}

/// Why the keeper stops following a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ConnectionEnd {
    Lost,
    /// The server is being closed for good.
    Closing,
    /// A caller requested a new connection.
    Restarting,
}

/// What happens to a server without recent requests.
#[derive(Clone, Copy)]
enum UnusedServer {
    Idle,
    Failed,
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
