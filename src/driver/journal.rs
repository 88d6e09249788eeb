//! A run's journal in the hands of its driver: facts are folded as they are staged and appended in one commit before
//! anything is done that they intend.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::core::id::{NodeId, RunId};
use crate::core::run::{Ending, Event, Impossible, OpenTask, Recorded, Run, Step};
use crate::ports::{Append, AppendError, Clock, EventSink, RunRow, RunStore, StoreError, Update};

/// How many characters of the user's message a listing shows.
const TITLE_CHARS: usize = 80;

/// How long a store that cannot be used is given before each further try.
pub(super) const STORE_WAITS: [Duration; 3] =
    [Duration::from_millis(50), Duration::from_millis(200), Duration::from_millis(800)];

/// The store, and who we are to it.
#[derive(Clone)]
pub struct Store {
    /// Where journals live.
    pub runs: Arc<dyn RunStore>,
    /// This process.
    pub node: NodeId,
    /// How long an ownership lasts without renewal.
    pub lease: Duration,
}

/// Why a run could not be driven on. The run itself is as the journal says, and can be taken up again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DriveError {
    /// The store is at fault.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another process drives the run.
    #[error("the run is driven by another process ({0})")]
    Owned(NodeId),
    /// The journal holds something that cannot have happened.
    #[error("the journal of run `{run}` cannot be used: {reason}")]
    Corrupt {
        /// The run.
        run: RunId,
        /// What is wrong.
        reason: Impossible,
    },
}

/// What a commit came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Everything staged is in the journal.
    Committed,
    /// Somebody else wrote first. Their facts are folded in; of ours only what had already happened is kept, staged
    /// again. Nothing may be done on the strength of what was staged before: ask the run what is next.
    CaughtUp,
}

/// A run, its journal's length, and what is not appended yet.
pub struct Journal {
    id: RunId,
    run: Run,
    title: String,
    created_at: Timestamp,
    committed: u64,
    staged: Vec<Recorded>,
    /// The tasks that were under way when the run ended.
    orphans: Vec<OpenTask>,
    store: Store,
    clock: Arc<dyn Clock>,
    sinks: Arc<[Arc<dyn EventSink>]>,
}

impl Journal {
    /// Begins a new run. Nothing is written before [`Journal::commit`].
    pub fn begin(
        id: RunId,
        first: Event,
        store: Store,
        clock: Arc<dyn Clock>,
        sinks: Arc<[Arc<dyn EventSink>]>,
    ) -> Result<Self, DriveError> {
        let first = Recorded { seq: 0, at: clock.now(), event: first };
        let run = fold(&id, std::slice::from_ref(&first))?;
        let (title, created_at) = (title(&run), first.at);
        Ok(Self {
            id,
            run,
            title,
            created_at,
            committed: 0,
            staged: vec![first],
            orphans: Vec::new(),
            store,
            clock,
            sinks,
        })
    }

    /// Opens an existing journal; `None` if there is no such run. `history` is handed back for whoever wants to see it.
    pub async fn open(
        id: &RunId,
        store: Store,
        clock: Arc<dyn Clock>,
        sinks: Arc<[Arc<dyn EventSink>]>,
    ) -> Result<Option<(Self, Vec<Recorded>)>, DriveError> {
        let history = store.runs.load(id, 0).await?;
        let Some(first) = history.first() else { return Ok(None) };
        let run = fold(id, &history)?;
        let (id, title, created_at, committed) = (id.clone(), title(&run), first.at, run.length());
        let (staged, orphans) = (Vec::new(), Vec::new());
        Ok(Some((Self { id, run, title, created_at, committed, staged, orphans, store, clock, sinks }, history)))
    }

    /// A journal that somebody handed over, of which the store has the first `committed` facts. The others are staged as
    /// they were written. Nobody is told of them: that was done when they happened.
    pub fn handed_over(
        id: &RunId,
        mut history: Vec<Recorded>,
        committed: usize,
        store: Store,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, DriveError> {
        let run = fold(id, &history)?;
        let (title, created_at) = (title(&run), history.first().map_or_else(|| clock.now(), |first| first.at));
        let staged = history.split_off(committed.min(history.len()));
        let (id, committed, orphans, sinks) = (id.clone(), history.len() as u64, Vec::new(), Arc::from([]));
        Ok(Self { id, run, title, created_at, committed, staged, orphans, store, clock, sinks })
    }

    /// The run's id.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// The run, with everything that is staged.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// When the run began.
    pub fn created_at(&self) -> Timestamp {
        self.created_at
    }

    /// What was not answered in time by now, as facts: single debts, or a run that waited beyond its own deadline.
    pub fn late(&self) -> Vec<Event> {
        let now = self.clock.now();
        let is_over = self.deadline().is_some_and(|deadline| deadline <= now);
        match is_over && matches!(self.run.next(), Step::Wait(_)) {
            true => vec![Event::Ended { ending: Ending::Expired }],
            false => self.run.overdue(now),
        }
    }

    /// The run as it is by now, and the facts that make it so: nothing of them is staged. It is what an input is judged by.
    pub fn by_now(&self) -> Result<(Run, Vec<Event>), DriveError> {
        let (mut run, late) = (self.run.clone(), self.late());
        let now = self.clock.now();
        for event in &late {
            run.apply_at(event, now).map_err(|reason| DriveError::Corrupt { run: self.id.clone(), reason })?;
        }
        Ok((run, late))
    }

    /// Until when the run is to be over, if its limits say so.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.run.ends_by(self.created_at)
    }

    /// The tasks that nobody waits for any more since the run ended, as far as they are known here: servers go on with
    /// them until they are told.
    pub fn orphans(&self) -> &[OpenTask] {
        &self.orphans
    }

    /// Leaves it to somebody else to tell the watchers.
    pub fn mute(&mut self) {
        self.sinks = Arc::from([]);
    }

    /// How much of the journal is written.
    pub fn committed(&self) -> u64 {
        self.committed
    }

    /// Folds a fact and keeps it for the next commit.
    pub fn stage(&mut self, event: Event) -> Result<(), DriveError> {
        let seq = self.run.length();
        if matches!(event, Event::Ended { .. }) {
            self.orphans = self.run.open_tasks();
        }
        let at = self.clock.now();
        self.run.apply_at(&event, at).map_err(|reason| DriveError::Corrupt { run: self.id.clone(), reason })?;
        self.staged.push(Recorded { seq, at, event });
        Ok(())
    }

    /// Stages several facts in order.
    pub fn stage_all(&mut self, events: Vec<Event>) -> Result<(), DriveError> {
        events.into_iter().try_for_each(|event| self.stage(event))
    }

    /// What is not appended yet.
    pub fn staged(&self) -> &[Recorded] {
        &self.staged
    }

    /// The commit by which an execution begins: it makes the run ours. Only then are watchers told, of `history` first,
    /// and then of what is new in it.
    pub async fn take(&mut self, history: &[Recorded]) -> Result<Progress, DriveError> {
        let sinks = std::mem::replace(&mut self.sinks, Arc::from([]));
        let mut fresh = self.staged.clone();
        fresh.retain(|recorded| recorded.seq >= history.len() as u64);
        let progress = self.commit().await;
        self.sinks = sinks;
        if matches!(progress, Ok(Progress::Committed)) {
            self.sinks.iter().for_each(|sink| sink.took_up(&self.id, history));
            self.announce(fresh);
        }
        progress
    }

    /// Appends what is staged, as the run's owner. Durable when it returns.
    pub async fn commit(&mut self) -> Result<Progress, DriveError> {
        let owner = Some(self.store.node.clone());
        self.commit_as(owner).await
    }

    /// Appends what is staged without taking the run from whoever drives it.
    pub async fn post(&mut self) -> Result<Progress, DriveError> {
        self.commit_as(None).await
    }

    async fn commit_as(&mut self, owner: Option<NodeId>) -> Result<Progress, DriveError> {
        if self.staged.is_empty() {
            return Ok(Progress::Committed);
        }
        let append = Append {
            run: self.id.clone(),
            at: self.committed,
            events: self.staged.clone(),
            row: self.row(),
            owner,
            lease: self.store.lease,
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
            Err(AppendError::Store(error)) => Err(error.into()),
        }
    }

    fn written(&mut self) -> Progress {
        let written = std::mem::take(&mut self.staged);
        self.committed = self.run.length();
        self.announce(written);
        Progress::Committed
    }

    /// Whether the place is taken by the very facts that we want to write: a store may write, fail to say so, and be asked
    /// again.
    async fn is_written(&self) -> Result<bool, StoreError> {
        Ok(self.store.runs.load(&self.id, self.committed).await? == self.staged)
    }

    /// Appends. What has happened in the world would be lost with this process, so a store that cannot be used just now is
    /// given time. Says whether it was asked more than once: only then may what stands there be our own.
    async fn append(&self, append: Append) -> (Result<(), AppendError>, bool) {
        let runs = &self.store.runs;
        let waits: &[Duration] = match self.staged.iter().any(|recorded| source(&recorded.event) == Source::Answer) {
            true => &STORE_WAITS,
            false => &[],
        };
        for (number, wait) in waits.iter().enumerate() {
            match runs.append(append.clone()).await {
                Err(AppendError::Store(StoreError::Unavailable(_))) => self.clock.sleep(*wait).await,
                done => return (done, number > 0),
            }
        }
        (runs.append(append).await, !waits.is_empty())
    }

    /// Folds what others wrote and stages again what had already happened and still fits (law 1: the rest was
    /// overtaken, and what is intended is decided anew).
    pub async fn catch_up(&mut self) -> Result<(), DriveError> {
        let history = self.store.runs.load(&self.id, 0).await?;
        let ours = std::mem::replace(&mut self.run, fold(&self.id, &history)?);
        let open = if ours.ending().is_some() { std::mem::take(&mut self.orphans) } else { ours.open_tasks() };
        self.orphans = if self.run.ending().is_some() { open } else { Vec::new() };
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

    fn announce(&self, written: Vec<Recorded>) {
        for recorded in written {
            let update = Update::Recorded(recorded);
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
            tenant: started.tenant.clone(),
            status: self.run.status(),
            version: self.run.length(),
            title: self.title.clone(),
            created_at: self.created_at,
            updated_at,
            owes: self.run.owes(self.created_at),
            purged_at: None,
        }
    }
}

/// What a listing shows of the user's message. Fixed by the first fact.
fn title(run: &Run) -> String {
    run.started().input.text().chars().take(TITLE_CHARS).collect()
}

/// Folds a stored journal, naming the run when it cannot be.
pub(crate) fn fold(id: &RunId, history: &[Recorded]) -> Result<Run, DriveError> {
    let corrupt = |reason| DriveError::Corrupt { run: id.clone(), reason };
    let run = Run::replay_recorded(history).map_err(corrupt)?;
    run.ok_or_else(|| corrupt(Impossible::NotTheBeginning { event: "nothing", seq: 0 }))
}

/// Where a fact comes from: it says what is lost with one that cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// An answer to something that we sent, which cannot be had again.
    Answer,
    /// Something else that the world did.
    World,
    /// The journal and the time: what is to be done, or what follows from them, is decided anew.
    Journal,
}

fn source(event: &Event) -> Source {
    match event {
        Event::ModelReplied { .. } | Event::ModelFailed { .. } => Source::Answer,
        Event::CallCompleted { .. } | Event::InputRequired { .. } | Event::TaskStarted { .. } => Source::Answer,
        Event::InputRequested { .. } => Source::World,
        Event::InputGiven { .. } | Event::ApprovalDecided { .. } | Event::QuestionAnswered { .. } => Source::World,
        Event::Extended { .. } | Event::MessageAdded { .. } | Event::Started(_) => Source::World,
        // That nobody answered in time is worked out anew: somebody may have answered, or given more time.
        Event::Expired { .. }
        | Event::Resumed { .. }
        | Event::ToolsListed { .. }
        | Event::ApprovalsResolved { .. }
        | Event::ModelCalled { .. }
        | Event::OutputValidated { .. }
        | Event::TierSelected { .. }
        | Event::CallChecked { .. }
        | Event::CallDrifted { .. }
        | Event::CallsStarted { .. }
        | Event::Ended { .. } => Source::Journal,
    }
}
