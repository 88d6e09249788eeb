//! Server supervisor: starts one server, keeps it running, restarts it after a loss, and caches its tools meanwhile.
//!
//! States: *idle* until a request needs the server; *starting*; *ready*; *backing off* after a failure, until the
//! automatic retry; *failed* when automatic retries are of no use (the command does not exist, or no request needed
//! the server for ten minutes), until a request needs it; *closed* for good.
//!
//! What a request may rely on:
//! - It waits for a start that is under way, or due within [`READY_TIMEOUT`]. Otherwise it fails at once, with the last
//!   failure and the time of the next attempt. The very first start has its whole budget; during a later one, a
//!   request for the tools waits at most that long, and hardly at all once the server failed twice in a row.
//! - No request waits for the tools of a server that the user does not wait for, until the server is ready.
//! - A request waits only once for a server that does not list its tools. After that the server is left out, with the
//!   reason, and asked again in the background with growing pauses: neither a turn nor another run waits for it a
//!   second time.
//! - The tools are those of the last complete list, or of the pages that were read in time while there is none. The
//!   supervisor requests a new list after every start, when the server announces a change, and when a run begins and
//!   the server promises no announcements. While that is impossible it returns the previous list, marked with the
//!   reason.
//! - The supervisor never repeats a call. It repairs a connection; calls that were in flight on it have ended.

mod announcement_debounce;
mod backoff;
mod connection_state;
mod keeper;
mod link;
mod renew;
mod start_limiter;
#[cfg(test)]
mod tests;
mod tool_list_cache;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(super) use connection_state::{ConnectionState, State};
pub(super) use link::{Dial, Link, NotOpened};
pub(super) use start_limiter::StartLimiter;
use toolgate_core::id::ServerId;
use toolgate_core::tool::ServerTools;

use tool_list_cache::{CURRENT, ToolListCache};

use crate::watch::{ExchangeKind, Watcher, WatcherSlot};

/// How long a request waits for a server that failed before.
pub(super) const READY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a request for the tools waits for a server that failed at least twice in a row and may be back just now.
const IMREADY_TIMEOUT: Duration = Duration::from_millis(200);
/// How long the supervisor keeps retrying a server without a request that needs it.
const IN_USE: Duration = Duration::from_secs(600);

/// The supervisor of one server.
pub(super) struct Supervisor<D: Dial> {
    server: ServerId,
    dial: D,
    /// The time from the beginning of a start to the tool list, and the time limit of every later list.
    budget: Duration,
    connection_state: watch::Sender<ConnectionState<D::Link>>,
    cache: ToolListCache,
    /// Held while a `tools/list` request is in flight.
    asking: tokio::sync::Mutex<()>,
    demand: Demand,
    watched: WatcherSlot,
    /// Notified when a list fails.
    list_failed: Notify,
    /// Whether the user does not wait for the server, which is not ready yet.
    is_skipped: watch::Sender<bool>,
    /// The limiter of concurrent starts.
    starts: StartLimiter,
    /// How many restarts were requested.
    restarts: watch::Sender<u64>,
    has_keeper: AtomicBool,
    tasks: TaskTracker,
    closing: CancellationToken,
}

/// When and why to request the tool list.
struct Question {
    /// No request is made if the list was requested at or after this time.
    not_before: Instant,
    budget: Duration,
    retry: ListRetry,
}

/// Whether to ask a server whose last list failed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ListRetry {
    /// Ask regardless.
    Anyway,
    /// Ask only in the background, not for a request.
    UnlessKnownToFail,
}

/// The demand for the server.
struct Demand {
    /// How many requests needed it, and when the last one did.
    seen: Mutex<(u64, Option<Instant>)>,
    /// Metadata for the next connection and its first tool list: the trace context of the request that needs the
    /// server.
    meta: Mutex<Map<String, Value>>,
    bell: Notify,
}

impl<D: Dial> Supervisor<D> {
    /// Creates the supervisor of a server that is not needed yet. Work that outlives a request runs on `tasks`.
    pub(super) fn new(
        server: ServerId,
        dial: D,
        budget: Duration,
        tasks: TaskTracker,
        starts: StartLimiter,
    ) -> Arc<Self> {
        Arc::new(Self {
            server,
            dial,
            budget,
            connection_state: watch::Sender::new(ConnectionState::idle()),
            cache: ToolListCache::default(),
            asking: tokio::sync::Mutex::default(),
            demand: Demand { seen: Mutex::default(), meta: Mutex::default(), bell: Notify::new() },
            watched: WatcherSlot::default(),
            list_failed: Notify::new(),
            is_skipped: watch::Sender::new(false),
            starts,
            restarts: watch::Sender::new(0),
            has_keeper: AtomicBool::new(false),
            tasks,
            closing: CancellationToken::new(),
        })
    }

    /// Reports finished exchanges to `watcher`.
    pub(super) fn watched_by(&self, watcher: Watcher) {
        self.watched.by(watcher);
    }

    /// Starts the server if necessary, without waiting.
    pub(super) fn start(self: &Arc<Self>) {
        {
            let mut seen = lock(&self.demand.seen);
            *seen = (seen.0 + 1, Some(Instant::now()));
        }
        self.demand.bell.notify_waiters();
        if !self.closing.is_cancelled() && !self.has_keeper.swap(true, Ordering::AcqRel) {
            self.tasks.spawn(self.clone().keep());
        }
    }

    /// The live connection, or why there is none. Waits as described above; the caller bounds the wait with
    /// `deadline`.
    pub(super) async fn link(self: &Arc<Self>, deadline: Instant) -> Result<Arc<D::Link>, String> {
        self.link_of(self.awaited(), deadline).await
    }

    /// The number of the start that a new request waits for: the one under way, or else the next one.
    fn awaited(&self) -> u64 {
        let connection_state = self.connection_state.borrow();
        connection_state.starts + u64::from(!matches!(connection_state.state, State::Starting))
    }

    /// The live connection for a request that waits for that start.
    async fn link_of(self: &Arc<Self>, awaited: u64, deadline: Instant) -> Result<Arc<D::Link>, String> {
        let mut states = self.connection_state.subscribe();
        loop {
            let answer = self.answer(&states.borrow_and_update(), deadline, awaited);
            // Repeated before every wait: the keeper may have become idle since the last time.
            if answer.as_ref().is_none_or(|_| self.connection_state().starts < awaited) {
                self.start();
            }
            if let Some(answer) = answer {
                return answer;
            }
            if states.changed().await.is_err() {
                return Err(self.closed());
            }
        }
    }

    /// The answer to a request in this state, or `None` if the request has to wait.
    fn answer(
        &self,
        connection_state: &ConnectionState<D::Link>,
        deadline: Instant,
        awaited: u64,
    ) -> Option<Result<Arc<D::Link>, String>> {
        if let Some(link) = connection_state.link() {
            return Some(Ok(link));
        }
        let give_up_at = (Instant::now() + READY_TIMEOUT).min(deadline);
        match &connection_state.state {
            State::Starting => None,
            State::Closed if connection_state.starts >= awaited => {
                Some(Err(self.sentence("was shut down while it was starting")))
            }
            State::Closed => Some(Err(self.closed())),
            // Not started yet, or the loss of the connection is just being handled.
            State::Idle | State::Ready(_) => {
                let will_not_begin = self.closing.is_cancelled() && !self.has_keeper.load(Ordering::Acquire);
                will_not_begin.then(|| Err(self.closed()))
            }
            State::BackingOff { .. } | State::Failed { .. } if connection_state.has_failed(awaited) => {
                Some(Err(self.sentence(connection_state.reason())))
            }
            State::BackingOff { until } if *until > give_up_at => {
                Some(Err(self.not_now(connection_state, "is tried again", *until)))
            }
            State::Failed { until } if *until > give_up_at => {
                Some(Err(self.not_now(connection_state, "can be tried again", *until)))
            }
            State::BackingOff { .. } | State::Failed { .. } => None,
        }
    }

    /// Records the trace context of the request that needs the server, in case a connection has to be opened first. An
    /// existing connection outlives the request that opened it, and its own later requests carry no trace context.
    pub(super) fn need_for(&self, meta: &Map<String, Value>) {
        let is_live = |link: Arc<D::Link>| !link.signals().lost.is_cancelled();
        if !self.connection_state.borrow().link().is_some_and(is_live) {
            lock(&self.demand.meta).clone_from(meta);
        }
    }

    /// The tools, listed again where the list may have changed. Never fails: errors are part of the returned list.
    pub(super) async fn offer(self: &Arc<Self>, meta: Map<String, Value>, trusted: bool) -> ServerTools {
        self.need_for(&meta);
        if let Some(reason) = self.cache.not_worth_waiting() {
            // The server is needed: keep it running, or start it again.
            self.start();
            return self.cache.offer(&self.server, trusted, Some(reason));
        }
        let awaited = self.awaited();
        if !self.cache.has_any() {
            self.start_of_its_own().await;
        }
        // A server that failed is not waited for long in any case.
        self.is_skipped
            .send_if_modified(|is_skipped| self.connection_state.borrow().failures > 0 && std::mem::take(is_skipped));
        let begun = Instant::now();
        // The very first start may include an installation.
        let longest = match self.connection_state.borrow().failures {
            0 if !self.cache.has_any() => 2 * self.budget,
            0 | 1 => READY_TIMEOUT,
            // A run asks before each turn and before each tier, and must not wait for an unavailable server each time.
            _ => IMREADY_TIMEOUT,
        };
        let mut is_skipped = self.is_skipped.subscribe();
        let unanswered = tokio::select! {
            biased;
            answered = timeout(longest, self.ask_if_need_be(begun, awaited, meta)) => {
                answered.map_err(|_| self.still_waiting(longest))
            }
            _ = is_skipped.wait_for(|is_skipped| *is_skipped) => Err(self.not_waited_for()),
        };
        let failure = match unanswered {
            Ok(answered) => {
                self.is_skipped.send_replace(false);
                answered.err()
            }
            Err(reason) => {
                if self.connection_state().link().is_some() {
                    self.cache.mark_overdue(reason.clone());
                }
                Some(reason)
            }
        };
        self.cache.offer(&self.server, trusted, failure)
    }

    /// Ends the wait of requests for the tools, if the server is not ready yet, and lets none wait until it is.
    pub(super) fn skip_wait(&self) {
        let is_starting = matches!(self.connection_state.borrow().state, State::Starting | State::Ready(_));
        if is_starting && !self.cache.has_any() {
            self.is_skipped.send_replace(true);
        }
    }

    async fn ask_if_need_be(
        self: &Arc<Self>,
        begun: Instant,
        mut awaited: u64,
        meta: Map<String, Value>,
    ) -> Result<(), String> {
        let not_before = begun.checked_sub(CURRENT).unwrap_or(begun);
        // A connection that turns out to be lost only during the request is replaced at once.
        for _ in 0..2 {
            let link = self.link_of(awaited, begun + self.budget).await?;
            awaited = self.awaited();
            if self.cache.is_current() {
                break;
            }
            // The request belongs to the server, not to the caller that triggered it.
            let question = Question { not_before, budget: self.budget, retry: ListRetry::UnlessKnownToFail };
            let asking = self.tasks.spawn(self.clone().ask(link.clone(), meta.clone(), question));
            asking.await.map_err(|_| format!("asking the MCP server `{}` for its tools panicked", self.server))?;
            if !link.signals().lost.is_cancelled() {
                break;
            }
        }
        Ok(())
    }

    /// Waits until the server's own start begins: time spent queued for a start permit does not count as late.
    async fn start_of_its_own(self: &Arc<Self>) {
        self.start();
        let mut states = self.connection_state.subscribe();
        let is_queued = |connection_state: &ConnectionState<D::Link>| {
            matches!(connection_state.state, State::Idle)
                && connection_state.starts == 0
                && !self.closing.is_cancelled()
        };
        tokio::select! {
            _ = states.wait_for(|connection_state| !is_queued(connection_state)) => {}
            () = self.closing.cancelled() => {}
        }
    }

    /// Requests the tool list, unless that was done recently.
    async fn ask(self: Arc<Self>, link: Arc<D::Link>, meta: Map<String, Value>, question: Question) {
        let Question { not_before, budget, retry } = question;
        let _turn = self.asking.lock().await;
        // A list that failed once is waited for by no other run (decision 0017).
        let is_known_to_fail = retry == ListRetry::UnlessKnownToFail && self.cache.not_worth_waiting().is_some();
        let is_lost = link.signals().lost.is_cancelled();
        if is_known_to_fail || is_lost || self.cache.was_requested_since(not_before) {
            return;
        }
        let requested_at = Instant::now();
        let listed = link.list(&meta, budget).await;
        let is_failure = listed.as_ref().map_or(true, |listing| listing.incomplete.is_some());
        self.watched.report(&self.server, ExchangeKind::ToolsList, requested_at.elapsed(), is_failure);
        match listed {
            Ok(listing) => match listing.incomplete.as_deref().map(|reason| self.sentence(reason)) {
                None => self.cache.keep(&self.server, listing, requested_at, link.announces_changes()),
                Some(reason) => {
                    tracing::warn!(server = %self.server, reason, "tool list of an MCP server incomplete");
                    self.cache.keep_part(listing, reason, requested_at);
                    self.list_failed.notify_one();
                }
            },
            // The connection was lost during the request. That does not count as a failed list: the next connection is
            // asked again.
            Err(reason) if link.signals().lost.is_cancelled() => self.cache.away(self.sentence(&reason)),
            Err(reason) => {
                self.cache.list_failed(self.sentence(&reason), requested_at);
                self.list_failed.notify_one();
            }
        }
    }

    /// Ensures that the list is no older than `age`, if that is possible soon. Otherwise the previous list stays in
    /// use.
    pub(super) async fn confirm(self: &Arc<Self>, meta: Map<String, Value>, age: Duration) {
        let now = Instant::now();
        let since = now.checked_sub(age).unwrap_or(now);
        if self.cache.was_requested_since(since) || self.cache.not_worth_waiting().is_some() {
            return;
        }
        let confirmed = match timeout(READY_TIMEOUT, self.refresh_since(since, meta)).await {
            Ok(confirmed) => confirmed,
            Err(_) => {
                let reason = self.still_waiting(READY_TIMEOUT);
                self.cache.mark_overdue(reason.clone());
                Err(reason)
            }
        };
        if let Err(reason) = confirmed {
            tracing::warn!(server = %self.server, reason, "failed to refresh the tools of an MCP server before a call");
        }
    }

    pub(super) fn dial(&self) -> &D {
        &self.dial
    }

    /// The current state.
    pub(super) fn connection_state(&self) -> watch::Ref<'_, ConnectionState<D::Link>> {
        self.connection_state.borrow()
    }

    /// The number of known tools, and why they are stale.
    pub(super) fn tools(&self) -> (Option<usize>, Option<String>) {
        self.cache.summary()
    }

    /// Why the last list failed, and since when, as a whole sentence.
    pub(super) fn list_failure(&self) -> Option<(String, Timestamp)> {
        self.cache.list_failure()
    }

    /// A number that changes when [`offer`](Self::offer) may return something else.
    pub(super) fn generation(&self) -> u64 {
        self.cache.generation()
    }

    /// Aborts a start that is under way, ends the connection, and rejects all later requests.
    pub(super) fn abandon(&self) {
        self.closing.cancel();
    }

    /// Shuts the server down for good and waits until its resources are released.
    pub(super) async fn close(&self) {
        self.abandon();
        if !self.has_keeper.load(Ordering::Acquire) {
            self.connection_state.send_modify(|connection_state| connection_state.enter(State::Closed));
        }
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn sentence(&self, reason: &str) -> String {
        format!("the MCP server `{}` {reason}", self.server)
    }

    fn closed(&self) -> String {
        self.sentence("was shut down, because toolgate is ending")
    }

    fn not_now(&self, connection_state: &ConnectionState<D::Link>, again: &str, until: Instant) -> String {
        let wait = until.saturating_duration_since(Instant::now()).as_secs_f64().ceil();
        let (failures, reason) = (connection_state.failures, connection_state.reason());
        self.sentence(&format!("failed {failures} times in a row and {again} in {wait} s; the last time it {reason}"))
    }

    fn not_waited_for(&self) -> String {
        let before = self.connection_state.borrow().before();
        self.sentence(&format!("is not ready yet, and was not waited for{before}"))
    }

    fn still_waiting(&self, waited: Duration) -> String {
        let connection_state = self.connection_state.borrow();
        let doing = match connection_state.state {
            State::Ready(_) => "did not list its tools",
            State::Idle | State::Starting | State::BackingOff { .. } | State::Failed { .. } | State::Closed => {
                "did not become ready"
            }
        };
        self.sentence(&format!("{doing} within {} s{}", waited.as_secs_f64(), connection_state.before()))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
