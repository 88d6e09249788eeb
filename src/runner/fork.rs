//! A new run that copies a prefix of another one's journal. The other run is not touched.

use super::{AgentRunner, Execution, RunnerError};
use crate::core::chat::Message;
use crate::core::id::{CallId, RunId};
use crate::core::run::{Answer, Event, Recorded, Trigger};
use crate::driver::Journal;

impl AgentRunner {
    /// Copies the first `at` events (all but the ending, by default) into a new run, adds `message` if one is given,
    /// and drives the new run. A call that was under way at that position is in doubt in the new run: it is never
    /// made a second time on the strength of the copy. Neither is an approval spent twice: a copy that would end between
    /// a yes and the call it was for ends before the yes.
    pub async fn fork(&self, run: &RunId, at: Option<u64>, message: Option<Message>) -> Result<Execution, RunnerError> {
        let mut source = self.journal(run).await?;
        let ends = source.last().is_some_and(|last| matches!(last.event, Event::Ended { .. }));
        let length = source.len() as u64;
        let longest = length - u64::from(ends);
        let at = at.unwrap_or(longest);
        if at == 0 || at > longest {
            return Err(RunnerError::NoSuchPosition { run: run.clone(), length, at });
        }
        source.truncate(usize::try_from(at).unwrap_or(usize::MAX));
        source.truncate(first_unspent(&source).unwrap_or(source.len()));
        let at = source.len() as u64;
        let mut events = source.into_iter().map(|recorded| recorded.event);
        let Some(Event::Started(first)) = events.next() else { return Err(RunnerError::NoSuchRun(run.clone())) };
        let mut started = (*first).clone();
        started.trigger = Trigger::Fork { run: run.clone(), at };
        let agent = self.agent(&started.spec.agent)?;
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
        journal.stage(self.resumed(None))?;
        if let Some(message) = message {
            journal.stage(Event::MessageAdded { message })?;
        }
        self.launch(journal, &history, agent).await
    }
}

/// The position of the first yes, or answer to a server, after which its call was neither sent nor answered.
fn first_unspent(events: &[Recorded]) -> Option<usize> {
    let spends = |recorded: &Recorded, call: &CallId| {
        matches!(&recorded.event, Event::CallsStarted { calls } if calls.contains(call))
            || matches!(&recorded.event, Event::CallCompleted { call: completed, .. } if completed == call)
    };
    let is_unspent = |(index, recorded): (usize, &Recorded)| {
        let spent_by = match &recorded.event {
            Event::ApprovalDecided { call, decision } => (decision.answer == Answer::Approve).then_some(call),
            Event::InputGiven { call, .. } => Some(call),
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
            | Event::CallDrifted { .. }
            | Event::Extended { .. }
            | Event::Expired { .. }
            | Event::QuestionAnswered { .. }
            | Event::CallsStarted { .. }
            | Event::CallCompleted { .. }
            | Event::InputRequired { .. }
            | Event::TaskStarted { .. }
            | Event::MessageAdded { .. }
            | Event::Ended { .. } => None,
        };
        spent_by.is_some_and(|call| !events.iter().skip(index + 1).any(|later| spends(later, call)))
    };
    events.iter().enumerate().position(is_unspent)
}
