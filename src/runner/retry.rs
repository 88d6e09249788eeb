//! Retry: a fork of an ended run that stays in the run's session, and takes its place there.

use serde_json::{Map, Value};
use toolgate_core::chat::Message;
use toolgate_core::id::{ModelName, RunId};
use toolgate_core::run::{Event, Run, TighterLimits, Trigger};
use toolgate_core::trace::Trace;
use toolgate_driver::DriveError;

use super::fork::{RunCopy, check_length};
use super::{AgentRunner, Execution, RunnerError};

/// The parameters of a retry. It inherits session, predecessor, tenant and principal from the original run.
#[derive(Clone, Debug, Default)]
pub struct Retry {
    /// The length that the journal of the original run must have, if the caller saw one.
    pub version: Option<u64>,
    /// A message to the new run. After an answer, the new run replies to it; without a message, it answers again.
    pub message: Option<Message>,
    /// Limits of the new run, as for a [fork](crate::Fork::limits).
    pub limits: TighterLimits,
    /// The permission mode of the new run, one of those of the agent; `None` for that of the original run.
    pub mode: Option<String>,
    /// The model of the new run, one of those of the agent, if no reply is copied: copied replies are those of the original
    /// run's model, which goes on with them. `None` for that model in any case.
    pub model: Option<ModelName>,
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
    /// Runs an ended run again, whatever its ending, from the position that a [`fork`](Self::fork) without a position
    /// has. The new run takes the place of the original one in their session: its messages replace the original run's
    /// in the conversation, and the session's grants cover it. The original run has to be the latest of its session. It
    /// does not change.
    pub async fn retry(&self, run: &RunId, retry: Retry) -> Result<Execution, RunnerError> {
        let Retry { version, message, limits, mode, model, metadata, by, id, trace } = retry;
        let corrupt = |reason| DriveError::Corrupt { run: run.clone(), reason };
        let (journal, history) = self.open_unless_over(run).await?;
        if journal.run().ending().is_none() {
            return Err(RunnerError::NotEnded { run: run.clone(), status: journal.run().status() });
        }
        let mut source: Vec<Event> = history.into_iter().map(|recorded| recorded.event).collect();
        check_length(&source, version)?;
        let (agent, limits, _) = self.limits_of_copy(run, &source, &limits).await?;
        let position = Run::fork_position(&source, message.is_some(), &limits).map_err(corrupt)?;
        source.truncate(usize::try_from(position).unwrap_or(usize::MAX));
        let is_replied = source.iter().any(|event| matches!(event, Event::ModelReplied { .. }));
        let mut added = Vec::new();
        if model.is_some() && !is_replied {
            // Failed attempts are those of the other model. Messages that were added during them stay.
            let asked = source.iter().position(|event| matches!(event, Event::ModelCalled { .. }));
            let attempts = source.split_off(asked.unwrap_or(source.len()));
            added.extend(attempts.into_iter().filter_map(|event| {
                let Event::MessageAdded { message } = event else { return None };
                Some(message)
            }));
        }
        let retry_of = |run, at, authors| Trigger::Retry { run, at, authors };
        let id = id.unwrap_or_else(|| self.fresh_id());
        let mut copy = RunCopy::new(run, source, retry_of, id, agent)?;
        copy.choose_mode(mode)?;
        if let Some(model) = model {
            copy.choose_model(&model, is_replied)?;
        }
        copy.begin_own_part(self.trace(trace), limits, added.into_iter().chain(message));
        copy.started.by = by;
        if let Some(metadata) = metadata {
            copy.started.metadata = metadata;
        }
        let (runner, run) = (self.clone(), run.clone());
        self.to_completion(async move { runner.launch_retry(&run, &copy).await }).await?
    }
}
