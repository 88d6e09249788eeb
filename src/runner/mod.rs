//! Public entry point of the library: start, resume, cancel, fork, retry and watch runs.
//!
//! An [`AgentRunner`] holds the ports and the agents. It owns every task that it starts, and waits for them in
//! [`AgentRunner::close`]. A caller that drops an operation does not affect its run: a started operation completes.

mod admission;
mod attendance;
mod blocked;
mod builder;
mod calling;
mod completion;
mod context;
mod drive;
pub mod envelope;
mod error;
mod execution;
mod execution_loop;
mod expiry;
mod feedback;
mod fork;
mod grants;
mod lease;
mod purge;
mod record;
mod registry;
mod reload;
mod report;
mod request;
mod resume_input;
mod retry;
mod run_servers;
mod session;
mod shutdown;
mod system;
mod tasks;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use tokio_util::task::TaskTracker;

pub use admission::{Activity, Capacity};
pub use admission::{Admission, Permit};
pub use attendance::Attendance;
pub use builder::{Builder, Sampler};
pub use calling::{ToolCallState, called};
pub use context::Transcript;
pub use error::RunnerError;
pub use error::every_error;
pub use execution::{Execution, IdleRun};
pub use expiry::{ExpiredItems, ExpiredRun};
pub use feedback::NewFeedback;
pub use fork::Fork;
pub use grants::NewGrant;
pub use report::Report;
pub use request::{Cause, Request};
pub use retry::Retry;
pub use run_servers::RunServers;
pub use session::{MemberChange, NewSession, SessionChange, SessionCompaction, SessionLimitsChange, SessionMessage};
pub use shutdown::DrainTimes;
pub use system::{SystemClock, UuidIds};
pub use tasks::{PollOutcome, TaskStatus};
pub use watch::{ReplySoFar, RunSubscription, TenantSubscription, Watch, WatchEvent};

pub use toolgate_core::run::{Answer, Resume};
pub use toolgate_core::tool::result::ResultCheck;
pub use toolgate_driver::{Agent, ElicitationHold, Fallback, NamedModel, ServerResults, SessionRules, ToolLimit};

use toolgate_core::chat::Message;
use toolgate_core::id::{AgentName, CallId, RunId};
use toolgate_core::run::{Channel, Event, Input, JournalEntry, Run, Spec, Status};
use toolgate_core::tool::Toolset;
use toolgate_core::trace::Trace;
use toolgate_driver::{DriveError, Journal, Ports, Progress};
use toolgate_ports::{BlobStore, EventSink, Ids, RunFilter, RunRow, StoreError};

use blocked::BlockedRuns;
use registry::ActiveRuns;
use resume_input::BoundInput;
use run_servers::Injections;
use shutdown::Drain;
use watch::{Broadcaster, Poller};

/// A runner of agents. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct AgentRunner {
    inner: Arc<Inner>,
}

struct Inner {
    ports: Ports,
    ids: Arc<dyn Ids>,
    sampler: Sampler,
    /// By name and by alias.
    agents: BTreeMap<AgentName, Arc<Agent>>,
    broadcaster: Arc<Broadcaster>,
    poller: Arc<Poller>,
    active_runs: Arc<ActiveRuns>,
    injections: Arc<Injections>,
    blocked: Arc<BlockedRuns>,
    admission: Arc<Admission>,
    drain: Arc<Drain>,
    envelopes: Option<Arc<envelope::EnvelopeKeys>>,
    tasks: TaskTracker,
}

impl AgentRunner {
    /// A builder for a runner.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Starts a run and waits until it is idle: pending or ended.
    pub async fn execute(&self, request: Request) -> Result<Report, RunnerError> {
        self.start(request).await?.until_idle().await
    }

    /// Resumes a run with answers and waits until it is idle again.
    pub async fn resume(&self, run: &RunId, resume: Resume) -> Result<Report, RunnerError> {
        self.resume_run(run, Input::Resume(resume), None).await?.until_idle().await
    }

    /// Adds a message to a run. An active run receives it at its next turn; a pending run keeps it.
    pub async fn message(&self, run: &RunId, message: Message) -> Result<Report, RunnerError> {
        self.record_input(run, &Input::Message(message)).await
    }

    /// Ends a run, whichever process executes it. Cancelling a cancelled run changes nothing. If calls have to be undone
    /// before the end, the report is of a run that is not over, and the run is executed; cancelling it again ends it. The
    /// text that a model has streamed to this process of its reply is kept.
    ///
    /// # Errors
    /// [`VersionConflict`](toolgate_core::run::ResumeError::VersionConflict) if the run is not at the expected version.
    pub async fn cancel(
        &self,
        run: &RunId,
        reason: Option<String>,
        expected_version: Option<u64>,
    ) -> Result<Report, RunnerError> {
        let partial_reply = self.inner.broadcaster.partial_reply(run);
        let report = self.record_input(run, &Input::Cancel { reason, partial_reply, expected_version }).await?;
        Ok(self.compensated(report).await)
    }

    /// Pauses a run, whichever process executes it: it stops between two steps, and is pending until a
    /// [`Resume`] continues it. The step in flight settles first. Pausing a paused run changes nothing.
    ///
    /// # Errors
    /// [`VersionConflict`](toolgate_core::run::ResumeError::VersionConflict) if the run is not at the expected version.
    pub async fn pause(
        &self,
        run: &RunId,
        reason: Option<String>,
        by: impl Into<String>,
        via: Channel,
        expected_version: Option<u64>,
    ) -> Result<Report, RunnerError> {
        self.record_input(run, &Input::Pause { reason, by: by.into(), via, expected_version }).await
    }

    /// Extends the deadline of a pending item. Repeating the same request changes nothing.
    pub async fn extend(
        &self,
        run: &RunId,
        call: CallId,
        until: Timestamp,
        by: impl Into<String>,
        via: Channel,
    ) -> Result<Report, RunnerError> {
        self.record_input(run, &Input::Extend { call, until, by: by.into(), via }).await
    }

    /// An id for a new run. A caller that knows the id in advance can check later whether the run exists.
    pub fn fresh_id(&self) -> RunId {
        self.inner.ids.run_id()
    }

    /// The current state of a run.
    pub async fn report(&self, run: &RunId) -> Result<Report, RunnerError> {
        Ok(Report::new(run.clone(), &self.load_with_conversation(run).await?))
    }

    /// The events of a run, with the conversation before it, from which its spans follow.
    pub async fn journal_with_conversation(&self, run: &RunId) -> Result<Vec<JournalEntry>, RunnerError> {
        Ok(self.open(run).await?.1)
    }

    /// A run, folded from its journal, with the conversation before it.
    pub async fn load_with_conversation(&self, run: &RunId) -> Result<Run, RunnerError> {
        Ok(self.open(run).await?.0.into_run())
    }

    /// A run, folded from its journal alone: its messages begin with its own.
    pub async fn load(&self, run: &RunId) -> Result<Run, RunnerError> {
        Ok(toolgate_driver::fold(run, &self.journal(run).await?)?)
    }

    /// The journal of a run.
    pub async fn journal(&self, run: &RunId) -> Result<Vec<JournalEntry>, RunnerError> {
        let journal = self.inner.ports.store.runs.load(run, 0).await.map_err(DriveError::from)?;
        if !journal.is_empty() {
            return Ok(journal);
        }
        match self.row(run).await?.and_then(|row| row.purged_at) {
            Some(at) => Err(RunnerError::Purged { run: run.clone(), at }),
            None => Err(RunnerError::NoSuchRun(run.clone())),
        }
    }

    /// The store of media that models produced, if there is one: the handles in an output refer to it.
    pub fn blobs(&self) -> Option<&Arc<dyn BlobStore>> {
        self.inner.ports.blobs.as_ref()
    }

    /// Runs, newest first. Each row of a list, and not that of a single run, says whether its run is interrupted.
    pub async fn list(&self, filter: &RunFilter) -> Result<Vec<RunRow>, RunnerError> {
        let runs = &self.inner.ports.store.runs;
        let mut rows = runs.list(filter).await.map_err(DriveError::from)?;
        if filter.run.is_none() && rows.iter().any(|row| row.status == Status::Running) {
            let orphaned = runs.orphaned(usize::MAX).await.map_err(DriveError::from)?;
            let orphaned: BTreeSet<RunId> = orphaned.into_iter().collect();
            rows.iter_mut().for_each(|row| row.is_interrupted = orphaned.contains(&row.id));
        }
        Ok(rows)
    }

    /// The updates of a run from now on, in this process. Earlier events are in the journal.
    pub fn watch(&self, run: &RunId) -> Watch {
        self.inner.broadcaster.watch(run)
    }

    /// The tools that are currently available to an agent, with the policy's verdict on each. Those beyond the limit of its
    /// model are among them ([`Agent::within_tool_limit`]): they can be called directly. `mode` is a permission mode, whose
    /// policy judges in place of the agent's own.
    pub async fn tools(&self, agent: &AgentName, mode: Option<&str>) -> Result<Toolset, RunnerError> {
        let agent = self.agent(agent)?;
        let spec = Spec { mode: mode.map(str::to_owned), ..agent.spec() };
        let context = self.new_trace().context("tools/list");
        let offers = match spec.servers.is_empty() {
            true => Vec::new(),
            false => self.inner.ports.servers.list(&spec.servers, &context).await,
        };
        let inputs = &self.inner.ports.inputs;
        let rules = agent.toolset_rules(&spec, &Arc::default());
        Ok(Toolset::assemble(&spec.external_tools, &offers, &rules).without(|tool| inputs.accepts(tool).err()))
    }

    /// The configured agents.
    pub fn agents(&self) -> impl Iterator<Item = &Arc<Agent>> {
        self.inner.agents.iter().filter(|(name, agent)| **name == agent.name).map(|(_, agent)| agent)
    }

    /// The duration of a lease without renewal.
    pub fn lease(&self) -> std::time::Duration {
        self.inner.ports.store.lease
    }

    /// Whether the store can be read.
    ///
    /// # Errors
    /// The reason.
    pub async fn check_read(&self) -> Result<(), StoreError> {
        self.inner.ports.store.runs.check_read().await
    }

    /// Whether the store can be written, from writes of the last seconds or from a small test write.
    ///
    /// # Errors
    /// The reason.
    pub async fn check_write(&self) -> Result<(), StoreError> {
        self.inner.ports.store.runs.check_write().await
    }

    /// The number of active and queued runs of this process.
    pub fn activity(&self) -> Activity {
        self.inner.admission.activity()
    }

    /// Stops accepting runs and waits until the active ones are idle.
    pub async fn close(&self) {
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
    }

    /// The agent of that name or alias.
    ///
    /// # Errors
    /// There is no such agent.
    pub fn agent(&self, name: &AgentName) -> Result<Arc<Agent>, RunnerError> {
        self.inner.agents.get(name).cloned().ok_or_else(|| RunnerError::NoSuchAgent {
            name: name.clone(),
            known: self.inner.agents.keys().cloned().collect(),
        })
    }

    fn new_trace(&self) -> Trace {
        let id = self.inner.ids.trace_id();
        Trace::new(id, (self.inner.sampler)(&id, None))
    }

    /// Appends an input to a run's journal without executing the run.
    async fn record_input(&self, run: &RunId, input: &Input) -> Result<Report, RunnerError> {
        loop {
            let journal = self.open_unless_over(run).await?.0;
            // An input after its deadline is rejected. The process that resumes the run writes the expiry.
            let (current, _) = journal.at_now()?;
            let events = self.input_events(&current, &BoundInput::new(&journal, &current, input.clone())?)?;
            let (journal, progress) = self.write_beside(journal, events).await?;
            if progress == Progress::Committed {
                return Ok(Report::new(run.clone(), journal.run()));
            }
        }
    }

    /// Opens a run. If its deadline has passed, the end of the run is written first. Other expiry events need a driver,
    /// so they are written only by a process that executes the run, or if the run is still pending afterwards.
    async fn open_unless_over(&self, run: &RunId) -> Result<(Journal, Vec<JournalEntry>), RunnerError> {
        loop {
            let (journal, history) = self.open(run).await?;
            let (current, late) = journal.at_now()?;
            if late.is_empty() || current.ending().is_none() {
                return Ok((journal, history));
            }
            self.write_beside(journal, late).await?;
        }
    }

    /// Appends events to the journal of a run that another driver may execute, with all consequences, as one unit.
    /// Returns the journal after the append.
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
        // An active driver notifies the watchers, in order. A driver that is about to become idle no longer reads the
        // journal.
        let driven = self.inner.active_runs.driven(&run);
        let status = journal.run().status();
        let is_at_work = driven.is_some() && status == Status::Running;
        let rests = driven.is_none() && status == Status::Pending;
        let written_before = journal.committed();
        if is_at_work {
            journal.disable_sinks();
        }
        journal.stage_all(facts)?;
        if journal.commit_unowned().await? == Progress::CaughtUp {
            return Ok(Progress::CaughtUp);
        }
        if let Some(driven) = driven {
            driven.wake.notify();
        }
        if rests {
            self.notify_idle_write(&run, written_before, journal.committed()).await;
        }
        if !is_at_work && !journal.orphans().is_empty() {
            self.stop_tasks(&run, &self.servers_of(&run), journal.orphans().to_vec());
        }
        if !is_at_work && journal.run().ending().is_some() {
            self.forget_if_over(journal);
            self.inner.broadcaster.released(&run, self.inner.ports.clock.now());
        }
        Ok(Progress::Committed)
    }

    /// Notifies the watchers about events that were written to an idle run, with the history before them. If this
    /// fails, watchers miss the events, but nothing else is lost.
    async fn notify_idle_write(&self, run: &RunId, from: u64, to: u64) {
        let Ok(journal) = self.inner.ports.store.runs.load(run, 0).await else { return };
        let (history, facts): (Vec<_>, Vec<_>) =
            journal.into_iter().filter(|recorded| recorded.seq < to).partition(|recorded| recorded.seq < from);
        self.inner.ports.sinks.iter().for_each(|sink| sink.wrote_idle(run, &history, &facts));
    }

    async fn open(&self, run: &RunId) -> Result<(Journal, Vec<JournalEntry>), RunnerError> {
        let ports = &self.inner.ports;
        let opened = Journal::open(run, ports.store.clone(), ports.clock.clone(), ports.sinks.clone()).await?;
        match opened {
            Some(opened) => Ok(opened),
            // The row does not exist, and this error says why.
            None => Err(self.journal(run).await.err().unwrap_or_else(|| RunnerError::NoSuchRun(run.clone()))),
        }
    }

    /// The trace of an execution: the caller's, continued, or a new one. A caller may have several runs in one trace,
    /// so their spans need different ids.
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

    /// The event that starts a further execution.
    fn resumed(&self, remote: Option<Trace>) -> Event {
        Event::Resumed { trace: self.trace(remote), limits: None }
    }
}
