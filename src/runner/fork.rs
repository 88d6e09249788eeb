//! A new run that begins as another one did, up to a position. The other run is not touched.

use super::{AgentRunner, Execution, RunnerError};
use crate::core::chat::Message;
use crate::core::id::RunId;
use crate::core::run::{Event, Run, Trigger};
use crate::core::trace::Trace;
use crate::driver::{DriveError, Journal};

impl AgentRunner {
    /// Copies the first `at` events (all but the ending, by default) into a new run, adds `message` if one is given,
    /// and drives the new run. A call that was under way at that position is in doubt in the new run: it is never
    /// made a second time on the strength of the copy. Neither is a consent used twice: one that was not used yet at that
    /// position is not copied, and is asked for again ([`Run::forked`]). A caller's `trace` is continued.
    pub async fn fork(
        &self,
        run: &RunId,
        at: Option<u64>,
        message: Option<Message>,
        trace: Option<Trace>,
    ) -> Result<Execution, RunnerError> {
        let mut source = self.journal(run).await?;
        let ends = source.last().is_some_and(|last| matches!(last.event, Event::Ended { .. }));
        let length = source.len() as u64;
        let longest = length - u64::from(ends);
        let at = at.unwrap_or(longest);
        if at == 0 || at > longest {
            return Err(RunnerError::NoSuchPosition { run: run.clone(), length, at });
        }
        source.truncate(usize::try_from(at).unwrap_or(usize::MAX));
        let source = source.into_iter().map(|recorded| recorded.event).collect();
        let copied = Run::forked(source).map_err(|reason| DriveError::Corrupt { run: run.clone(), reason })?;
        let at = copied.len() as u64;
        let mut events = copied.into_iter();
        let Some(Event::Started(first)) = events.next() else { return Err(RunnerError::NoSuchRun(run.clone())) };
        let mut started = (*first).clone();
        started.trigger = Trigger::Fork { run: run.clone(), at };
        let agent = self.agent_of(&started.spec)?;
        let ports = &self.inner.ports;
        let mut journal = Journal::begin(
            self.inner.ids.run_id(),
            Event::Started(started.into()),
            ports.store.clone(),
            ports.clock.clone(),
            ports.sinks.clone(),
        )?;
        journal.stage_all(events.collect())?;
        // The copied facts were told when they happened.
        let history = journal.staged().to_vec();
        journal.stage(self.resumed(trace))?;
        if let Some(message) = message {
            journal.stage(Event::MessageAdded { message })?;
        }
        self.launch(journal, &history, agent).await
    }
}
