//! Event stream of a run: first the journal's entries, then updates as they happen, whichever process drives the run.
//!
//! It subscribes before it reads, so that no update is missed between the two. An update is sent only if it follows
//! directly on the last event sent; everything else is read from the journal. The stream is pulled by its client. For a
//! slow client it buffers its last read and the contents of a [`Watch`]; a client that falls further behind is served
//! from the journal.
//!
//! Fragments of a reply are not in the journal. A stream that joined during a model call, or missed fragments of it, sends
//! what it lacks as one fragment from the reply so far. The positions of the fragments tell which of them it has sent.

use std::cmp::Ordering;
use std::collections::VecDeque;

use tokio_util::sync::CancellationToken;
use toolgate_core::lifecycle::{Delta, FragmentPosition};
use toolgate_core::run::{JournalEntry, Status};
use toolgate_ports::Update;
use toolgate_runner::RunnerError;

use super::RunEvent;
use super::encoder::EventEncoder;
use super::run_watch::{RunNotification, RunWatch};
use super::sent_reply::SentReply;

/// When a stream closes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// When the run ends.
    #[default]
    End,
    /// Also when the run is pending.
    Idle,
}

/// The next item of a stream.
pub enum StreamItem {
    Event(Box<RunEvent>),
    /// The server stops, and the run continues elsewhere or later.
    Draining,
}

/// The events of a run, as they are pulled.
pub struct Tail {
    watch: RunWatch,
    encoder: EventEncoder,
    until: Until,
    stopping: CancellationToken,
    /// Entries that are read but not yet sent.
    facts: VecDeque<JournalEntry>,
    /// Events of an entry that are not yet sent.
    events: VecDeque<RunEvent>,
    /// An update that is ahead of the last entry sent.
    ahead: Option<JournalEntry>,
    /// The length of the journal when the client was informed that the run is pending.
    rested_at: Option<u64>,
    /// What the client has of the current reply.
    sent: SentReply,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The store may hold entries that were not read yet.
    Behind,
    /// All entries are read; the stream waits for updates.
    Listening,
    Over,
}

impl Tail {
    pub(super) fn new(watch: RunWatch, encoder: EventEncoder, until: Until, stopping: CancellationToken) -> Self {
        let (facts, events, sent) = (VecDeque::new(), VecDeque::new(), SentReply::default());
        Self {
            watch,
            encoder,
            until,
            stopping,
            facts,
            events,
            ahead: None,
            rested_at: None,
            sent,
            state: State::Behind,
        }
    }

    /// Whether there is nothing to send: the client has received the end of the run, or all events of a run that is
    /// pending.
    pub async fn is_over(&mut self, status: Status) -> Result<bool, RunnerError> {
        self.read().await?;
        while self.events.is_empty()
            && let Some(fact) = self.facts.pop_front()
        {
            self.events = self.encoder.project(&fact);
        }
        let rests = self.until == Until::Idle && status == Status::Pending;
        Ok(self.events.is_empty() && (self.encoder.has_ended() || rests))
    }

    /// The next item; `None` when the stream is over. Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<StreamItem>, RunnerError> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(StreamItem::Event(event.into())));
            }
            if self.has_closed() {
                return Ok(None);
            }
            // Entries that were read are sent before the stream closes, so that a client does not reconnect for each
            // single one.
            if self.facts.is_empty() && self.stopping.is_cancelled() {
                self.state = State::Over;
                return Ok(Some(StreamItem::Draining));
            }
            self.advance().await?;
        }
    }

    /// The next event of the first `length` entries of the journal; `None` once the client has all of them.
    pub async fn next_up_to(&mut self, length: u64) -> Result<Option<RunEvent>, RunnerError> {
        let last = length.checked_sub(1);
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            if self.has_closed() || last.is_none_or(|last| self.encoder.has_sent(last)) {
                return Ok(None);
            }
            self.advance().await?;
        }
    }

    /// Whether no event follows those that are ready.
    fn has_closed(&self) -> bool {
        self.encoder.has_ended() || self.state == State::Over
    }

    /// Makes the next events ready: those of an entry that was read, of an update, or of a read of the journal.
    async fn advance(&mut self) -> Result<(), RunnerError> {
        if let Some(fact) = self.facts.pop_front() {
            self.events = self.encoder.project(&fact);
            return Ok(());
        }
        self.receive_updates();
        if self.ahead.is_some() {
            return self.fill_the_gap().await;
        }
        if self.events.is_empty() {
            match self.state {
                State::Behind => self.catch_up().await?,
                State::Listening => self.listen().await,
                State::Over => {}
            }
        }
        Ok(())
    }

    /// Takes the updates that have arrived, before anything is read.
    fn receive_updates(&mut self) {
        while self.ahead.is_none()
            && let Some(news) = self.watch.try_next()
        {
            let RunNotification::Update(update) = news else {
                self.state = State::Behind;
                return;
            };
            self.take(*update);
        }
    }

    fn take(&mut self, update: Update) {
        match update {
            Update::Delta { delta: Delta::Progress { call, progress }, .. } => {
                self.events.extend(self.encoder.progress(call, progress));
            }
            Update::Delta { delta, position: Some(position) } => self.take_fragment(delta, position),
            Update::Delta { position: None, .. } => {}
            Update::JournalEntry(fact) if self.encoder.has_sent(fact.seq) => {}
            Update::JournalEntry(fact) if fact.seq > self.encoder.next() => self.ahead = Some(fact),
            Update::JournalEntry(fact) => {
                self.events.extend(self.encoder.project(&fact));
                // Later updates arrive as well, so nothing has to be read.
                self.state = State::Listening;
            }
        }
    }

    /// Takes a fragment of a reply. Fragments of a reply that was read meanwhile are obsolete.
    fn take_fragment(&mut self, delta: Delta, position: FragmentPosition) {
        if position.call >= self.encoder.next() {
            // The start of the attempt was not read yet.
            self.state = State::Behind;
        }
        if self.encoder.streamed_call() != Some(position.call) {
            return;
        }
        match self.sent.compare(&delta, position) {
            Ordering::Less => {}
            Ordering::Equal => self.send_fragment(delta, position),
            Ordering::Greater => self.send_reply_so_far(),
        }
    }

    fn send_fragment(&mut self, delta: Delta, position: FragmentPosition) {
        self.sent.add(&delta, position);
        self.events.extend(self.encoder.fragment(delta, position));
    }

    /// Sends what the client lacks of the reply in progress. A reply that was completed meanwhile follows as a whole in
    /// its entry.
    fn send_reply_so_far(&mut self) {
        let call = self.encoder.streamed_call();
        let reply = self.watch.reply_so_far().filter(|reply| Some(reply.call) == call);
        for (delta, position) in reply.iter().flat_map(|reply| self.sent.missing(reply)).collect::<Vec<_>>() {
            self.send_fragment(delta, position);
        }
    }

    /// Reads the entries that are missing before an update, and no more: the watch has those after it.
    async fn fill_the_gap(&mut self) -> Result<(), RunnerError> {
        self.read().await?;
        if let Some(fact) = self.ahead.take() {
            self.facts.retain(|missed| missed.seq < fact.seq);
            self.facts.push_back(fact);
            self.state = State::Listening;
        }
        Ok(())
    }

    /// Reads the entries that were missed. If there are none and the run is pending, reports that, and keeps nothing of
    /// the run but its position: a run may be pending for days, with many clients.
    async fn catch_up(&mut self) -> Result<(), RunnerError> {
        let row = self.watch.row().await?;
        if row.purged_at.is_some() {
            self.state = State::Over;
            return Ok(());
        }
        if self.encoder.next().max(self.rested_at.unwrap_or_default()) < row.version {
            return self.read().await;
        }
        self.state = State::Listening;
        if row.status != Status::Pending {
            self.send_reply_so_far();
            return Ok(());
        }
        if self.rested_at != Some(row.version) {
            self.rested_at = Some(row.version);
            self.events.extend(self.encoder.rest(row.updated_at));
            if self.until == Until::Idle {
                self.state = State::Over;
            }
        }
        self.encoder.release();
        Ok(())
    }

    async fn read(&mut self) -> Result<(), RunnerError> {
        self.facts = self.watch.facts(self.encoder.next()).await?.into();
        Ok(())
    }

    /// Waits for an update, a poll, or the stop of the server.
    async fn listen(&mut self) {
        // Releases the buffers of the last read, which may not be needed again for long.
        self.facts.shrink_to_fit();
        self.events.shrink_to_fit();
        tokio::select! {
            news = self.watch.next() => match news {
                RunNotification::Update(update) => self.take(*update),
                RunNotification::Behind => self.state = State::Behind,
            },
            () = self.stopping.cancelled() => {}
        }
    }
}
