//! Driver: the loop that executes a run. It asks the run for the next step, executes it, and records the result. One
//! loop serves streaming and blocking callers; each step uses one port and has a file of its own.
//!
//! The order is always the same: fold first, append second, act third. An intent (a model call, a tool call) is durable
//! before it is sent, so that a crash leaves no effect that is missing in the journal.

mod agent;
mod approvals;
mod builtin;
mod calls;
mod check;
mod compaction;
mod drift;
mod elicitation;
mod grants;
mod interrupt;
mod journal;
mod listing;
mod media;
mod model;
mod output;
mod paths;
mod results;
mod rule_limit;
mod segments;
mod spending;
mod tool_limit;
mod tool_results;
mod toolset_cache;
mod waits;
mod wake_signal;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::Semaphore;

pub use agent::{Agent, Fallback, NamedModel, SessionRules};
pub use elicitation::ElicitationHold;
pub use journal::{DriveError, Journal, Progress, Store};
pub use journal::{fold, title_of};
pub use results::ServerResults;
pub use segments::SegmentCache;
pub use tool_limit::ToolLimit;
pub use toolset_cache::ToolsetCache;
pub use wake_signal::WakeSignal;

use toolgate_core::error::{ErrorCode, Failure};
use toolgate_core::id::{ModelName, ServerId};
use toolgate_core::run::{Budget, Ending, Step};
use toolgate_core::tool::{Tool, Toolset, Validation};
use toolgate_ports::{
    ApprovalCache, BlobStore, Clock, ContextBuilder, Conversation, EventSink, Governor, InputFindings, McpServers,
    OutputValidator, PathResolver, RuleCounters, ToolInputValidator,
};

use tool_results::RenderedMessages;
use waits::ServerWaits;

/// The ports that the loop uses.
#[derive(Clone)]
pub struct Ports {
    /// The journals, and the identity of this process.
    pub store: Store,
    /// The store of media and large results. Without it media stay in the journal, and large results are cut.
    pub blobs: Option<Arc<dyn BlobStore>>,
    /// How results of servers are processed; unlisted servers have the defaults.
    pub results: Arc<BTreeMap<ServerId, ServerResults>>,
    pub servers: Arc<dyn McpServers>,
    /// The toolsets that runs share.
    pub toolsets: Arc<ToolsetCache>,
    /// Saved approvals.
    pub approvals: Arc<dyn ApprovalCache>,
    /// Validates arguments.
    pub inputs: Arc<dyn ToolInputValidator>,
    /// Validates answers.
    pub outputs: Arc<dyn OutputValidator>,
    /// Resolves links of paths.
    pub paths: Arc<dyn PathResolver>,
    /// Builds the model's context.
    pub context: Arc<dyn ContextBuilder>,
    /// Decides whether model calls are made.
    pub governor: Option<Arc<dyn Governor>>,
    /// Counts what rules with a limit allow. Without it their calls require approval.
    pub rule_counters: Option<Arc<dyn RuleCounters>>,
    /// Live streams, spans and other observers.
    pub sinks: Arc<[Arc<dyn EventSink>]>,
    pub clock: Arc<dyn Clock>,
    /// The interval at which a running step checks whether the run was ended elsewhere.
    pub poll: Duration,
    /// How long calls are held open for the answers to elicitation requests.
    pub hold: Arc<ElicitationHold>,
    /// Permits for reading stored results: a read holds a whole result in memory, and models may request many.
    pub reads: Arc<Semaphore>,
}

impl Ports {
    /// Checks the arguments of a call. Pinned arguments are refused whatever the validator says.
    pub async fn check_arguments(&self, tool: &Tool, arguments: &Map<String, Value>, budget: &Budget) -> InputFindings {
        match tool.pinned_problems(arguments) {
            problems if problems.is_empty() => self.inputs.check(tool, arguments, budget).await,
            problems => InputFindings::Invalid(problems),
        }
    }

    /// Whether a call with invalid arguments runs all the same. An argument that the operator sets is never the model's.
    pub fn is_advisory(&self, tool: &Tool, arguments: &Map<String, Value>) -> bool {
        let rules = tool.server().and_then(|server| self.results.get(server));
        let is_advisory = rules.is_some_and(|rules| rules.validation == Validation::Advisory);
        is_advisory && tool.pinned_problems(arguments).is_empty()
    }
}

/// The state of a run after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopState {
    /// There is more to do.
    Active,
    /// The run is over or pending.
    Idle,
}

/// Drives one run until it is pending or over.
pub struct Driver<'a> {
    ports: &'a Ports,
    agent: &'a Agent,
    wake: &'a WakeSignal,
    /// One conversation for each model that was called; they share no adapter state.
    conversations: BTreeMap<ModelName, Box<dyn Conversation>>,
    /// The current tools of servers and caller, and the generation in which they were listed.
    live: Option<(u64, Arc<Toolset>)>,
    /// The last turn in which other tools than before were listed for the model.
    relisted: Option<u32>,
    /// The conversation as models read it.
    shown: RenderedMessages,
    waits: ServerWaits,
}

impl<'a> Driver<'a> {
    /// A driver for one execution. `wake` notifies it when this process writes to the run.
    pub fn new(ports: &'a Ports, agent: &'a Agent, wake: &'a WakeSignal) -> Self {
        Self {
            ports,
            agent,
            wake,
            conversations: BTreeMap::new(),
            live: None,
            relisted: None,
            shown: RenderedMessages::default(),
            waits: ServerWaits::default(),
        }
    }

    /// Drives until the run is over or pending. Everything that happened is in the journal on return.
    pub async fn drive(&mut self, journal: &mut Journal) -> Result<(), DriveError> {
        while self.step(journal).await? == LoopState::Active {}
        Ok(())
    }

    /// Takes one step. Between two steps nothing is in flight, so the caller may stop there safely.
    pub async fn step(&mut self, journal: &mut Journal) -> Result<LoopState, DriveError> {
        self.enforce_deadline(journal)?;
        match journal.run().next() {
            Step::Record(events) => journal.stage_all(events)?,
            Step::ListTools => self.list_tools(journal).await?,
            Step::ResolveApprovals(tools) => self.resolve_approvals(journal, &tools).await?,
            Step::CallModel { attempt, tool_access, after } => {
                self.call_model(journal, attempt, tool_access, after).await?
            }
            Step::Compact { attempt, replaces, keeps } => self.compact(journal, attempt, replaces, keeps).await?,
            Step::ValidateOutput(answer) => self.validate_output(journal, &answer).await?,
            Step::CheckCalls(calls) => self.check_calls(journal, &calls).await?,
            Step::RunTier(calls) => self.run_tier(journal, calls).await?,
            Step::Wait(_) if !journal.expired_items().is_empty() => journal.stage_all(journal.expired_items())?,
            Step::Wait(_) | Step::Done(_) => match journal.commit().await? {
                Progress::Committed => return Ok(LoopState::Idle),
                Progress::CaughtUp => {}
            },
        }
        Ok(LoopState::Active)
    }

    /// Ends a run beyond its deadline: a running one has failed, a waiting one has expired.
    fn enforce_deadline(&self, journal: &mut Journal) -> Result<(), DriveError> {
        let is_over = self.time_left(journal).is_some_and(|left| left.is_zero());
        if !is_over || journal.run().ending().is_some() || matches!(journal.run().next(), Step::Wait(_)) {
            return Ok(());
        }
        let seconds = journal.run().started().spec.limits.deadline_s.unwrap_or_default();
        let message = format!("the run did not end within its deadline of {seconds} s (limits.deadline_s)");
        let error = Failure::new(ErrorCode::DeadlineExceeded, message);
        journal.end(Ending::Failed { error })
    }

    /// Wall-clock time until the run's deadline; `None` without one.
    fn time_left(&self, journal: &Journal) -> Option<Duration> {
        let left = journal.deadline()?.duration_since(self.ports.clock.now());
        Some(Duration::try_from(left).unwrap_or_default())
    }
}
