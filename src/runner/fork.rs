//! Fork: a new run with the first events of another one. The other run does not change.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};
use toolgate_core::chat::Message;
use toolgate_core::id::{ModelName, RunId, SessionId};
use toolgate_core::run::{Event, InvalidEvent, Limits, ResumeError, Run, Started, TighterLimits, Trigger};
use toolgate_core::trace::Trace;
use toolgate_driver::{Agent, DriveError, Journal};
use toolgate_ports::{SessionClaim, SessionSettings};

use super::request::choose_model;
use super::resume_input::{require_mode, require_servers};
use super::{AgentRunner, Execution, RunnerError};

/// The parameters of a fork. It inherits tenant and principal from the original run.
#[derive(Clone, Debug, Default)]
pub struct Fork {
    /// How many events are copied; default: the longest prefix after which the model is called or the run is pending
    /// ([`Run::fork_position`]).
    pub at: Option<u64>,
    /// The length that the journal of the original run must have, if the caller saw one.
    pub version: Option<u64>,
    /// A message to the new run.
    pub message: Option<Message>,
    /// Limits of the new run, within its agent's. Limits that are not set are those of the original run, as far as the
    /// agent's limits allow. Usage of the original run does not count.
    pub limits: TighterLimits,
    /// The permission mode of the new run, one of those of the agent; `None` for that of the original run.
    pub mode: Option<String>,
    /// Metadata of the new run, in place of the original run's.
    pub metadata: Option<Map<String, Value>>,
    /// The authenticated caller.
    pub by: Option<String>,
    /// The id of the new run, from [`AgentRunner::fresh_id`]; default: a new one.
    pub id: Option<RunId>,
    /// The parent trace.
    pub trace: Option<Trace>,
}

impl AgentRunner {
    /// Copies the first events of a run into a new one, adds the message if there is one, and executes the new run with
    /// its own budget. A position at which the new run would end before it calls the model is rejected. A call that was
    /// in progress at that position is in doubt in the new run: the copy alone never sends it again. An approval is not
    /// used twice either: if the approved call was not sent before that position, the approval is not copied, and the policy
    /// of the new run judges the call. It also judges a call whose approval is pending ([`Run::forked`]). Servers that the
    /// host application injected into the original run must be [injected](AgentRunner::inject) into the new run as well,
    /// under an id that was created in advance.
    pub async fn fork(&self, run: &RunId, fork: Fork) -> Result<Execution, RunnerError> {
        let Fork { at, version, message, limits, mode, metadata, by, id, trace } = fork;
        let corrupt = |reason| DriveError::Corrupt { run: run.clone(), reason };
        let mut source = self.events_of(run).await?;
        if let Some(first) = source.first_mut() {
            *first = self.inner.ports.store.resolved(first).await.map_err(DriveError::from)?;
        }
        let ends = source.last().is_some_and(|last| matches!(last, Event::Ended { .. }));
        let length = source.len() as u64;
        check_length(&source, version)?;
        if let Some(at) = at {
            if at == 0 || at > length - u64::from(ends) {
                return Err(RunnerError::NoSuchPosition { run: run.clone(), length, at });
            }
            source.truncate(usize::try_from(at).unwrap_or(usize::MAX));
        }
        let (agent, limits, settings) = self.limits_of_copy(run, &source, &limits).await?;
        let position = match at {
            Some(at) => at,
            None => Run::fork_position(&source, message.is_some(), &limits).map_err(corrupt)?,
        };
        source.truncate(usize::try_from(position).unwrap_or(usize::MAX));
        let latest = Run::fork_position(&source, false, &limits).map_err(corrupt)?;
        let id = id.unwrap_or_else(|| self.fresh_id());
        let fork_of = |run, at, authors| Trigger::Fork { run, at, authors };
        let mut copy = RunCopy::new(run, source, fork_of, id, agent)?;
        copy.choose_mode(mode)?;
        copy.begin_own_part(self.trace(trace), limits, message);
        if let Some(ending) = copy.fold().map_err(corrupt)?.and_then(|copy| copy.foregone_ending()) {
            return Err(RunnerError::ForkEnds { run: run.clone(), at: position, status: ending.status(), latest });
        }
        copy.started.by = by;
        // A fork is a conversation of its own: the source's session goes on without it.
        copy.started.session = SessionId::from(copy.id.as_str());
        if let Some(metadata) = metadata {
            copy.started.metadata = metadata;
        }
        copy.started.predecessor = copy.started.predecessor.map(|known| known.copied_for(&copy.id));
        copy.started.restart = None;
        let claim = self.claim_of_fork(&copy, settings)?;
        let runner = self.clone();
        self.to_completion(async move { runner.launch_copy(&copy, claim).await }).await?
    }

    /// The events of a run.
    pub(super) async fn events_of(&self, run: &RunId) -> Result<Vec<Event>, RunnerError> {
        Ok(self.journal(run).await?.into_iter().map(|recorded| recorded.event).collect())
    }

    /// The agent of a run that copies these events, and the limits of that run: the named ones, within the agent's and the
    /// session's; and the settings of a session of its own.
    pub(super) async fn limits_of_copy(
        &self,
        run: &RunId,
        source: &[Event],
        named: &TighterLimits,
    ) -> Result<(Arc<Agent>, Limits, SessionSettings), RunnerError> {
        let folded = Run::replay(source).map_err(|reason| DriveError::Corrupt { run: run.clone(), reason })?;
        let Some(folded) = folded else { return Err(RunnerError::NoSuchRun(run.clone())) };
        let source = folded.started();
        let spec = &source.spec;
        let agent = self.agent_of(spec)?;
        let limits = spec.limits.forked(&agent.limits, named);
        let limits = limits.map_err(|limit| RunnerError::WiderLimit { agent: agent.name.clone(), limit })?;
        let (limits, settings) = self.within_session_of(source, &limits).await?;
        Ok((agent, limits, settings))
    }

    /// Starts the new run, which claims its session if it stays in that of its source.
    pub(super) async fn launch_copy(
        &self,
        copy: &RunCopy,
        claim: Option<SessionClaim>,
    ) -> Result<Execution, RunnerError> {
        let ports = &self.inner.ports;
        require_servers(&copy.id, &copy.started.spec, &copy.agent, &self.inner.injections.servers_of(&copy.id))?;
        let first = Event::Started(copy.started.clone().into());
        let (store, clock, sinks) = (ports.store.clone(), ports.clock.clone(), ports.sinks.clone());
        let mut journal = Journal::begin(copy.id.clone(), first, claim, store, clock, sinks)?;
        journal.stage_all(copy.events.clone())?;
        // Watchers received the copied events when they happened.
        let history = journal.staged().to_vec();
        journal.stage_all(copy.own.clone())?;
        self.launch_journal(journal, &history, copy.agent.clone()).await
    }
}

/// Refuses a source of another length than the one that the caller saw, where one is given.
pub(super) fn check_length(source: &[Event], seen: Option<u64>) -> Result<(), RunnerError> {
    let actual = source.len() as u64;
    match seen.filter(|expected| *expected != actual) {
        Some(expected) => {
            let ending =
                source.last().and_then(|last| if let Event::Ended { ending } = last { Some(ending) } else { None });
            let status = ending.map_or("not over", |ending| ending.status().as_str()).to_owned();
            Err(RunnerError::Refused(vec![ResumeError::VersionConflict { expected, actual, status }]))
        }
        None => Ok(()),
    }
}

/// A new run that begins with a copy of another one.
pub(super) struct RunCopy {
    pub(super) id: RunId,
    pub(super) started: Started,
    /// The copied events after the first one.
    events: Vec<Event>,
    /// The events that begin its own part.
    own: Vec<Event>,
    agent: Arc<Agent>,
}

impl RunCopy {
    /// A copy of these events of a run, without unused consents. The trigger gets the run, the number of copied events,
    /// and the authors of the run.
    pub(super) fn new(
        run: &RunId,
        source: Vec<Event>,
        trigger: impl FnOnce(RunId, u64, BTreeSet<String>) -> Trigger,
        id: RunId,
        agent: Arc<Agent>,
    ) -> Result<Self, RunnerError> {
        let copied = Run::forked(source).map_err(|reason| DriveError::Corrupt { run: run.clone(), reason })?;
        let at = copied.len() as u64;
        let mut events = copied.into_iter();
        let Some(Event::Started(first)) = events.next() else { return Err(RunnerError::NoSuchRun(run.clone())) };
        let mut started = Arc::unwrap_or_clone(first);
        started.trigger = trigger(run.clone(), at, started.authors());
        Ok(Self { id, started, events: events.collect(), own: Vec::new(), agent })
    }

    /// Gives it this permission mode.
    pub(super) fn choose_mode(&mut self, mode: Option<String>) -> Result<(), RunnerError> {
        if let Some(mode) = mode {
            require_mode(&self.agent, &mode)?;
            self.started.spec.mode = Some(mode);
        }
        Ok(())
    }

    /// Gives it this model, unless a reply was copied: the model that wrote it goes on.
    pub(super) fn choose_model(&mut self, model: &ModelName, is_replied: bool) -> Result<(), RunnerError> {
        let mut spec = self.started.spec.clone();
        choose_model(&mut spec, &self.agent, model)?;
        if !is_replied {
            self.started.spec = spec;
        }
        Ok(())
    }

    /// Begins its own part, with these limits and messages.
    pub(super) fn begin_own_part(&mut self, trace: Trace, limits: Limits, messages: impl IntoIterator<Item = Message>) {
        self.own.push(Event::Resumed { trace, limits: Some(limits.into()) });
        self.own.extend(messages.into_iter().map(|message| Event::MessageAdded { message }));
    }

    /// The message that it is listed under: its own, or the first of the run that it copies.
    pub(super) fn message(&self) -> &Message {
        let own = self
            .own
            .iter()
            .find_map(|event| if let Event::MessageAdded { message } = event { Some(message) } else { None });
        own.unwrap_or(&self.started.input)
    }

    /// The state in which its own part begins.
    fn fold(&self) -> Result<Option<Run>, InvalidEvent> {
        let first = Event::Started(self.started.clone().into());
        Run::replay([&first].into_iter().chain(&self.events).chain(&self.own))
    }
}
