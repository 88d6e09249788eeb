//! Starting a run and taking one up again. Every execution is a task of its own, owned by the runner.

use std::pin::Pin;
use std::sync::{Arc, PoisonError};

use tokio::sync::{oneshot, watch as watch_channel};

use super::watch::Hub;
use super::{AgentRunner, Driving, Report, Request, RunnerError, Watch};
use crate::core::id::{CallId, RunId, SessionId};
use crate::core::run::{Event, Input, Recorded, Refusal, Resume, Started, Trigger};
use crate::core::tool::{Arguments, Outcome, Problem};
use crate::core::trace::Trace;
use crate::driver::{Agent, DriveError, Driver, Hint, Journal, Progress};
use crate::ports::{Claim, Grant, InputFindings};

/// A run under way in this process. Dropping it changes nothing for the run.
#[derive(Debug)]
pub struct Execution {
    /// The run.
    pub run: RunId,
    /// What happens in it, from the first event of this execution.
    pub updates: Watch,
    rest: oneshot::Receiver<Result<Report, RunnerError>>,
}

impl Execution {
    /// Waits until the run rests: it is over, or owed something.
    pub async fn rest(self) -> Result<Report, RunnerError> {
        self.rest.await.unwrap_or(Err(RunnerError::Lost(self.run)))
    }
}

impl AgentRunner {
    /// Starts a run. Its first fact is durable when this returns.
    pub async fn start(&self, request: Request) -> Result<Execution, RunnerError> {
        let agent = self.agent(&request.agent)?;
        let spec = request.spec(&agent)?;
        let id = self.inner.ids.run_id();
        let started = Started {
            spec,
            history: request.history,
            input: request.input,
            session: request.session.unwrap_or_else(|| SessionId::from(id.as_str())),
            trigger: Trigger::Manual,
            trace: self.trace(request.trace),
            metadata: request.metadata,
        };
        let ports = &self.inner.ports;
        let first = Event::Started(started.into());
        let journal = Journal::begin(id, first, ports.store.clone(), ports.clock.clone(), ports.sinks.clone())?;
        self.launch(journal, &[], agent).await
    }

    /// Gives a run what it is owed and drives it on. With nothing owed or given, a run that was left behind by a
    /// process that died is simply driven on. A run that is driven already is given the input all the same; its driver
    /// finds it.
    pub async fn take_up(&self, run: &RunId, input: Input, trace: Option<Trace>) -> Result<Execution, RunnerError> {
        let mut input = input;
        let mut given = false;
        loop {
            if let Some(driving) = self.driving(run) {
                self.check_and_post(run, &input).await?;
                return Ok(self.follow(run, driving));
            }
            let (mut journal, history) = self.open(run).await?;
            let agent = self.agent(&journal.run().started().spec.agent)?;
            self.check(&journal, &input).await?;
            let events = journal.run().accept(&input).map_err(RunnerError::Refused)?;
            let grants = grants(&journal, &events);
            let waits = !journal.run().pending().is_empty() || journal.run().ending().is_some();
            if events.is_empty() && waits {
                return Ok(at_rest(&journal));
            }
            let nothing_new = events.is_empty();
            journal.stage(self.resumed(trace.clone()))?;
            journal.stage_all(events)?;
            let updates = self.watch(run);
            match self.commit_first(&mut journal, &history).await {
                Ok(Progress::Committed) => {}
                Ok(Progress::CaughtUp) => continue,
                Err(DriveError::Owned(_)) if given => return Ok(at_rest(&self.open(run).await?.0)),
                Err(DriveError::Owned(node)) if nothing_new => {
                    return Err(RunnerError::DrivenElsewhere { run: run.clone(), node });
                }
                Err(DriveError::Owned(_)) => {
                    // Its driver finds what is posted, unless it suspends the run first: then it is ours after all.
                    self.post(run, &input).await?;
                    self.remember(&grants).await?;
                    (input, given) = (Input::Resume(Resume::default()), true);
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            self.remember(&grants).await?;
            return Ok(self.spawn(journal, agent, updates));
        }
    }

    /// Takes up every run that was left behind by a process that died. Returns those it drives now.
    pub async fn recover(&self) -> Result<Vec<Execution>, RunnerError> {
        let store = &self.inner.ports.store;
        let claim = Claim { owner: store.node.clone(), run: None, lease: store.lease, limit: 64 };
        let mut taken = Vec::new();
        for run in store.runs.claim(&claim).await.map_err(DriveError::from)? {
            match self.take_up(&run, Input::Resume(Resume::default()), None).await {
                Ok(execution) => taken.push(execution),
                // Its agent is not configured here, or its journal is unreadable: another process may know better.
                Err(error) => tracing::warn!(%run, %error, "a run that was left behind cannot be taken up here"),
            }
        }
        Ok(taken)
    }

    async fn check_and_post(&self, run: &RunId, input: &Input) -> Result<(), RunnerError> {
        let journal = self.open(run).await?.0;
        self.check(&journal, input).await?;
        let grants = grants(&journal, &journal.run().accept(input).map_err(RunnerError::Refused)?);
        self.post(run, input).await?;
        self.remember(&grants).await
    }

    async fn remember(&self, grants: &[Grant]) -> Result<(), RunnerError> {
        for grant in grants {
            self.inner.ports.approvals.grant(grant).await.map_err(DriveError::from)?;
        }
        Ok(())
    }

    /// The execution that is under way already.
    fn follow(&self, run: &RunId, mut driving: Driving) -> Execution {
        let (done, rest) = oneshot::channel();
        let updates = self.watch(run);
        let (runner, id) = (self.clone(), run.clone());
        self.inner.tasks.spawn(async move {
            // An error means that the driver is done, which is what is waited for.
            while driving.rests.changed().await.is_ok() {}
            // The run may have come to rest without having seen what was posted.
            let rested = match runner.take_up_idle(&id).await {
                Ok(execution) => execution.rest().await,
                Err(error) => Err(error),
            };
            let _ = done.send(rested);
        });
        Execution { run: run.clone(), updates, rest }
    }

    /// Takes a run up if there is something to do in it.
    fn take_up_idle<'a>(
        &'a self,
        run: &'a RunId,
    ) -> Pin<Box<dyn Future<Output = Result<Execution, RunnerError>> + Send + 'a>> {
        Box::pin(self.take_up(run, Input::Resume(Resume::default()), None))
    }

    pub(super) async fn launch(
        &self,
        mut journal: Journal,
        history: &[Recorded],
        agent: Arc<Agent>,
    ) -> Result<Execution, RunnerError> {
        // Whoever watches from the first event on has to be there before it is written.
        let updates = self.watch(journal.id());
        match self.commit_first(&mut journal, history).await? {
            Progress::Committed => Ok(self.spawn(journal, agent, updates)),
            Progress::CaughtUp => Err(RunnerError::Lost(journal.id().clone())),
        }
    }

    /// The commit that makes the run ours. Watchers are told of the past first.
    async fn commit_first(&self, journal: &mut Journal, history: &[Recorded]) -> Result<Progress, DriveError> {
        self.inner.ports.sinks.iter().for_each(|sink| sink.took_up(journal.id(), history));
        let committed = journal.commit().await;
        if !matches!(committed, Ok(Progress::Committed)) {
            self.lay_down(journal.id());
        }
        committed
    }

    /// Drives the run in a task until it rests.
    fn spawn(&self, mut journal: Journal, agent: Arc<Agent>, updates: Watch) -> Execution {
        let (done, rest) = oneshot::channel();
        let run = journal.id().clone();
        let hint = Hint::default();
        let (rested, rests) = watch_channel::channel(());
        let first = {
            let mut driving = self.inner.driving.lock().unwrap_or_else(PoisonError::into_inner);
            driving.insert(run.clone(), Driving { hint: hint.clone(), rests });
            driving.len() == 1
        };
        if first {
            self.inner.tasks.spawn(self.inner.clone().keep_leases());
        }
        let runner = self.clone();
        self.inner.tasks.spawn(async move {
            let ports = &runner.inner.ports;
            let driven = Driver::new(ports, &agent, &hint).drive(&mut journal).await;
            ports.servers.release(journal.id()).await;
            runner.lay_down(journal.id());
            runner.stop_driving(journal.id());
            drop(rested);
            let report = driven.map(|()| Report::of(journal.id().clone(), journal.run()));
            // A caller that went away does not want the report.
            let _ = done.send(report.map_err(|error| match error {
                DriveError::Owned(node) => RunnerError::DrivenElsewhere { run: journal.id().clone(), node },
                DriveError::Store(_) | DriveError::Corrupt { .. } => error.into(),
            }));
        });
        Execution { run, updates, rest }
    }

    fn stop_driving(&self, run: &RunId) {
        let mut driving = self.inner.driving.lock().unwrap_or_else(PoisonError::into_inner);
        driving.remove(run);
        if driving.is_empty() {
            self.inner.idle.notify_one();
        }
    }

    /// Results have to fit their tool's result schema, edited arguments the tool's input schema.
    async fn check(&self, journal: &Journal, input: &Input) -> Result<(), RunnerError> {
        let Input::Resume(resume) = input else { return Ok(()) };
        let run = journal.run();
        let mut refusals = Vec::new();
        for (id, outcome) in &resume.results {
            let (Some(call), Outcome::Returned(output)) = (run.call(id), outcome) else { continue };
            let (Some(tool), Some(value), false) = (&call.tool, &output.structured, output.is_error) else { continue };
            if tool.output_schema.is_some()
                && let InputFindings::Invalid(problems) = self.inner.ports.inputs.check_result(tool, value).await
            {
                refusals.push(invalid(id, "the result", &problems));
            }
        }
        for (id, decision) in &resume.decisions {
            let Some(edited) = &decision.edited_arguments else { continue };
            let Some(tool) = run.call(id).and_then(|call| call.tool.clone()) else { continue };
            let problems = match edited {
                Arguments::Malformed(_) => vec![Problem::whole("json", "not a JSON object")],
                Arguments::Object(object) => match self.inner.ports.inputs.check(&tool, object, run.budget()).await {
                    InputFindings::Valid => continue,
                    InputFindings::Invalid(problems) => problems,
                },
            };
            refusals.push(invalid(id, "the edited arguments", &problems));
        }
        if refusals.is_empty() { Ok(()) } else { Err(RunnerError::Refused(refusals)) }
    }
}

fn invalid(call: &CallId, what: &str, problems: &[Problem]) -> Refusal {
    let problems = Problem::feedback("not valid:", problems).replace('\n', " ");
    Refusal::Invalid { call_id: call.clone(), what: what.into(), problems: format!("is {problems}") }
}

/// The standing approvals that decisions with a wider scope leave behind.
fn grants(journal: &Journal, events: &[Event]) -> Vec<Grant> {
    use crate::core::run::{Answer, Scope};
    let run = journal.run();
    let granted = events.iter().filter_map(|event| match event {
        Event::ApprovalDecided { call, decision } => Some((call, decision)),
        Event::Started(_)
        | Event::Resumed { .. }
        | Event::ToolsListed { .. }
        | Event::ApprovalsResolved { .. }
        | Event::ModelCalled { .. }
        | Event::ModelReplied { .. }
        | Event::ModelFailed { .. }
        | Event::OutputValidated { .. }
        | Event::TierSelected { .. }
        | Event::CallChecked { .. }
        | Event::CallsStarted { .. }
        | Event::CallCompleted { .. }
        | Event::MessageAdded { .. }
        | Event::Ended { .. } => None,
    });
    granted
        .filter(|(_, decision)| decision.answer == Answer::Approve && decision.scope == Scope::Session)
        .filter_map(|(call, decision)| {
            let tool = run.call(call)?.tool.as_ref()?;
            let key = crate::ports::ApprovalKey {
                session: run.started().session.clone(),
                tool: tool.name.clone(),
                hash: tool.hash.clone(),
            };
            Some(Grant { key, by: decision.by.clone() })
        })
        .collect()
}

/// A run that has nothing to be driven for.
fn at_rest(journal: &Journal) -> Execution {
    let (done, rest) = oneshot::channel();
    let run = journal.id().clone();
    let _ = done.send(Ok(Report::of(run.clone(), journal.run())));
    let updates = Hub::closed();
    Execution { run, updates, rest }
}
