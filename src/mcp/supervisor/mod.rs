//! One supervisor per server: it starts it, keeps it, starts it again when it is lost, and knows its tools meanwhile.
//!
//! States: *idle* until somebody needs the server; *starting*; *ready*; *backing off* after a failure, until it is tried
//! again by itself; *failed* when trying again helps nobody (the command does not exist, or nobody asked for the server
//! for ten minutes), until it is needed; *closed* for good.
//!
//! What a request may count on:
//! - It waits for a start that is under way, or due within [`PATIENCE`]. Else it is answered at once, with the last
//!   failure and the time of the next try. The first start of all has its whole budget; for a later one, a request for
//!   the tools waits no longer than that patience, and hardly at all once the server failed twice in a row.
//! - A server that was asked for its tools in vain is waited for once. Then it is left out, with the reason, and asked again
//!   in the background after ever longer pauses: neither a turn nor another run waits for it a second time.
//! - The tools are those of the last good list. They are asked for after every start, when the server says that they
//!   changed, and when a run begins and nothing is promised about them. While that is impossible the list of before is
//!   given, marked with the reason.
//! - Nothing here ever repeats a call. A connection is repaired; what was under way on it is over.

mod backoff;
mod keeper;
mod link;
mod pace;
mod renew;
mod shelf;
mod standing;
mod starts;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(super) use link::{Dial, Link, NotOpened};
use shelf::{CURRENT, Shelf};
pub(super) use standing::{Standing, State};
pub(super) use starts::Starts;

use crate::core::id::ServerId;
use crate::core::tool::ServerTools;
use crate::mcp::watch::{ExchangeKind, Watched, Watcher};

/// How long a request waits for something that went wrong before.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// How long a request for the tools waits for a server that failed twice and more in a row: it may be back just now.
const IMPATIENCE: Duration = Duration::from_millis(200);
/// How long a server is looked after without anybody asking for it.
const IN_USE: Duration = Duration::from_secs(600);

/// The supervisor of one server.
pub(super) struct Supervisor<D: Dial> {
    server: ServerId,
    dial: D,
    /// The time from the beginning of a start to the list of tools, and for every later list.
    budget: Duration,
    standing: watch::Sender<Standing<D::Link>>,
    shelf: Shelf,
    /// Held while the tools are asked for.
    asking: tokio::sync::Mutex<()>,
    need: Need,
    watched: Watched,
    /// The tools were asked for in vain.
    list_failed: Notify,
    /// The right to start, which few servers have at a time.
    starts: Starts,
    /// How often somebody wanted another connection in the place of the one there is.
    restarts: watch::Sender<u64>,
    has_keeper: AtomicBool,
    tasks: TaskTracker,
    closing: CancellationToken,
}

/// When and why the tools are asked for.
struct Question {
    /// They are not, if they were asked for since then.
    not_before: Instant,
    budget: Duration,
    wish: Wish,
}

/// Whether a server that was asked in vain is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    /// It is.
    Anyway,
    /// Only in the background, and not for a request.
    UnlessInVain,
}

/// Who needs the server.
struct Need {
    /// How often somebody did, and when last.
    seen: Mutex<(u64, Option<Instant>)>,
    /// What the next connection is made with, and its first list of tools: the trace of whoever needs it.
    meta: Mutex<Map<String, Value>>,
    bell: Notify,
}

impl<D: Dial> Supervisor<D> {
    /// Of a server that nobody needed yet. Everything that outlives a request runs on `tasks`.
    pub(super) fn new(server: ServerId, dial: D, budget: Duration, tasks: TaskTracker, starts: Starts) -> Arc<Self> {
        Arc::new(Self {
            server,
            dial,
            budget,
            standing: watch::Sender::new(Standing::idle()),
            shelf: Shelf::default(),
            asking: tokio::sync::Mutex::default(),
            need: Need { seen: Mutex::default(), meta: Mutex::default(), bell: Notify::new() },
            watched: Watched::default(),
            list_failed: Notify::new(),
            starts,
            restarts: watch::Sender::new(0),
            has_keeper: AtomicBool::new(false),
            tasks,
            closing: CancellationToken::new(),
        })
    }

    /// Tells `watcher` what comes to its end.
    pub(super) fn watched_by(&self, watcher: Watcher) {
        self.watched.by(watcher);
    }

    /// Sees to it that the server is there, without waiting.
    pub(super) fn start(self: &Arc<Self>) {
        {
            let mut seen = lock(&self.need.seen);
            *seen = (seen.0 + 1, Some(Instant::now()));
        }
        self.need.bell.notify_waiters();
        if !self.closing.is_cancelled() && !self.has_keeper.swap(true, Ordering::AcqRel) {
            self.tasks.spawn(self.clone().keep());
        }
    }

    /// The live connection, or why there is none. Waits as the rules say; the caller bounds it by a `deadline`.
    pub(super) async fn link(self: &Arc<Self>, deadline: Instant) -> Result<Arc<D::Link>, String> {
        self.link_of(self.awaited(), deadline).await
    }

    /// The start that a request waits for which comes now: the one under way, or else the next one.
    fn awaited(&self) -> u64 {
        let standing = self.standing.borrow();
        standing.starts + u64::from(!matches!(standing.state, State::Starting))
    }

    /// The live connection for a request that waits for that start.
    async fn link_of(self: &Arc<Self>, awaited: u64, deadline: Instant) -> Result<Arc<D::Link>, String> {
        let mut standings = self.standing.subscribe();
        loop {
            let answer = self.answer(&standings.borrow_and_update(), deadline, awaited);
            // Said before every wait: the keeper may have gone to rest after it was said last.
            if answer.as_ref().is_none_or(|_| self.standing().starts < awaited) {
                self.start();
            }
            if let Some(answer) = answer {
                return answer;
            }
            if standings.changed().await.is_err() {
                return Err(self.closed());
            }
        }
    }

    /// What a request is told that finds the server like this, or nothing if it has to wait.
    fn answer(
        &self,
        standing: &Standing<D::Link>,
        deadline: Instant,
        awaited: u64,
    ) -> Option<Result<Arc<D::Link>, String>> {
        if let Some(link) = standing.link() {
            return Some(Ok(link));
        }
        let patience = (Instant::now() + PATIENCE).min(deadline);
        match &standing.state {
            State::Starting => None,
            State::Closed if standing.starts >= awaited => {
                Some(Err(self.sentence("was shut down while it was starting")))
            }
            State::Closed => Some(Err(self.closed())),
            // Not begun yet, or its end is just being noticed.
            State::Idle | State::Ready(_) => {
                let will_not_begin = self.closing.is_cancelled() && !self.has_keeper.load(Ordering::Acquire);
                will_not_begin.then(|| Err(self.closed()))
            }
            State::BackingOff { .. } | State::Failed { .. } if standing.starts >= awaited => {
                Some(Err(self.sentence(standing.reason())))
            }
            State::BackingOff { until } if *until > patience => {
                Some(Err(self.not_now(standing, "is tried again", *until)))
            }
            State::Failed { until } if *until > patience => {
                Some(Err(self.not_now(standing, "can be tried again", *until)))
            }
            State::BackingOff { .. } | State::Failed { .. } => None,
        }
    }

    /// Says whose need it is, should a connection have to be made first. One that there is outlives whoever needed it, and
    /// what it asks later by itself is nobody's.
    pub(super) fn need_for(&self, meta: &Map<String, Value>) {
        let is_live = |link: Arc<D::Link>| !link.signals().lost.is_cancelled();
        if !self.standing.borrow().link().is_some_and(is_live) {
            lock(&self.need.meta).clone_from(meta);
        }
    }

    /// The tools, asked for anew where that may tell something new. Never fails: what is wrong is part of the offer.
    pub(super) async fn offer(self: &Arc<Self>, meta: Map<String, Value>, trusted: bool) -> ServerTools {
        self.need_for(&meta);
        if let Some(reason) = self.shelf.not_worth_waiting() {
            // It is needed: it is kept, or started again.
            self.start();
            return self.shelf.offer(&self.server, trusted, Some(reason));
        }
        let awaited = self.awaited();
        if !self.shelf.has_any() {
            self.start_of_its_own().await;
        }
        let begun = Instant::now();
        // The first start of all may be an installation.
        let longest = match self.standing.borrow().failures {
            0 if !self.shelf.has_any() => 2 * self.budget,
            0 | 1 => PATIENCE,
            // A run asks before each turn and before each tier: it must not pay for one that is down each time.
            _ => IMPATIENCE,
        };
        let trouble = match timeout(longest, self.ask_if_need_be(begun, awaited, meta)).await {
            Ok(asked) => asked.err(),
            Err(_) => {
                let reason = self.still_waiting(longest);
                if self.standing().link().is_some() {
                    self.shelf.is_overdue(reason.clone());
                }
                Some(reason)
            }
        };
        self.shelf.offer(&self.server, trusted, trouble)
    }

    async fn ask_if_need_be(
        self: &Arc<Self>,
        begun: Instant,
        mut awaited: u64,
        meta: Map<String, Value>,
    ) -> Result<(), String> {
        let not_before = begun.checked_sub(CURRENT).unwrap_or(begun);
        // A connection of which only the question shows that it is lost is replaced at once.
        for _ in 0..2 {
            let link = self.link_of(awaited, begun + self.budget).await?;
            awaited = self.awaited();
            if self.shelf.is_current() {
                break;
            }
            // The question belongs to the server, not to whoever asked first.
            let question = Question { not_before, budget: self.budget, wish: Wish::UnlessInVain };
            let asking = self.tasks.spawn(self.clone().ask(link.clone(), meta.clone(), question));
            asking.await.map_err(|_| format!("asking the MCP server `{}` for its tools panicked", self.server))?;
            if !link.signals().lost.is_cancelled() {
                break;
            }
        }
        Ok(())
    }

    /// Waits until the start of the server is its own: one that waits for a place among those that start is not late.
    async fn start_of_its_own(self: &Arc<Self>) {
        self.start();
        let mut standings = self.standing.subscribe();
        let is_queued = |standing: &Standing<D::Link>| {
            matches!(standing.state, State::Idle) && standing.starts == 0 && !self.closing.is_cancelled()
        };
        tokio::select! {
            _ = standings.wait_for(|standing| !is_queued(standing)) => {}
            () = self.closing.cancelled() => {}
        }
    }

    /// Asks for the tools, unless that was done lately.
    async fn ask(self: Arc<Self>, link: Arc<D::Link>, meta: Map<String, Value>, question: Question) {
        let Question { not_before, budget, wish } = question;
        let _turn = self.asking.lock().await;
        let is_in_vain = wish == Wish::UnlessInVain && self.shelf.not_worth_waiting().is_some();
        let is_lost = link.signals().lost.is_cancelled();
        if is_in_vain || is_lost || self.shelf.was_asked_since(not_before) {
            return;
        }
        let asked = Instant::now();
        let listed = link.list(&meta, budget).await;
        self.watched.tell(&self.server, ExchangeKind::ToolsList, asked.elapsed(), listed.is_err());
        match listed {
            Ok(listing) => self.shelf.keep(&self.server, listing, asked, link.announces_changes()),
            // The question found the connection lost. It was not asked in vain: the next one is asked again.
            Err(reason) if link.signals().lost.is_cancelled() => self.shelf.away(self.sentence(&reason)),
            Err(reason) => {
                self.shelf.list_failed(self.sentence(&reason), asked);
                self.list_failed.notify_one();
            }
        }
    }

    /// Makes sure that the list was asked for no longer ago than that, if that can be done soon. While it cannot, the list
    /// of before is the best there is.
    pub(super) async fn confirm(self: &Arc<Self>, meta: Map<String, Value>, age: Duration) {
        let now = Instant::now();
        let since = now.checked_sub(age).unwrap_or(now);
        if self.shelf.was_asked_since(since) || self.shelf.not_worth_waiting().is_some() {
            return;
        }
        let confirmed = match timeout(PATIENCE, self.refresh_since(since, meta)).await {
            Ok(confirmed) => confirmed,
            Err(_) => {
                let reason = self.still_waiting(PATIENCE);
                self.shelf.is_overdue(reason.clone());
                Err(reason)
            }
        };
        if let Err(reason) = confirmed {
            tracing::warn!(server = %self.server, reason, "failed to confirm the tools of an MCP server before a call");
        }
    }

    /// Who dials.
    pub(super) fn dial(&self) -> &D {
        &self.dial
    }

    /// How it stands now.
    pub(super) fn standing(&self) -> watch::Ref<'_, Standing<D::Link>> {
        self.standing.borrow()
    }

    /// How many tools are known, and why they are those of before.
    pub(super) fn tools(&self) -> (Option<usize>, Option<String>) {
        self.shelf.summary()
    }

    /// Why the tools could not be listed last, and since when: a whole sentence.
    pub(super) fn list_trouble(&self) -> Option<(String, Timestamp)> {
        self.shelf.list_trouble()
    }

    /// A number that changes when [`offer`](Self::offer) may say something else.
    pub(super) fn generation(&self) -> u64 {
        self.shelf.generation()
    }

    /// Ends a start that is under way and the connection, and refuses all later requests.
    pub(super) fn abandon(&self) {
        self.closing.cancel();
    }

    /// Shuts the server down for good and waits until nothing is left of it.
    pub(super) async fn close(&self) {
        self.abandon();
        if !self.has_keeper.load(Ordering::Acquire) {
            self.standing.send_modify(|standing| standing.enter(State::Closed));
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

    fn not_now(&self, standing: &Standing<D::Link>, again: &str, until: Instant) -> String {
        let wait = until.saturating_duration_since(Instant::now()).as_secs_f64().ceil();
        let (failures, reason) = (standing.failures, standing.reason());
        self.sentence(&format!("failed {failures} times in a row and {again} in {wait} s; the last time it {reason}"))
    }

    fn still_waiting(&self, waited: Duration) -> String {
        let standing = self.standing.borrow();
        let doing = match standing.state {
            State::Ready(_) => "did not list its tools",
            State::Idle | State::Starting | State::BackingOff { .. } | State::Failed { .. } | State::Closed => {
                "was not there again"
            }
        };
        self.sentence(&format!("{doing} within {} s{}", waited.as_secs_f64(), standing.before()))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
