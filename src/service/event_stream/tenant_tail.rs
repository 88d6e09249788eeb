//! Event stream of a tenant: the events of all of its runs, in the order of the event log, whichever process wrote them.
//!
//! An event's id is the position of its fact in the log. It does not depend on the selection: a client that resumes with it, in any
//! process and with any selection, continues with the very next event. The stream is pulled by its client, and holds the
//! events of one fact.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use toolgate_core::error::ErrorCode;
use toolgate_core::id::Tenant;
use toolgate_ports::LoggedEvent;
use toolgate_runner::{Admission, Permit, TenantSubscription};

use super::id::EventId;
use super::open::FollowSettings;
use super::projections::Projections;
use super::selection::EventSelection;
use super::{RunEvent, StreamItem};
use crate::error::ServiceError;
use crate::runs::TenantRunner;

/// How many facts are read at once.
const BATCH: usize = 256;

/// After how many positions without a selected event the client is told the last one, so that it need not read them again
/// after it reconnects.
const SILENT_POSITIONS: u64 = 1024;

/// How many positions are read for a page.
const POSITIONS_OF_PAGE: u64 = 2000;

/// The events of a tenant, as they are pulled.
pub struct TenantTail {
    tenant: Tenant,
    selection: EventSelection,
    log: TenantSubscription,
    projections: Projections,
    /// Reads of the store take turns in it.
    reads: Arc<Admission>,
    stopping: CancellationToken,
    /// The last event that the client had when it opened the stream.
    seen: EventId,
    /// The last position whose events were projected.
    position: u64,
    /// The last position that the client was told.
    told: u64,
    /// Facts of the tenant that were read, after `position`.
    unread: VecDeque<LoggedEvent>,
    /// The last position that was read.
    read_to: u64,
    /// Events that are not yet sent.
    ready: VecDeque<RunEvent>,
    is_over: bool,
}

/// The next item of a tenant's stream.
pub enum TenantStreamItem {
    /// An item as in the stream of one run.
    Item(StreamItem),
    /// The client has every selected event up to this one.
    Position(EventId),
}

/// The events of a tenant after a cursor.
pub struct EventPage {
    pub events: Vec<RunEvent>,
    /// The cursor of the next page.
    pub last: EventId,
    pub has_more: bool,
}

impl TenantRunner {
    /// The selected events of the tenant after `seen`, or from now on. `reads`: the queue in which reads of the store take
    /// turns.
    pub async fn events(
        &self,
        selection: EventSelection,
        seen: Option<EventId>,
        reads: Arc<Admission>,
        follow: FollowSettings,
    ) -> Result<TenantTail, ServiceError> {
        let FollowSettings { poll, stopping } = follow;
        let tenant = self.caller.tenant.clone();
        let log = self.runner.tenant_subscription(&tenant, poll);
        let latest = log.last_position().await?;
        let seen = seen.unwrap_or_else(|| EventId::whole(latest));
        if seen.seq > latest {
            let detail = format!("there is no event `{seen}`; the latest one is of `{latest}`");
            return Err(ServiceError::new(ErrorCode::Validation, detail));
        }
        let position = if seen.is_whole() { seen.seq } else { seen.seq.saturating_sub(1) };
        Ok(TenantTail {
            tenant,
            selection,
            log,
            projections: Projections::default(),
            reads,
            stopping,
            seen,
            position,
            told: position,
            unread: VecDeque::new(),
            read_to: position,
            ready: VecDeque::new(),
            is_over: false,
        })
    }
}

impl TenantTail {
    /// The cursor at which the stream begins.
    pub fn beginning(&self) -> EventId {
        self.seen
    }

    /// The next item; `None` when the stream is over.
    pub async fn next(&mut self) -> Result<Option<TenantStreamItem>, ServiceError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.told = self.position;
                return Ok(Some(TenantStreamItem::Item(StreamItem::Event(event.into()))));
            }
            if self.is_over {
                return Ok(None);
            }
            if self.stopping.is_cancelled() {
                self.is_over = true;
                return Ok(Some(TenantStreamItem::Item(StreamItem::Draining)));
            }
            if self.position - self.told >= SILENT_POSITIONS {
                self.told = self.position;
                return Ok(Some(TenantStreamItem::Position(EventId::whole(self.position))));
            }
            if !self.advance().await? {
                tokio::select! {
                    () = self.log.newer_than(self.position) => {}
                    () = self.stopping.cancelled() => {}
                }
            }
        }
    }

    /// The events so far, up to a maximum number.
    pub async fn page(mut self, most: usize) -> Result<EventPage, ServiceError> {
        let last_position = self.position + POSITIONS_OF_PAGE;
        let mut events = Vec::new();
        loop {
            while events.len() < most
                && let Some(event) = self.ready.pop_front()
            {
                events.push(event);
            }
            if !self.ready.is_empty() {
                // The page ends among the events of one fact.
                let last = events.last().and_then(|event: &RunEvent| event.id).unwrap_or(self.seen);
                return Ok(EventPage { events, last, has_more: true });
            }
            let is_full = events.len() >= most || self.position >= last_position;
            if is_full || !self.advance().await? {
                let has_more = is_full && self.log.last_position().await? > self.position;
                let last = EventId::whole(self.position);
                let last = if last.is_after(self.seen) { last } else { self.seen };
                return Ok(EventPage { events, last, has_more });
            }
        }
    }

    /// Makes the events of the next fact ready. `false` if there is none for now.
    async fn advance(&mut self) -> Result<bool, ServiceError> {
        if self.unread.is_empty() && self.position == self.read_to {
            let _turn = turn(&self.reads, &self.tenant).await;
            let page = self.log.after(self.position, BATCH).await?;
            (self.unread, self.read_to) = (page.events.into(), page.read_to);
        }
        let Some(fact) = self.unread.front() else {
            let has_read = self.position < self.read_to;
            self.position = self.read_to;
            return Ok(has_read);
        };
        if self.selection.admits_run(fact) {
            let _turn = turn(&self.reads, &self.tenant).await;
            let events = match self.projections.events_of(fact, &self.log).await {
                Err(error) if error.code() == ErrorCode::JournalCorrupt => {
                    tracing::warn!(run = %fact.run, %error, "failed to read events of run");
                    Vec::new()
                }
                events => events?,
            };
            let count = events.len();
            let selected = events.into_iter().enumerate().filter(|(_, event)| self.selection.admits(event));
            let named = selected.map(|(index, event)| (EventId::new(fact.position, index, count), event.event));
            self.ready = RunEvent::unseen(named, Some(self.seen)).collect();
        }
        self.position = fact.position;
        self.unread.pop_front();
        Ok(true)
    }
}

/// Waits for the permission to read.
async fn turn(reads: &Arc<Admission>, tenant: &Tenant) -> Permit {
    let mut turn = reads.enter(tenant.clone());
    turn.granted().await;
    turn
}
