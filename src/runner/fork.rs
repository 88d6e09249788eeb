//! Fork: a new run with the first events of another one. The other run does not change.

use serde_json::{Map, Value};
use toolgate_core::chat::Message;
use toolgate_core::id::{RunId, SessionId};
use toolgate_core::run::{Event, Run, TighterLimits, Trigger};
use toolgate_core::trace::Trace;
use toolgate_driver::{DriveError, Journal};

use super::resume_input::require_servers;
use super::{AgentRunner, Execution, RunnerError};

/// The parameters of a fork. It inherits tenant and principal from the original run.
#[derive(Clone, Debug, Default)]
pub struct Fork {
    /// How many events are copied; default: the longest prefix after which the model is called or the run is pending
    /// ([`Run::fork_position`]).
    pub at: Option<u64>,
    /// A message to the new run.
    pub message: Option<Message>,
    /// Limits of the new run, within its agent's. Limits that are not set are those of the original run, as far as the
    /// agent's limits allow. Usage of the original run does not count.
    pub limits: TighterLimits,
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
    /// used twice either: if the approved call was not sent before that position, the approval is not copied and is
    /// requested again ([`Run::forked`]). Servers that the host application injected into the original run must be
    /// [injected](AgentRunner::inject) into the new run as well, under an id that was created in advance.
    pub async fn fork(&self, run: &RunId, fork: Fork) -> Result<Execution, RunnerError> {
        let Fork { at, message, limits, metadata, by, id, trace } = fork;
        let corrupt = |reason| DriveError::Corrupt { run: run.clone(), reason };
        let mut source: Vec<Event> = self.journal(run).await?.into_iter().map(|recorded| recorded.event).collect();
        let ends = source.last().is_some_and(|last| matches!(last, Event::Ended { .. }));
        let length = source.len() as u64;
        let position = match at {
            Some(at) if at == 0 || at > length - u64::from(ends) => {
                return Err(RunnerError::NoSuchPosition { run: run.clone(), length, at });
            }
            Some(at) => at,
            None => Run::fork_position(&source, message.is_some()).map_err(corrupt)?,
        };
        source.truncate(usize::try_from(position).unwrap_or(usize::MAX));
        let latest = Run::fork_position(&source, false).map_err(corrupt)?;
        let copied = Run::forked(source).map_err(corrupt)?;
        let at = copied.len() as u64;
        let mut events = copied.into_iter();
        let Some(Event::Started(first)) = events.next() else { return Err(RunnerError::NoSuchRun(run.clone())) };
        let mut started = (*first).clone();
        let id = id.unwrap_or_else(|| self.fresh_id());
        let authors = started.authors();
        started.trigger = Trigger::Fork { run: run.clone(), at, authors };
        started.by = by;
        // A fork is a conversation of its own: the source's session goes on without it.
        started.session = SessionId::from(id.as_str());
        if let Some(metadata) = metadata {
            started.metadata = metadata;
        }
        let agent = self.agent_of(&started.spec)?;
        let ports = &self.inner.ports;
        let mut journal = Journal::begin(
            id,
            ports.store.resolved(&Event::Started(started.into())).await.map_err(DriveError::from)?,
            None,
            ports.store.clone(),
            ports.clock.clone(),
            ports.sinks.clone(),
        )?;
        journal.stage_all(events.collect())?;
        // Watchers received the copied events when they happened.
        let history = journal.staged().to_vec();
        let limits = journal.run().started().spec.limits.forked(&agent.limits, &limits);
        let limits = limits.map_err(|limit| RunnerError::WiderLimit { agent: agent.name.clone(), limit })?;
        journal.stage(Event::Resumed { trace: self.trace(trace), limits: Some(limits.into()) })?;
        if let Some(message) = message {
            journal.stage(Event::MessageAdded { message })?;
        }
        if let Some(ending) = journal.run().foregone_ending() {
            return Err(RunnerError::ForkEnds { run: run.clone(), at: position, status: ending.status(), latest });
        }
        let spec = &journal.run().started().spec;
        require_servers(journal.id(), spec, &agent, &self.inner.injections.of(journal.id()))?;
        let runner = self.clone();
        self.to_completion(async move { runner.launch(journal, &history, agent).await }).await?
    }
}
