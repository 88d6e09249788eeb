//! Journal of a run as its driver uses it: events are folded when they are staged, and appended in one commit before
//! the effects that they intend.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Map;
use toolgate_core::chat::Message;
use toolgate_core::id::{NodeId, RunId, Tenant};
use toolgate_core::redact::Secrets;
use toolgate_core::run::{Ending, Event, InvalidEvent, JournalEntry, OpenTask, Run, Segment, Started, Trigger};
use toolgate_core::tool::is_deceptive;
use toolgate_ports::{
    Append, AppendError, Clock, EventSink, QuotaExceeded, RunRow, RunStore, SessionClaim, StoreError, Update,
};

use crate::segments::SegmentCache;

/// The length of the user's message in a listing, in characters.
const TITLE_CHARS: usize = 80;

/// The delays before further attempts at an unavailable store.
pub(super) const STORE_WAITS: [Duration; 3] =
    [Duration::from_millis(50), Duration::from_millis(200), Duration::from_millis(800)];

/// The run store, with the identity of this process.
#[derive(Clone)]
pub struct Store {
    pub runs: Arc<dyn RunStore>,
    pub node: NodeId,
    /// The duration of a lease without renewal.
    pub lease: Duration,
    /// Whether this process exports the spans of its runs.
    pub exports_spans: bool,
    /// The known secrets, which no event contains.
    pub secrets: Secrets,
    /// The segments that this process read.
    pub segments: Arc<SegmentCache>,
}

impl Store {
    /// The segments of the conversation that ends with this run, oldest first; and whether the last run has one.
    pub async fn conversation(&self, tenant: &Tenant, last: &RunId) -> Result<(Vec<Segment>, bool), StoreError> {
        self.segments.conversation(&*self.runs, tenant, last).await
    }

    /// The first event of a journal with the conversation before the run. Other events are unchanged.
    pub async fn resolved(&self, first: &Event) -> Result<Event, StoreError> {
        let Event::Started(started) = first else { return Ok(first.clone()) };
        let Some(predecessor) = started.predecessor.as_ref().filter(|known| known.conversation.is_none()) else {
            return Ok(first.clone());
        };
        let (segments, _) = self.conversation(&started.tenant, &predecessor.run).await?;
        Ok(first.with_conversation(Some(Segment::join(segments).into())))
    }
}

/// The reason why a run could not be driven. The run itself is as the journal states, and can be resumed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DriveError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another process drives the run.
    #[error("another process ({0}) executes the run")]
    Owned(NodeId),
    /// The session of a new run is at another version, or its head is live.
    #[error("the session changed")]
    SessionChanged,
    /// The tenant or the caller of a new run has used up a quota.
    #[error(transparent)]
    OverQuota(Box<QuotaExceeded>),
    /// The journal holds an impossible event.
    #[error("the journal of run `{run}` cannot be used: {reason}")]
    Corrupt { run: RunId, reason: InvalidEvent },
}

/// The result of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Everything staged is in the journal.
    Committed,
    /// Another writer was first. Their events are folded in; of ours, only those that had already happened are kept,
    /// staged again. Discard every intent that was staged before: ask the run for the next step.
    CaughtUp,
}

/// A run, its journal's length, and the events that are not appended yet.
pub struct Journal {
    id: RunId,
    run: Run,
    title: String,
    created_at: Timestamp,
    committed: u64,
    staged: Vec<JournalEntry>,
    /// The claim of the run's session, until the run's first commit.
    claim: Option<Box<SessionClaim>>,
    /// The open tasks of the run when it ended.
    orphans: Vec<OpenTask>,
    store: Store,
    clock: Arc<dyn Clock>,
    sinks: Arc<[Arc<dyn EventSink>]>,
}

impl Journal {
    /// Begins a new run, which claims its session if it is the next run of one. Nothing is written before
    /// [`Journal::commit`].
    pub fn begin(
        id: RunId,
        first: Event,
        claim: Option<SessionClaim>,
        store: Store,
        clock: Arc<dyn Clock>,
        sinks: Arc<[Arc<dyn EventSink>]>,
    ) -> Result<Self, DriveError> {
        let first = JournalEntry { seq: 0, at: clock.now(), event: first.without_secrets(&store.secrets) };
        let run = fold(&id, std::slice::from_ref(&first))?;
        let (title, created_at) = (title(std::slice::from_ref(&first)), first.at);
        Ok(Self {
            id,
            run,
            title,
            created_at,
            committed: 0,
            staged: vec![first],
            claim: claim.map(Box::new),
            orphans: Vec::new(),
            store,
            clock,
            sinks,
        })
    }

    /// Opens an existing journal and reads the conversation before it; `None` if there is no such run. Returns `history`
    /// too.
    pub async fn open(
        id: &RunId,
        store: Store,
        clock: Arc<dyn Clock>,
        sinks: Arc<[Arc<dyn EventSink>]>,
    ) -> Result<Option<(Self, Vec<JournalEntry>)>, DriveError> {
        let mut history = store.runs.load(id, 0).await?;
        let Some(first) = history.first_mut() else { return Ok(None) };
        first.event = store.resolved(&first.event).await?;
        let created_at = first.at;
        let run = fold(id, &history)?;
        let (id, title, committed) = (id.clone(), title(&history), run.length());
        let (staged, claim, orphans) = (Vec::new(), None, Vec::new());
        Ok(Some((Self { id, run, title, created_at, committed, staged, claim, orphans, store, clock, sinks }, history)))
    }

    /// A journal from another driver, whose first `committed` events are in the store, with the conversation before it.
    /// The others are staged as they were written. They are not announced to sinks: that was done when they happened.
    pub fn handed_over(
        id: &RunId,
        mut history: Vec<JournalEntry>,
        committed: usize,
        claim: Option<SessionClaim>,
        store: Store,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, DriveError> {
        let run = fold(id, &history)?;
        let (title, created_at) = (title(&history), history.first().map_or_else(|| clock.now(), |first| first.at));
        let staged = history.split_off(committed.min(history.len()));
        let (id, committed, orphans, sinks) = (id.clone(), history.len() as u64, Vec::new(), Arc::from([]));
        let claim = claim.map(Box::new);
        Ok(Self { id, run, title, created_at, committed, staged, claim, orphans, store, clock, sinks })
    }

    /// The run's id.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// The run, with everything that is staged.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The run, without its journal.
    pub fn into_run(self) -> Run {
        self.run
    }

    /// When the run began.
    pub fn created_at(&self) -> Timestamp {
        self.created_at
    }

    /// The events for everything that has expired: single pending items, or a run that waited beyond its own deadline.
    pub fn expired_items(&self) -> Vec<Event> {
        let now = self.clock.now();
        let is_over = self.deadline().is_some_and(|deadline| deadline <= now);
        match is_over && self.run.waits() {
            true => vec![Event::Ended { ending: Ending::Expired }],
            false => self.run.overdue(now),
        }
    }

    /// The run as of now, and the events that make it so; none of them is staged. Inputs are checked against it.
    pub fn at_now(&self) -> Result<(Run, Vec<Event>), DriveError> {
        let (mut run, late) = (self.run.clone(), self.expired_items());
        let now = self.clock.now();
        for event in &late {
            run.apply_at(event, now).map_err(|reason| DriveError::Corrupt { run: self.id.clone(), reason })?;
        }
        Ok((run, late))
    }

    /// The run's deadline, if its limits have one.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.run.ends_by(self.created_at)
    }

    /// The orphaned tasks of a run that ended or compensates, as far as they are known here: servers continue them until
    /// they are cancelled.
    pub fn orphans(&self) -> &[OpenTask] {
        &self.orphans
    }

    /// Stops announcing events to the sinks, because another component does.
    pub fn disable_sinks(&mut self) {
        self.sinks = Arc::from([]);
    }

    /// The number of events in the store.
    pub fn committed(&self) -> u64 {
        self.committed
    }

    /// Folds an event and stages it for the next commit.
    pub fn stage(&mut self, event: Event) -> Result<(), DriveError> {
        // Appended with the next intent, in one commit: a crash before it loses only work that can be repeated
        // (decision 0001).
        let seq = self.run.length();
        if matches!(event, Event::Ended { .. } | Event::CompensationStarted { .. }) {
            self.orphans.extend(self.run.open_tasks());
        }
        let (at, event) = (self.clock.now(), event.without_secrets(&self.store.secrets));
        self.run.apply_at(&event, at).map_err(|reason| DriveError::Corrupt { run: self.id.clone(), reason })?;
        let entry = JournalEntry { seq, at, event };
        if self.committed == 0
            && let Some(message) = fork_message(&self.run.started().trigger, &entry)
        {
            self.title = title_of(message);
        }
        self.staged.push(entry);
        Ok(())
    }

    /// Stages the ending, or the start of the compensation that comes before it.
    pub fn end(&mut self, ending: Ending) -> Result<(), DriveError> {
        self.stage(self.run.ending_event(ending))
    }

    /// Stages several events in order.
    pub fn stage_all(&mut self, events: Vec<Event>) -> Result<(), DriveError> {
        events.into_iter().try_for_each(|event| self.stage(event))
    }

    /// The events that are not appended yet.
    pub fn staged(&self) -> &[JournalEntry] {
        &self.staged
    }

    /// Claims the run: the commit with which an execution begins. Only then sinks are notified, of `history` first, and
    /// then of its new events.
    pub async fn claim_and_commit(&mut self, history: &[JournalEntry]) -> Result<Progress, DriveError> {
        let sinks = std::mem::replace(&mut self.sinks, Arc::from([]));
        let mut fresh = self.staged.clone();
        fresh.retain(|recorded| recorded.seq >= history.len() as u64);
        let progress = self.commit_as(Some(self.store.node.clone()), history.len() as u64).await;
        self.sinks = sinks;
        if matches!(progress, Ok(Progress::Committed)) {
            self.sinks.iter().for_each(|sink| sink.claimed(&self.id, history));
            self.announce(fresh);
        }
        progress
    }

    /// Appends the staged events, as the run's owner. Durable on return.
    pub async fn commit(&mut self) -> Result<Progress, DriveError> {
        let owner = Some(self.store.node.clone());
        self.commit_as(owner, 0).await
    }

    /// Appends the staged events without claiming the run from its driver.
    pub async fn commit_unowned(&mut self) -> Result<Progress, DriveError> {
        // A run from elsewhere: spans of its events were exported there.
        self.commit_as(None, self.run.length()).await
    }

    /// Of a new run, the spans of the first `exported` events are no concern of this process.
    async fn commit_as(&mut self, owner: Option<NodeId>, exported: u64) -> Result<Progress, DriveError> {
        if self.staged.is_empty() {
            return Ok(Progress::Committed);
        }
        // A new run is claimed by the process that executes it.
        let is_import = owner.is_none() && self.committed == 0;
        let append = Append {
            is_import,
            run: self.id.clone(),
            at: self.committed,
            events: self.staged.clone(),
            row: self.row(),
            owner,
            lease: self.store.lease,
            session: self.claim.clone(),
            spans_sent: (self.committed == 0 && self.store.exports_spans).then_some(exported),
        };
        let (appended, is_retried) = self.append(append).await;
        match appended {
            Ok(()) => Ok(self.written()),
            Err(AppendError::Conflict { .. }) if is_retried && self.is_written().await? => Ok(self.written()),
            Err(AppendError::Conflict { .. }) => {
                self.catch_up().await?;
                Ok(Progress::CaughtUp)
            }
            Err(AppendError::Owned(node)) => Err(DriveError::Owned(node)),
            Err(AppendError::SessionChanged { .. }) => Err(DriveError::SessionChanged),
            Err(AppendError::OverQuota(over)) => {
                let Started { tenant, by, .. } = &**self.run.started();
                tracing::warn!(run = %self.id, %tenant, caller = by.as_deref(), reason = %over, "run refused by a quota");
                Err(DriveError::OverQuota(over))
            }
            Err(AppendError::Store(error)) => Err(error.into()),
        }
    }

    fn written(&mut self) -> Progress {
        let written = std::mem::take(&mut self.staged);
        self.claim = None;
        self.committed = self.run.length();
        self.announce(written);
        Progress::Committed
    }

    /// Whether the position already holds exactly the events that we want to write: a store may write, fail to report
    /// it, and be asked again.
    async fn is_written(&self) -> Result<bool, StoreError> {
        Ok(self.store.runs.load(&self.id, self.committed).await? == self.staged)
    }

    /// Appends. A staged result would be lost with this process, so an unavailable store is retried. Returns whether it
    /// was asked more than once: only then the events at the position may be our own.
    async fn append(&self, append: Append) -> (Result<(), AppendError>, bool) {
        let runs = &self.store.runs;
        let waits: &[Duration] = match self.staged.iter().any(|recorded| source(&recorded.event) == Source::Answer) {
            true => &STORE_WAITS,
            false => &[],
        };
        for (number, wait) in waits.iter().enumerate() {
            match runs.append(append.clone()).await {
                Err(AppendError::Store(StoreError::Unavailable(_) | StoreError::Full(_))) => {
                    self.clock.sleep(*wait).await
                }
                done => return (done, number > 0),
            }
        }
        (runs.append(append).await, !waits.is_empty())
    }

    /// Folds the events of other writers and stages again what had already happened and still fits. The other staged
    /// events are dropped (law 1), and the run decides again about what they intended.
    pub async fn catch_up(&mut self) -> Result<(), DriveError> {
        let mut history = self.store.runs.load(&self.id, 0).await?;
        if let Some(first) = history.first_mut() {
            first.event = first.event.with_conversation(self.run.started().prior_conversation().cloned());
        }
        let ours = std::mem::replace(&mut self.run, fold(&self.id, &history)?);
        let stops = |run: &Run| (run.ending().is_some(), run.is_compensating());
        let is_stopped = ours.ending().is_none() && stops(&ours) != stops(&self.run);
        let orphans = std::mem::take(&mut self.orphans);
        if stops(&self.run) != (false, false) {
            self.orphans =
                orphans.into_iter().chain(is_stopped.then(|| ours.open_tasks()).into_iter().flatten()).collect();
        }
        let before = std::mem::replace(&mut self.committed, self.run.length());
        self.announce(history.into_iter().filter(|recorded| recorded.seq >= before).collect());
        for mut recorded in std::mem::take(&mut self.staged) {
            recorded.seq = self.run.length();
            if source(&recorded.event) != Source::Journal && self.run.apply_at(&recorded.event, recorded.at).is_ok() {
                self.staged.push(recorded);
            }
        }
        Ok(())
    }

    fn announce(&self, written: Vec<JournalEntry>) {
        for recorded in written {
            let update = Update::JournalEntry(recorded);
            self.sinks.iter().for_each(|sink| sink.observe(&self.id, &update));
        }
    }

    fn row(&self) -> RunRow {
        let started = self.run.started();
        let updated_at = self.staged.last().map_or(self.created_at, |last| last.at);
        RunRow {
            id: self.id.clone(),
            agent: started.spec.agent.clone(),
            session: started.session.clone(),
            predecessor: started.predecessor.as_ref().map(|predecessor| predecessor.run.clone()),
            trigger: Some(started.trigger.kind()),
            schedule: started.trigger.schedule().map(str::to_owned),
            tenant: started.tenant.clone(),
            principal: started.spec.principal.clone(),
            metadata: if self.committed == 0 { started.metadata.clone() } else { Map::new() },
            status: self.run.status(),
            version: self.run.length(),
            title: self.title.clone(),
            created_at: self.created_at,
            updated_at,
            pending_counts: self.run.pending_counts(self.created_at),
            usage: self.run.budget().usage,
            result: Some(self.run.result()),
            is_interrupted: false,
            purged_at: None,
        }
    }
}

/// The title of a run in listings: the beginning of the user's message; that of a fork, if it has one. Later messages do not
/// change it: the session of the run has the same title, which is deleted with the run.
fn title(history: &[JournalEntry]) -> String {
    let Some(Event::Started(started)) = history.first().map(|first| &first.event) else { return String::new() };
    let own = history.iter().find_map(|entry| fork_message(&started.trigger, entry));
    title_of(own.unwrap_or(&started.input))
}

/// The message with which a fork begins its own part, after the fact that begins its execution.
fn fork_message<'e>(trigger: &Trigger, entry: &'e JournalEntry) -> Option<&'e Message> {
    let Trigger::Fork { at, .. } = trigger else { return None };
    let Event::MessageAdded { message } = &entry.event else { return None };
    (entry.seq == at + 1).then_some(message)
}

/// The title that a user's message gives a run or a session: its beginning, in one line, without characters that are
/// invisible or change the direction of text.
pub fn title_of(message: &Message) -> String {
    let in_one_line = |c: char| if c.is_control() { ' ' } else { c };
    message.text().chars().map(in_one_line).filter(|c| !is_deceptive(*c)).take(TITLE_CHARS).collect()
}

/// Folds a stored journal; the error names the run.
pub fn fold(id: &RunId, history: &[JournalEntry]) -> Result<Run, DriveError> {
    let corrupt = |reason| DriveError::Corrupt { run: id.clone(), reason };
    let run = Run::replay_recorded(history).map_err(corrupt)?;
    run.ok_or_else(|| corrupt(InvalidEvent::NotTheBeginning { event: "nothing", seq: 0 }))
}

/// The source of an event: it determines what is lost if the event cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// A reply to our request, which cannot be obtained again.
    Answer,
    /// Any other event from outside.
    World,
    /// The journal and the time: an intent, or a consequence of them, which is computed again.
    Journal,
}

fn source(event: &Event) -> Source {
    match event {
        Event::ModelReplied { .. } | Event::ModelFailed { .. } => Source::Answer,
        Event::CompactionCompleted { .. } | Event::CompactionFailed { .. } => Source::Answer,
        Event::CallCompleted { .. } | Event::InputRequired { .. } | Event::TaskStarted { .. } => Source::Answer,
        Event::InputRequested { .. } => Source::World,
        // Expiry is computed again: there may be an answer or an extension now.
        _ if event.is_expiry() => Source::Journal,
        Event::InputGiven { .. } | Event::ApprovalDecided { .. } | Event::QuestionAnswered { .. } => Source::World,
        Event::Extended { .. } | Event::MessageAdded { .. } | Event::Started(_) => Source::World,
        Event::Paused { .. } | Event::Unpaused { .. } => Source::World,
        Event::Admitted | Event::Waited { .. } => Source::World,
        Event::Expired { .. }
        | Event::Resumed { .. }
        | Event::Queued
        | Event::Interrupted { .. }
        | Event::ToolsListed { .. }
        | Event::ApprovalsResolved { .. }
        | Event::ModelCallRefused { .. }
        | Event::ModelCalled { .. }
        | Event::CompactionStarted { .. }
        | Event::OutputValidated { .. }
        | Event::TierSelected { .. }
        | Event::CallChecked { .. }
        | Event::CallDrifted { .. }
        | Event::CallsStarted { .. }
        | Event::CompensationStarted { .. }
        | Event::Ended { .. } => Source::Journal,
    }
}
