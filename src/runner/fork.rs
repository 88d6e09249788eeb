//! A new run that begins as another one did, up to a position. The other run is not touched.

use serde_json::{Map, Value};

use super::given::require_servers;
use super::{AgentRunner, Execution, RunnerError};
use crate::core::chat::Message;
use crate::core::id::RunId;
use crate::core::run::{Event, Run, TighterLimits, Trigger};
use crate::core::trace::Trace;
use crate::driver::{DriveError, Journal};

/// What a fork is to be. Whose run it is, and on whose behalf it acts, it has from the run it copies.
#[derive(Clone, Debug, Default)]
pub struct Fork {
    /// How many events are copied; default: the longest beginning from which the model is asked, or something is waited
    /// for ([`Run::fork_position`]).
    pub at: Option<u64>,
    /// Something to say to the new run.
    pub message: Option<Message>,
    /// Limits of the new run, within its agent's. Those that are not named are the other run's, as far as the agent's
    /// allow. Nothing that the other run used counts.
    pub limits: TighterLimits,
    /// The caller's own facts about it, instead of those of the run it copies.
    pub metadata: Option<Map<String, Value>>,
    /// Who asks for it, as whoever let them in knows them.
    pub by: Option<String>,
    /// The id it is to have, one that [`AgentRunner::fresh_id`] made; default: a fresh one.
    pub id: Option<RunId>,
    /// The trace to continue.
    pub trace: Option<Trace>,
}

impl AgentRunner {
    /// Copies the first events of a run into a new one, adds a message if one is given, and drives the new run, with a
    /// budget of its own. A position at which the new run would end before it asks the model is refused. A call that
    /// was under way at that position is in doubt in the new run: it is never made a second time on the strength of the
    /// copy. Neither is a consent used twice: one that was not used yet at that position is not copied, and is asked for
    /// again ([`Run::forked`]). Servers that the host application added to the other run are to be
    /// [brought](AgentRunner::inject) for the new one as well, under an id that was made for it before.
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
        let authors = started.authors();
        started.trigger = Trigger::Fork { run: run.clone(), at, authors };
        started.by = by;
        if let Some(metadata) = metadata {
            started.metadata = metadata;
        }
        let agent = self.agent_of(&started.spec)?;
        let ports = &self.inner.ports;
        let mut journal = Journal::begin(
            id.unwrap_or_else(|| self.fresh_id()),
            Event::Started(started.into()),
            ports.store.clone(),
            ports.clock.clone(),
            ports.sinks.clone(),
        )?;
        journal.stage_all(events.collect())?;
        // Watchers were shown the copied facts when they happened.
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
