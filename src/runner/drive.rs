//! Start and resume of runs. Every execution is a task that the runner owns.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::sync::oneshot;
use toolgate_core::blob::BlobHandle;
use toolgate_core::id::{CallId, RunId, SessionId};
use toolgate_core::run::{Event, Input, JournalEntry, Predecessor, Resume, Started, Status};
use toolgate_core::trace::Trace;
use toolgate_driver::{Agent, DriveError, Journal, Progress, fold};
use toolgate_ports::{Claim, SessionClaim};
use tracing::Instrument as _;

use super::admission::Permit;
use super::calling::with_model_options;
use super::execution_loop::{ExecutionEnd, stage_queued};
use super::registry::{ActiveRun, RunGuard};
use super::resume_input::{ValidatedInput, has_content, require_servers};
use super::watch::Broadcaster;
use super::{AgentRunner, Execution, IdleRun, Report, Request, RunnerError, Watch};

/// How many orphaned runs are claimed together.
const RECOVERED_AT_ONCE: usize = 64;

impl AgentRunner {
    /// Starts a run. Its first event is durable when this returns.
    pub async fn start(&self, request: Request) -> Result<Execution, RunnerError> {
        let agent = self.agent(&request.agent)?;
        self.launch_request(agent, request).await
    }

    /// Starts a run of an agent that was adapted to the run.
    pub(super) async fn launch_request(&self, agent: Arc<Agent>, request: Request) -> Result<Execution, RunnerError> {
        let spec = request.spec(&agent, &self.inner.ports)?;
        let agent = with_model_options(agent, &spec)?;
        let id = request.id.unwrap_or_else(|| self.fresh_id());
        let started = Started {
            spec,
            predecessor: None,
            restart: None,
            history: request.history,
            input: request.input,
            files: request.files,
            session: request.session.clone().unwrap_or_else(|| SessionId::from(id.as_str())),
            tenant: request.tenant,
            by: request.by,
            trigger: request.cause.into(),
            trace: self.trace(request.trace),
            metadata: request.metadata,
        };
        self.inject(&id, request.injected);
        let (is_in_session, seen) = (request.session.is_some(), request.session_version);
        let runner = self.clone();
        let unit = async move {
            let launched = match is_in_session {
                true if started.spec.is_direct_call() => runner.launch_beside_session(&id, started, agent).await,
                true => runner.launch_in_session(&id, started, agent, seen).await,
                false => runner.launch_started(&id, started, None, agent).await,
            };
            // No caller knows the id of the run, so the run cannot be resumed.
            launched.inspect_err(|_| runner.inner.injections.forget(&id))
        };
        self.to_completion(unit).await?
    }

    pub(super) async fn launch_started(
        &self,
        id: &RunId,
        started: Started,
        claim: Option<SessionClaim>,
        agent: Arc<Agent>,
    ) -> Result<Execution, RunnerError> {
        let ports = &self.inner.ports;
        let (store, clock, sinks) = (ports.store.clone(), ports.clock.clone(), ports.sinks.clone());
        let journal = Journal::begin(id.clone(), Event::Started(started.into()), claim, store, clock, sinks)?;
        self.launch_journal(journal, &[], agent).await
    }

    /// Resumes a run with an input. Without an input or a pending item, this only recovers an orphaned run. If this
    /// process already executes the run, its driver receives the input, and the returned execution is that one.
    pub async fn resume_run(&self, run: &RunId, input: Input, trace: Option<Trace>) -> Result<Execution, RunnerError> {
        self.resume_run_with(run, input, None, trace, None).await
    }

    /// Resumes the run with an input and with task results, either known ones or those that servers report now.
    /// Outdated results are dropped. `renewed` is the last renewal of the lease, if this process has claimed the run since.
    pub(super) async fn resume_run_with(
        &self,
        run: &RunId,
        input: Input,
        mut known: Option<Vec<Event>>,
        trace: Option<Trace>,
        renewed: Option<Timestamp>,
    ) -> Result<Execution, RunnerError> {
        loop {
            let (mut journal, history) = self.open_unless_over(run).await?;
            let (current, late) = journal.at_now()?;
            let agent = self.agent_of(&journal.run().started().spec)?;
            let ValidatedInput { events, blobs } = self.validate_input(&journal, &current, &input).await?;
            let waits = !current.pending().is_empty() || current.ending().is_some();
            // Input and outstanding work must not wait for servers that may not answer. Those servers are asked
            // afterwards.
            if known.is_none() && events.is_empty() && waits {
                known = Some(self.poll_servers(&journal, |_| true).await.events);
            }
            let task_events = known.iter().flatten().filter(|event| current.admit(event).is_ok());
            let task_events: Vec<Event> = task_events.cloned().collect();
            if events.is_empty() && task_events.is_empty() && waits {
                if !late.is_empty() {
                    let (written, progress) = self.write_beside(journal, late).await?;
                    if progress == Progress::CaughtUp {
                        continue;
                    }
                    journal = written;
                }
                self.forget_if_over(&journal);
                return Ok(idle_execution(journal));
            }
            require_servers(run, &journal.run().started().spec, &agent, &self.inner.injections.servers_of(run))?;
            self.inner.blocked.forget(run);
            self.store_blobs(run, blobs).await?;
            let guard = match self.claim(run)? {
                Ok(guard) => guard,
                Err(driven) => match self.hand_over(Some(&driven), run, &input).await? {
                    Some(execution) => return Ok(execution),
                    None => {
                        // The driver is being released, polls its tasks, or a faster caller is resuming the run.
                        driven.wake.notify();
                        let _ = tokio::time::timeout(self.inner.ports.poll, driven.rest).await;
                        continue;
                    }
                },
            };
            let renewed = match renewed {
                None if !waits => self.last_renewal(run).await?,
                known => known,
            };
            journal.stage_all(Self::death(&journal, &history, renewed).into_iter().collect())?;
            journal.stage_all(late)?;
            journal.stage(self.resumed(trace.clone()))?;
            journal.stage_all(events)?;
            journal.stage_all(task_events)?;
            let (runner, are_tasks_polled) = (self.clone(), known.is_some());
            let unit = async move { runner.append_and_drive(guard, journal, &history, agent, are_tasks_polled).await };
            match self.to_completion(unit).await? {
                Ok(Some(execution)) => return Ok(execution),
                Ok(None) => {}
                Err(DriveError::Owned(node)) if !has_content(&input) => {
                    return Err(RunnerError::DrivenElsewhere { run: run.clone(), node });
                }
                Err(DriveError::Owned(_)) => {
                    if let Some(execution) = self.hand_over(None, run, &input).await? {
                        return Ok(execution);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Appends the staged events, which claims the run, and executes it. Returns `None` and writes nothing if another
    /// writer was faster.
    async fn append_and_drive(
        &self,
        guard: RunGuard,
        mut journal: Journal,
        history: &[JournalEntry],
        agent: Arc<Agent>,
        are_tasks_polled: bool,
    ) -> Result<Option<Execution>, DriveError> {
        let updates = self.watch(journal.id());
        let turn = self.inner.admission.enter(journal.run().started().tenant.clone());
        stage_queued(&mut journal, &turn)?;
        if journal.claim_and_commit(history).await? == Progress::CaughtUp {
            return Ok(None);
        }
        let tasks = journal.run().tasks().filter(|_| !are_tasks_polled);
        let unpolled = tasks.map(|(call, ..)| call.clone()).collect();
        Ok(Some(self.spawn_execution(guard, turn, journal, agent, updates, unpolled)))
    }

    /// Passes the input to the current driver of the run, here or in another process. `None` if the run has no driver.
    async fn hand_over(
        &self,
        driven: Option<&ActiveRun>,
        run: &RunId,
        input: &Input,
    ) -> Result<Option<Execution>, RunnerError> {
        // An event in the journal of an idle run would stay unprocessed.
        if self.append_input(run, input, |run| run.status() == Status::Running).await?.is_none() {
            return Ok(None);
        }
        Ok(Some(match driven {
            Some(driven) => self.join(run, driven),
            None => self.follow_other_process(run),
        }))
    }

    /// An execution in another process. Waits until the run is idle. If the other process dies, this process recovers
    /// the run.
    pub(super) fn follow_other_process(&self, run: &RunId) -> Execution {
        let (mut done, rest) = oneshot::channel();
        let (runner, id) = (self.clone(), run.clone());
        self.inner.tasks.spawn(async move {
            let rested = async {
                loop {
                    tokio::time::sleep(runner.inner.ports.poll).await;
                    match runner.resume_execution(&id).await {
                        Err(RunnerError::DrivenElsewhere { .. }) => {}
                        Ok(execution) => break execution.idle().await,
                        Err(error) => break Err(error),
                    }
                }
            };
            let rested = tokio::select! {
                rested = rested => Some(rested),
                () = runner.inner.drain.begun.cancelled() => Some(Err(RunnerError::Released(id.clone()))),
                () = done.closed() => None,
            };
            if let Some(rested) = rested {
                // The caller may have stopped waiting.
                let _ = done.send(rested);
            }
        });
        Execution { run: run.clone(), updates: Broadcaster::closed(), rest: rest.shared() }
    }

    /// Resumes the run without input. Boxed, because resuming may lead to waiting for another process, which calls this
    /// again.
    fn resume_execution<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Execution, RunnerError>> {
        self.resume_run(run, Input::Resume(Resume::default()), None).boxed()
    }

    /// Recovers orphaned runs of dead processes, oldest first, one batch at a time. Returns the executions of this
    /// process; empty if no orphaned run is left that it can execute.
    pub async fn recover(&self) -> Result<Vec<Execution>, RunnerError> {
        // Every claimed run is executed or stays claimed until its lease expires, even if the caller stops waiting.
        let runner = self.clone();
        self.to_completion(async move { runner.claim_and_drive().await }).await?
    }

    async fn claim_and_drive(&self) -> Result<Vec<Execution>, RunnerError> {
        let store = &self.inner.ports.store;
        let claim = Claim { owner: store.node.clone(), run: None, lease: store.lease, limit: RECOVERED_AT_ONCE };
        let (mut taken, mut refused, mut blocked) = (Vec::new(), BTreeSet::new(), Vec::new());
        let mut is_closed = false;
        self.forget_moved_runs().await?;
        while taken.is_empty() && !is_closed {
            // The claim renews the leases, whose ends tell until when the processes of the runs were alive.
            let renewals = self.last_renewals().await?;
            let mut claimed = store.runs.claim(&claim).await.map_err(DriveError::from)?;
            claimed.retain(|run| !refused.contains(run));
            if claimed.is_empty() {
                break;
            }
            for run in claimed {
                let renewed = renewals.get(&run).copied();
                match self.resume_run_with(&run, Input::Resume(Resume::default()), None, None, renewed).await {
                    Ok(execution) => taken.push(execution),
                    // This process is stopping. Another one should not have to wait for the lease.
                    Err(RunnerError::Closed) => {
                        self.give_up(&run).await;
                        is_closed = true;
                    }
                    // This process lacks the agent, or the journal is unreadable. The lease is not renewed, so another
                    // process can claim the run soon. Runs later in the queue are next.
                    Err(error) => {
                        if self.report_undriven(&run, &error).await {
                            blocked.push(run.clone());
                        }
                        if error.is_blocking()
                            && let Err(error) = self.end_blocked_if_late(&run).await
                        {
                            tracing::warn!(%run, %error, "failed to expire blocked run");
                        }
                        refused.insert(run);
                    }
                }
            }
        }
        // Another process may have the missing configuration. It should not have to wait for the lease.
        for run in &blocked {
            self.give_up(run).await;
        }
        Ok(taken)
    }

    /// The last renewal of the lease of each orphaned run, as far as they are known.
    async fn last_renewals(&self) -> Result<BTreeMap<RunId, Timestamp>, RunnerError> {
        let mut renewals = BTreeMap::new();
        for run in self.orphaned().await? {
            renewals.extend(self.last_renewal(&run).await?.map(|at| (run, at)));
        }
        Ok(renewals)
    }

    /// The last renewal of the lease of a run by another process.
    async fn last_renewal(&self, run: &RunId) -> Result<Option<Timestamp>, RunnerError> {
        let store = &self.inner.ports.store;
        Ok(store.runs.last_renewal(run, &store.node, store.lease).await.map_err(DriveError::from)?)
    }

    /// Orphaned runs, oldest first: their status is running, and no living process owns them. Returns at most one batch
    /// and writes nothing.
    pub async fn orphaned(&self) -> Result<Vec<RunId>, RunnerError> {
        Ok(self.inner.ports.store.runs.orphaned(RECOVERED_AT_ONCE).await.map_err(DriveError::from)?)
    }

    /// Whether the run is orphaned.
    pub async fn is_orphaned(&self, run: &RunId) -> Result<bool, RunnerError> {
        let orphaned = self.inner.ports.store.runs.orphaned(usize::MAX).await.map_err(DriveError::from)?;
        Ok(orphaned.contains(run))
    }

    /// The execution of a run in any process: joined or resumed here, or followed while another process executes it.
    pub async fn resume_or_follow(&self, run: &RunId) -> Result<Execution, RunnerError> {
        match self.resume_execution(run).await {
            Err(RunnerError::DrivenElsewhere { .. }) => Ok(self.follow_other_process(run)),
            taken => taken,
        }
    }

    /// Executes a run that was cancelled and has calls to undo first. If this process cannot, another one recovers the run.
    pub(super) async fn compensated(&self, report: Report) -> Report {
        if report.compensation.is_some()
            && !report.status.is_ended()
            && let Err(error) = self.resume_or_follow(&report.run_id).await
        {
            tracing::warn!(run = %report.run_id, %error, "failed to execute the compensation of a cancelled run");
        }
        report
    }

    fn claim(&self, run: &RunId) -> Result<Result<RunGuard, ActiveRun>, RunnerError> {
        if self.inner.tasks.is_closed() { Err(RunnerError::Closed) } else { Ok(self.inner.claim(run)) }
    }

    /// The active execution of a run.
    fn join(&self, run: &RunId, driven: &ActiveRun) -> Execution {
        driven.wake.notify();
        Execution { run: run.clone(), updates: self.watch(run), rest: driven.rest.clone() }
    }

    pub(super) async fn launch_journal(
        &self,
        mut journal: Journal,
        history: &[JournalEntry],
        agent: Arc<Agent>,
    ) -> Result<Execution, RunnerError> {
        let run = journal.id().clone();
        // Only new runs are rejected. A run that has started must be able to continue.
        let tenant = journal.run().started().tenant.clone();
        let Some(turn) = self.inner.admission.enter_if_there_is_room(tenant) else { return Err(RunnerError::Busy) };
        let Ok(guard) = self.claim(&run)? else { return Err(RunnerError::Lost(run)) };
        // Subscribed before the first event is written, so that the watch misses nothing.
        let updates = self.watch(&run);
        let uses_blobs = self.share_blobs(&journal).await?;
        stage_queued(&mut journal, &turn)?;
        match journal.claim_and_commit(history).await {
            Ok(Progress::Committed) => Ok(self.spawn_execution(guard, turn, journal, agent, updates, BTreeSet::new())),
            Ok(Progress::CaughtUp) => Err(RunnerError::Lost(run)),
            Err(error) => {
                if uses_blobs && matches!(error, DriveError::SessionChanged | DriveError::OverQuota(_)) {
                    self.release_blobs(&run).await;
                }
                Err(error.into())
            }
        }
    }

    /// A run uses the blobs of its history and of its files, and must keep them when the original run or the file is deleted.
    /// Returns whether there are any.
    async fn share_blobs(&self, journal: &Journal) -> Result<bool, RunnerError> {
        let Some(blobs) = &self.inner.ports.blobs else { return Ok(false) };
        let mut own = journal.staged().to_vec();
        // The blobs of the conversation before it belong to the runs that it continues, unless it has a copy of the
        // conversation.
        if !journal.run().started().predecessor.as_ref().is_some_and(Predecessor::is_copy) {
            own.iter_mut().take(1).for_each(|first| first.event = first.event.with_conversation(None));
        }
        let run = fold(journal.id(), &own)?;
        let messages = run.messages();
        let mut named: BTreeSet<BlobHandle> = messages.iter().flat_map(|message| message.blobs()).collect();
        named.extend(run.blobs());
        if named.is_empty() {
            return Ok(false);
        }
        let named: Vec<BlobHandle> = named.into_iter().collect();
        blobs.share(journal.id(), &named).await.map_err(DriveError::from)?;
        let started = run.started();
        // A file may be deleted between its lookup and this moment. From here on the run keeps it.
        for file in started.files.iter().filter(|_| started.trigger.copied() == 0) {
            if blobs.describe(file).await.map_err(DriveError::from)?.is_none() {
                self.release_blobs(journal.id()).await;
                return Err(RunnerError::FileMissing);
            }
        }
        Ok(true)
    }

    /// Releases the blobs of a run that was not created.
    async fn release_blobs(&self, run: &RunId) {
        let Some(blobs) = &self.inner.ports.blobs else { return };
        if let Err(error) = blobs.forget(run).await {
            tracing::warn!(%run, %error, "failed to release blobs of run that was not created");
        }
    }

    /// Executes the run in a task, once it has a permit, until it is idle. Before that, asks the servers of the
    /// `unpolled` tasks.
    fn spawn_execution(
        &self,
        guard: RunGuard,
        turn: Permit,
        mut journal: Journal,
        agent: Arc<Agent>,
        updates: Watch,
        unpolled: BTreeSet<CallId>,
    ) -> Execution {
        let (run, rest) = (journal.id().clone(), guard.driven.rest.clone());
        let runner = self.clone();
        let trace_id = journal.run().execution().1.id;
        // Span context for log records from code that does not know the run. It is active at every log level.
        let record = tracing::error_span!("run", %run, %trace_id);
        let execution = async move {
            let ports = &runner.ports_of(journal.id());
            let wake = guard.driven.wake.clone();
            let end =
                AssertUnwindSafe(runner.drive_when_permitted(&mut journal, ports, &agent, &wake, turn, &unpolled));
            let mut end = end.catch_unwind().await;
            if let Ok(Ok(ExecutionEnd::Released)) = end
                && let Err(error) = runner.release(&mut journal).await
            {
                end = Ok(Err(error));
            }
            let run = journal.id().clone();
            runner.stop_tasks(&run, &ports.servers, journal.orphans().to_vec());
            ports.servers.release(&run, &journal.run().execution_context()).await;
            runner.forget_if_over(&journal);
            let now = ports.clock.now();
            ports.sinks.iter().for_each(|sink| sink.released(&run, now));
            let is_given_up = matches!(end, Ok(Ok(ExecutionEnd::Released)));
            guard.leave(match end {
                Ok(Ok(ExecutionEnd::Idle)) => Ok(IdleRun::new(journal)),
                Ok(Ok(ExecutionEnd::Released)) => Err(RunnerError::Released(run.clone())),
                Ok(Err(DriveError::Owned(node))) => Err(RunnerError::DrivenElsewhere { run: run.clone(), node }),
                Ok(Err(
                    error @ (DriveError::Store(_)
                    | DriveError::Corrupt { .. }
                    | DriveError::SessionChanged
                    | DriveError::OverQuota(_)),
                )) => Err(error.into()),
                Err(_panic) => Err(RunnerError::Lost(run.clone())),
            });
            if is_given_up {
                runner.give_up(&run).await;
            }
        };
        self.inner.tasks.spawn(execution.instrument(record));
        Execution { run, updates, rest }
    }
}

/// The execution of a run without outstanding work.
fn idle_execution(journal: Journal) -> Execution {
    let (done, rest) = oneshot::channel();
    let run = journal.id().clone();
    let _ = done.send(Ok(IdleRun::new(journal)));
    let updates = Broadcaster::closed();
    Execution { run, updates, rest: rest.shared() }
}
