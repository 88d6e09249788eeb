//! The front door of the library: start runs, resume them, cancel, fork and watch them.
//!
//! An [`AgentRunner`] holds the ports and the agents. It owns every task it starts and waits for them in
//! [`AgentRunner::close`]. A caller that drops an operation changes nothing for its run: what was begun is completed.

mod attend;
mod blocked;
mod builder;
mod calling;
mod completion;
mod context;
mod drain;
mod drive;
mod driving;
#[cfg(feature = "envelope")]
pub mod envelope;
mod error;
mod fork;
mod given;
mod injected;
mod lease;
mod overdue;
mod purge;
mod recorded;
mod renewal;
mod report;
mod request;
mod standing;
mod system;
mod tasks;
mod turnstile;
mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use tokio_util::task::TaskTracker;

pub use attend::Attendance;
pub use builder::{Builder, Sampler};
pub use calling::{Called, called};
pub use context::Transcript;
pub use drain::DrainTimes;
pub use drive::Execution;
pub use error::RunnerError;
#[cfg(test)]
pub(crate) use error::every_error;
pub use fork::Fork;
pub use injected::Injected;
pub use overdue::{Late, Overdue};
pub use report::Report;
pub use request::{Request, ResultFor};
pub use standing::NewGrant;
pub use system::{SystemClock, UuidIds};
pub use tasks::{Polled, TaskSaid};
pub use turnstile::{Activity, Capacity};
pub(crate) use turnstile::{Turn, Turnstile};
pub use watch::{Lookout, News, Watch};

pub use crate::core::run::Resume;
pub use crate::core::tool::result::ResultCheck;
pub use crate::driver::{Agent, ElicitationHold, Fallback, ServerResults};

use crate::core::id::{AgentName, CallId, RunId};
use crate::core::run::{Channel, Event, Input, Recorded, Run, Status};
use crate::core::tool::{Pins, Toolset};
use crate::core::trace::Trace;
use crate::driver::{DriveError, Journal, Ports, Progress};
use crate::ports::{BlobStore, EventSink, Ids, RunFilter, RunRow, StoreError};
use blocked::BlockedRuns;
use drain::Drain;
use driving::Driving;
use injected::Injections;
use watch::Hub;

/// Runs agents. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct AgentRunner {
    inner: Arc<Inner>,
}

struct Inner {
    ports: Ports,
    ids: Arc<dyn Ids>,
    sampler: Sampler,
    agents: BTreeMap<AgentName, Arc<Agent>>,
    hub: Arc<Hub>,
    driving: Arc<Driving>,
    injections: Arc<Injections>,
    blocked: Arc<BlockedRuns>,
    turnstile: Arc<Turnstile>,
    drain: Arc<Drain>,
    #[cfg(feature = "envelope")]
    envelopes: Option<Arc<envelope::EnvelopeKeys>>,
    tasks: TaskTracker,
}

impl AgentRunner {
    /// A runner to be put together.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Starts a run and waits until it rests: it is over, or owed something.
    pub async fn execute(&self, request: Request) -> Result<Report, RunnerError> {
        self.start(request).await?.rest().await
    }

    /// Answers what a run is owed, drives it on, and waits until it rests again.
    pub async fn resume(&self, run: &RunId, resume: Resume) -> Result<Report, RunnerError> {
        self.take_up(run, Input::Resume(resume), None).await?.rest().await
    }

    /// Says something to a run. A run that is under way hears it at its next turn; one that is pending keeps it.
    pub async fn message(&self, run: &RunId, text: &str) -> Result<Report, RunnerError> {
        let message = crate::core::chat::Message::user(text);
        self.post(run, &Input::Message(message)).await
    }

    /// Ends a run, wherever it is driven. Cancelling a cancelled run changes nothing.
    pub async fn cancel(&self, run: &RunId, reason: Option<String>) -> Result<Report, RunnerError> {
        self.post(run, &Input::Cancel { reason, expected_version: None }).await
    }

    /// The same, unless the run has become another one than at that version, which its sender saw: that is
    /// [refused](crate::core::run::Refusal::Stale).
    pub async fn cancel_as_seen(
        &self,
        run: &RunId,
        reason: Option<String>,
        version: u64,
    ) -> Result<Report, RunnerError> {
        self.post(run, &Input::Cancel { reason, expected_version: Some(version) }).await
    }

    /// Gives more time for something that a run is owed by a deadline. Giving the same time twice is giving it once.
    pub async fn extend(
        &self,
        run: &RunId,
        call: CallId,
        until: Timestamp,
        by: impl Into<String>,
        via: Channel,
    ) -> Result<Report, RunnerError> {
        self.post(run, &Input::Extend { call, until, by: by.into(), via }).await
    }

    /// An id for a run that is to be started: whoever knows it before can ask afterwards whether the run exists.
    pub fn fresh_id(&self) -> RunId {
        self.inner.ids.run_id()
    }

    /// Where a run stands.
    pub async fn report(&self, run: &RunId) -> Result<Report, RunnerError> {
        Ok(Report::of(run.clone(), &self.load(run).await?))
    }

    /// A run as its journal tells it.
    pub async fn load(&self, run: &RunId) -> Result<Run, RunnerError> {
        Ok(crate::driver::fold(run, &self.journal(run).await?)?)
    }

    /// The journal of a run.
    pub async fn journal(&self, run: &RunId) -> Result<Vec<Recorded>, RunnerError> {
        let journal = self.inner.ports.store.runs.load(run, 0).await.map_err(DriveError::from)?;
        if !journal.is_empty() {
            return Ok(journal);
        }
        match self.row(run).await?.and_then(|row| row.purged_at) {
            Some(at) => Err(RunnerError::Purged { run: run.clone(), at }),
            None => Err(RunnerError::NoSuchRun(run.clone())),
        }
    }

    /// Where media that models produced are kept, if anywhere: the handles in an output lead there.
    pub fn blobs(&self) -> Option<&Arc<dyn BlobStore>> {
        self.inner.ports.blobs.as_ref()
    }

    /// Runs, newest first.
    pub async fn list(&self, filter: &RunFilter) -> Result<Vec<RunRow>, RunnerError> {
        Ok(self.inner.ports.store.runs.list(filter).await.map_err(DriveError::from)?)
    }

    /// What happens in a run from now on, in this process. Facts that were written before are in the journal.
    pub fn watch(&self, run: &RunId) -> Watch {
        self.inner.hub.watch(run)
    }

    /// The tools an agent would be offered now, with the policy's verdict on each.
    pub async fn tools(&self, agent: &AgentName) -> Result<Toolset, RunnerError> {
        let agent = self.agent(agent)?;
        let spec = agent.spec();
        let context = self.new_trace().context("tools/list");
        let offers = match spec.servers.is_empty() {
            true => Vec::new(),
            false => self.inner.ports.servers.list(&spec.servers, &context).await,
        };
        let inputs = &self.inner.ports.inputs;
        let rules = agent.toolset_rules(&spec, &Pins::new());
        Ok(Toolset::assemble(&spec.external_tools, &offers, &rules).without(|tool| inputs.accepts(tool).err()))
    }

    /// The configured agents.
    pub fn agents(&self) -> impl Iterator<Item = &Arc<Agent>> {
        self.inner.agents.values()
    }

    /// How long an ownership lasts without renewal.
    pub fn lease(&self) -> std::time::Duration {
        self.inner.ports.store.lease
    }

    /// Whether the store can be read.
    ///
    /// # Errors
    /// Why not.
    pub async fn check_read(&self) -> Result<(), StoreError> {
        self.inner.ports.store.runs.check_read().await
    }

    /// Whether the store can be written; known from the last seconds, or from a small write.
    ///
    /// # Errors
    /// Why not.
    pub async fn check_write(&self) -> Result<(), StoreError> {
        self.inner.ports.store.runs.check_write().await
    }

    /// How many runs are driven here, and how many wait for their turn.
    pub fn activity(&self) -> Activity {
        self.inner.turnstile.activity()
    }

    /// Stops taking up runs and waits for those under way to rest.
    pub async fn close(&self) {
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
    }

    fn agent(&self, name: &AgentName) -> Result<Arc<Agent>, RunnerError> {
        self.inner.agents.get(name).cloned().ok_or_else(|| RunnerError::NoSuchAgent {
            name: name.clone(),
            known: self.inner.agents.keys().cloned().collect(),
        })
    }

    fn new_trace(&self) -> Trace {
        let id = self.inner.ids.trace_id();
        Trace::new(id, (self.inner.sampler)(&id, None))
    }

    /// Writes an input into a run's journal without driving the run.
    async fn post(&self, run: &RunId, input: &Input) -> Result<Report, RunnerError> {
        loop {
            let journal = self.open_unless_over(run).await?.0;
            // What came too late is refused. That it was late is written by the process that drives the run on.
            let (by_now, _) = journal.by_now()?;
            let events = self.received(&journal, &by_now, input)?;
            let (journal, progress) = self.write_beside(journal, events).await?;
            if progress == Progress::Committed {
                return Ok(Report::of(run.clone(), journal.run()));
            }
        }
    }

    /// Opens a run, and writes first what nobody was awake to write, if it ends the run. What else was not answered in time
    /// needs somebody to drive the run on, and is written only by whoever does, or if the run still waits afterwards.
    async fn open_unless_over(&self, run: &RunId) -> Result<(Journal, Vec<Recorded>), RunnerError> {
        loop {
            let (journal, history) = self.open(run).await?;
            let (by_now, late) = journal.by_now()?;
            if late.is_empty() || by_now.ending().is_none() {
                return Ok((journal, history));
            }
            self.write_beside(journal, late).await?;
        }
    }

    /// Writes facts into the journal of a run that the writer does not drive, and does what follows from them, as one unit.
    /// The journal comes back as it is afterwards.
    async fn write_beside(&self, mut journal: Journal, facts: Vec<Event>) -> Result<(Journal, Progress), RunnerError> {
        let runner = self.clone();
        let unit = async move {
            let progress = runner.append_beside(&mut journal, facts).await?;
            Ok((journal, progress))
        };
        self.to_completion(unit).await?
    }

    async fn append_beside(&self, journal: &mut Journal, facts: Vec<Event>) -> Result<Progress, RunnerError> {
        let run = journal.id().clone();
        // A driver that is at work tells the watchers, in order; one that is about to rest looks no more.
        let driven = self.inner.driving.driven(&run);
        let status = journal.run().status();
        let is_at_work = driven.is_some() && status == Status::Running;
        let rests = driven.is_none() && status == Status::Pending;
        let written_before = journal.committed();
        if is_at_work {
            journal.mute();
        }
        journal.stage_all(facts)?;
        if journal.post().await? == Progress::CaughtUp {
            return Ok(Progress::CaughtUp);
        }
        if let Some(driven) = driven {
            driven.hint.wake();
        }
        if rests {
            self.tell_of_rest(&run, written_before, journal.committed()).await;
        }
        if !is_at_work && journal.run().ending().is_some() {
            self.stop_tasks(&run, &self.servers_of(&run), journal.orphans().to_vec());
            self.forget_if_over(journal);
            self.inner.hub.laid_down(&run, self.inner.ports.clock.now());
        }
        Ok(Progress::Committed)
    }

    /// Tells the watchers what was written to a run that rests, with what went before. Without it they miss something, and
    /// nothing else is lost.
    async fn tell_of_rest(&self, run: &RunId, from: u64, to: u64) {
        let Ok(journal) = self.inner.ports.store.runs.load(run, 0).await else { return };
        let (history, facts): (Vec<_>, Vec<_>) =
            journal.into_iter().filter(|recorded| recorded.seq < to).partition(|recorded| recorded.seq < from);
        self.inner.ports.sinks.iter().for_each(|sink| sink.wrote_at_rest(run, &history, &facts));
    }

    async fn open(&self, run: &RunId) -> Result<(Journal, Vec<Recorded>), RunnerError> {
        let ports = &self.inner.ports;
        let opened = Journal::open(run, ports.store.clone(), ports.clock.clone(), ports.sinks.clone()).await?;
        match opened {
            Some(opened) => Ok(opened),
            // There is none, and this says why.
            None => Err(self.journal(run).await.err().unwrap_or_else(|| RunnerError::NoSuchRun(run.clone()))),
        }
    }

    /// A trace for an execution: the caller's, continued, or a fresh one. A caller may have several runs in one trace, and
    /// their spans must not be taken for each other.
    fn trace(&self, remote: Option<Trace>) -> Trace {
        match remote {
            Some(trace) => {
                let remote = trace.parent.map(|_| trace.sampled);
                let salt = trace.parent.map(|_| self.inner.ids.trace_id().salt());
                Trace { sampled: (self.inner.sampler)(&trace.id, remote), salt, ..trace }
            }
            None => self.new_trace(),
        }
    }

    /// The fact that begins a further execution.
    fn resumed(&self, remote: Option<Trace>) -> Event {
        Event::Resumed { trace: self.trace(remote), limits: None }
    }
}
