//! The loop that drives a run: ask the run what is next, do it, record how it went. One loop for streaming and
//! blocking callers alike; each step touches one port and lives in a file of its own.
//!
//! The order is always the same: fold first, append second, act third. What is intended (a model call, a tool call) is
//! durable before it is sent, so that a crash leaves no effect the journal does not know of.

mod agent;
mod approvals;
mod builtin;
mod calls;
mod check;
mod drift;
mod elicitation;
mod interrupt;
mod journal;
mod listing;
mod media;
mod model;
mod output;
mod paths;
mod results;
mod shown;
mod standing;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

pub use agent::{Agent, Fallback};
pub use elicitation::ElicitationHold;
pub use interrupt::Hint;
pub(crate) use journal::fold;
pub use journal::{DriveError, Journal, Progress, Store};
pub use results::ServerResults;

use shown::Shown;

use crate::core::error::{ErrorCode, Failure};
use crate::core::id::{ModelName, ServerId};
use crate::core::run::{Ending, Event, Step};
use crate::core::tool::Toolset;
use crate::ports::{
    ApprovalCache, BlobStore, Clock, ContextBuilder, Conversation, EventSink, McpServers, OutputValidator,
    PathResolver, ToolInputValidator,
};

/// The world as the loop sees it.
#[derive(Clone)]
pub struct Ports {
    /// Where journals live, and who we are to it.
    pub store: Store,
    /// Where media and large results are kept. Without it media stay in the journal, and large results are cut.
    pub blobs: Option<Arc<dyn BlobStore>>,
    /// How the results of servers are taken; the defaults hold for those that are not named.
    pub results: Arc<BTreeMap<ServerId, ServerResults>>,
    /// MCP servers.
    pub servers: Arc<dyn McpServers>,
    /// Approvals given before.
    pub approvals: Arc<dyn ApprovalCache>,
    /// Checks arguments.
    pub inputs: Arc<dyn ToolInputValidator>,
    /// Checks answers.
    pub outputs: Arc<dyn OutputValidator>,
    /// Resolves links of paths.
    pub paths: Arc<dyn PathResolver>,
    /// Builds what the model reads.
    pub context: Arc<dyn ContextBuilder>,
    /// Whoever watches.
    pub sinks: Arc<[Arc<dyn EventSink>]>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// How often a running step looks whether somebody ended the run elsewhere.
    pub poll: Duration,
    /// How long calls are held open for the answers to what their servers ask.
    pub hold: Arc<ElicitationHold>,
    /// The turn to read what is kept: a read holds a whole result in memory, and models may ask for many.
    pub reads: Arc<Semaphore>,
}

/// Where a step leaves a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// There is more to do.
    GoesOn,
    /// It is over, or waits for somebody.
    Rests,
}

/// Drives one run until it rests.
pub struct Driver<'a> {
    ports: &'a Ports,
    agent: &'a Agent,
    hint: &'a Hint,
    /// One for each model that was asked: none of them sees what another one's adapter keeps.
    conversations: BTreeMap<ModelName, Box<dyn Conversation>>,
    /// What servers and caller offer, and the generation in which it was found.
    live: Option<(u64, Arc<Toolset>)>,
    /// The turn in which the model was last to be shown other tools than before.
    relisted: Option<u32>,
    /// The conversation as models read it.
    shown: Shown,
}

impl<'a> Driver<'a> {
    /// A driver for one execution. `hint` wakes it when somebody in this process writes to the run.
    pub fn new(ports: &'a Ports, agent: &'a Agent, hint: &'a Hint) -> Self {
        Self { ports, agent, hint, conversations: BTreeMap::new(), live: None, relisted: None, shown: Shown::default() }
    }

    /// Drives until the run is over or waits for somebody. Everything that happened is in the journal by then.
    pub async fn drive(&mut self, journal: &mut Journal) -> Result<(), DriveError> {
        while self.step(journal).await? == Pace::GoesOn {}
        Ok(())
    }

    /// Takes one step. Between two steps nothing is in flight, so that whoever stops there breaks nothing.
    pub async fn step(&mut self, journal: &mut Journal) -> Result<Pace, DriveError> {
        self.enforce_deadline(journal)?;
        match journal.run().next() {
            Step::Record(events) => journal.stage_all(events)?,
            Step::ListTools => self.list_tools(journal).await?,
            Step::ResolveApprovals(tools) => self.resolve_approvals(journal, &tools).await?,
            Step::CallModel { attempt, offer, after } => self.call_model(journal, attempt, offer, after).await?,
            Step::ValidateOutput(answer) => self.validate_output(journal, &answer).await?,
            Step::CheckCalls(calls) => self.check_calls(journal, &calls).await?,
            Step::RunTier(calls) => self.run_tier(journal, calls).await?,
            Step::Wait(_) if !journal.late().is_empty() => journal.stage_all(journal.late())?,
            Step::Wait(_) | Step::Done(_) => match journal.commit().await? {
                Progress::Committed => return Ok(Pace::Rests),
                Progress::CaughtUp => {}
            },
        }
        Ok(Pace::GoesOn)
    }

    /// A run that is at work beyond its deadline has failed; one that only waits has expired.
    fn enforce_deadline(&self, journal: &mut Journal) -> Result<(), DriveError> {
        let is_at_work = !matches!(journal.run().next(), Step::Wait(_));
        let over = is_at_work
            && journal.run().ending().is_none()
            && self.time_left(journal).is_some_and(|left| left.is_zero());
        if !over {
            return Ok(());
        }
        let seconds = journal.run().started().spec.limits.deadline_s.unwrap_or_default();
        let message = format!("the run did not end within its deadline of {seconds} s (limits.deadline_s)");
        let error = Failure::new(ErrorCode::DeadlineExceeded, message);
        journal.stage(Event::Ended { ending: Ending::Failed { error } })
    }

    /// Wall-clock time until the run's deadline; `None` without one.
    fn time_left(&self, journal: &Journal) -> Option<Duration> {
        let left = journal.deadline()?.duration_since(self.ports.clock.now());
        Some(Duration::try_from(left).unwrap_or_default())
    }
}
