//! Log records at fixed points of every run (FEATURES 2.56). The core never logs; this watcher does, from the lifecycle
//! events. Records name calls and tools, never arguments or results.

use jiff::Timestamp;
use tracing::{debug, error, info, warn};

use crate::core::error::Failure;
use crate::core::id::RunId;
use crate::core::run::{Event, Recorded};
use crate::ports::{EventSink, Update};
use crate::telemetry::lifecycle::{CallRef, Content, Fact, Lifecycle, LifecycleEvent};
use crate::telemetry::per_run::PerRun;

/// A watcher that writes log records.
#[derive(Debug, Default)]
pub struct LogSink {
    runs: PerRun<Lifecycle>,
}

impl LogSink {
    /// A sink that has seen nothing yet.
    pub fn new() -> Self {
        Self::default()
    }
}

impl EventSink for LogSink {
    fn observe(&self, run: &RunId, update: &Update) {
        let Update::Recorded(recorded) = update else { return };
        let new = || Lifecycle::new(run.clone(), Content::Omit);
        let events = if matches!(recorded.event, Event::Started(_)) {
            self.runs.with_new(run, new, |lifecycle| lifecycle.observe(recorded))
        } else {
            let known = self.runs.with(run, |lifecycle| lifecycle.observe(recorded));
            known.unwrap_or_else(|| new().observe(recorded)) // from outside, about a run that nobody drives here
        };
        if matches!(recorded.event, Event::Ended { .. }) {
            self.runs.forget(run);
        }
        events.iter().for_each(record);
    }

    fn took_up(&self, run: &RunId, history: &[Recorded]) {
        let mut lifecycle = Lifecycle::new(run.clone(), Content::Omit);
        for recorded in history {
            lifecycle.observe(recorded);
        }
        self.runs.put(run, lifecycle);
    }

    fn laid_down(&self, run: &RunId, _at: Timestamp) {
        info!(target: "toolgate::run", %run, "waiting for others");
        self.runs.forget(run);
    }
}

fn record(event: &LifecycleEvent) {
    let (run, iteration) = (&event.run_id, event.iteration);
    match &event.fact {
        Fact::Started { agent, model, .. } => {
            info!(target: "toolgate::run", %run, %agent, %model, "started");
        }
        Fact::Resumed { .. } => info!(target: "toolgate::run", %run, "resumed"),
        Fact::ToolsListed { tools, left_out, changed } => {
            info!(target: "toolgate::run", %run, tools = tools.len(), left_out = left_out.len(), "registration complete");
            for tool in changed {
                warn!(target: "toolgate::run", %run, %tool, "its server changed its definition during the run");
            }
            for left in left_out {
                let server = left.server.as_ref().map_or("-", |server| server.as_str());
                let tool = left.tool.as_deref().unwrap_or("*");
                warn!(target: "toolgate::run", %run, server, tool, reason = left.reason, "not offered");
            }
        }
        Fact::ModelReplied { tool_calls, .. } if !tool_calls.is_empty() => {
            info!(target: "toolgate::run", %run, iteration, calls = named(tool_calls), "requested tool calls");
        }
        Fact::ModelRetrying { model, attempt, instead_of: Some(before) } => {
            warn!(target: "toolgate::run", %run, iteration, attempt, %model, instead_of = %before, "fell back");
        }
        Fact::ModelFailed { model, attempt, error: Failure { code, message, .. }, .. } => {
            warn!(target: "toolgate::run", %run, iteration, attempt, %model, %code, reason = message, "model call failed");
        }
        Fact::McpExecuting { call } => {
            info!(target: "toolgate::run", %run, iteration, call = %call.call_id, tool = call.name, "invoked MCP");
        }
        Fact::InputRequired { call, asks, .. } => {
            let asks = asks.len();
            info!(target: "toolgate::run", %run, iteration, call = %call.call_id, tool = call.name, asks, "server asks");
        }
        Fact::TaskStarted { call, task_id, .. } => {
            info!(target: "toolgate::run", %run, iteration, call = %call.call_id, tool = call.name, task_id, "became a task");
        }
        Fact::ExternalRequested { call } => {
            info!(target: "toolgate::run", %run, iteration, call = %call.call_id, tool = call.name, "prepared external");
        }
        Fact::McpCompleted { call, error: Some(kind), duration_ms, .. } => {
            error!(
                target: "toolgate::run", %run, iteration, call = %call.call_id, tool = call.name, kind, duration_ms,
                "MCP invocation failed"
            );
        }
        Fact::McpCompleted { call, problems, .. } if !problems.is_empty() => {
            warn!(
                target: "toolgate::run", %run, iteration, call = %call.call_id, tool = call.name,
                problems = problems.len(), "the structured result does not fit the tool's output schema"
            );
        }
        Fact::Rejected { call, reason, .. } => {
            let reason = reason.as_str();
            info!(target: "toolgate::run", %run, iteration, call = %call.call_id, tool = call.name, reason, "rejected");
        }
        Fact::ValidationFailed { target: "output", problems, .. } => {
            warn!(target: "toolgate::run", %run, iteration, problems = problems.len(), "response invalid");
        }
        Fact::BudgetExhausted { used, max } => {
            warn!(target: "toolgate::run", %run, iteration, used, max, "budget exhausted");
        }
        Fact::Completed { .. } => info!(target: "toolgate::run", %run, iteration, status = "completed", "finalized"),
        Fact::Cancelled { .. } => info!(target: "toolgate::run", %run, iteration, status = "cancelled", "finalized"),
        Fact::Failed { status, error: Failure { code, message, .. }, .. } => {
            let status = status.as_str();
            error!(target: "toolgate::run", %run, iteration, status, %code, reason = message, "finalized");
        }
        Fact::Pending { .. }
        | Fact::ContextBuildStarted
        | Fact::ContextBuildSuccess
        | Fact::ApprovalsResolved { .. }
        | Fact::ModelCalled { .. }
        | Fact::ModelRetrying { .. }
        | Fact::ModelReplied { .. }
        | Fact::TierSelected { .. }
        | Fact::McpCompleted { .. }
        | Fact::BuiltinExecuting { .. }
        | Fact::BuiltinCompleted { .. }
        | Fact::ApprovalExpired { .. }
        | Fact::PendingExpired { .. }
        | Fact::PendingExtended { .. }
        | Fact::Drifted { .. }
        | Fact::QuestionAsked { .. }
        | Fact::QuestionAnswered { .. }
        | Fact::InputGiven { .. }
        | Fact::ExternalCompleted { .. }
        | Fact::ApprovalRequested { .. }
        | Fact::ApprovalDecided { .. }
        | Fact::ValidationFailed { .. }
        | Fact::OutputValidated
        | Fact::MessageAdded { .. }
        | Fact::Fragment(_) => debug!(target: "toolgate::run", %run, iteration, event = event.name()),
    }
}

fn named(calls: &[CallRef]) -> String {
    let named: Vec<String> = calls.iter().map(|call| format!("{} {}", call.name, call.call_id)).collect();
    named.join(", ")
}
