//! Log sink: writes log records at fixed points of every run (FEATURES 2.56), in the words of source 002, which operators
//! search for. The core never logs; this sink does, from the lifecycle events. Records name calls and tools, never
//! arguments or results. Each record names the trace and the span that hold the rest.

use jiff::Timestamp;
use toolgate_core::error::Failure;
use toolgate_core::id::RunId;
use toolgate_core::lifecycle::{CallEnd, CallRef, Content, Lifecycle, LifecycleEvent, LifecycleKind};
use toolgate_core::run::{Event, JournalEntry, PendingItem, Run, Status};
use toolgate_core::tool::ServerAuthorization;
use toolgate_core::trace::SpanContext;
use toolgate_ports::{EventSink, Update};

use super::context::{LogContext, places};
use crate::per_run::PerRun;

/// An event sink that writes log records.
#[derive(Debug, Default)]
pub struct LogSink {
    runs: PerRun<Lifecycle>,
}

impl LogSink {
    /// A sink without runs.
    pub fn new() -> Self {
        Self::default()
    }
}

/// Writes one record: its level, trace context, fields and message. Other log lines about the run are inside a
/// `tracing` span that names the run; these records name it themselves.
macro_rules! record {
    ($level:ident, $place:expr, { $($fields:tt)* } $($message:literal)?) => {
        tracing::$level!(
            target: "toolgate::run", parent: None, run = %$place.run, $($fields)*
            trace_id = $place.trace_id(), span_id = $place.span_id(), $($message)?
        )
    };
}

impl EventSink for LogSink {
    fn observe(&self, run: &RunId, update: &Update) {
        let Update::JournalEntry(recorded) = update else { return };
        let new = || Lifecycle::new(run.clone(), Content::Omit);
        let observe = |lifecycle: &mut Lifecycle| {
            let placed = places(lifecycle, run, recorded);
            let invoked = invoked_tools(lifecycle, &placed).map(|span| LogContext::new(run, Some(span)));
            (placed, invoked)
        };
        let (placed, invoked) = if matches!(recorded.event, Event::Started(_)) {
            self.runs.with_new(run, new, observe)
        } else {
            let known = self.runs.with(run, observe);
            known.unwrap_or_else(|| observe(&mut new())) // from outside, for a run not active here
        };
        if matches!(recorded.event, Event::Ended { .. }) {
            self.runs.forget(run);
        }
        placed.iter().for_each(|(place, event)| record(place, event));
        if let Some(place) = invoked {
            record!(info, place, { external = 0, } "Invoked MCP tools and prepared external tools");
        }
    }

    fn claimed(&self, run: &RunId, history: &[JournalEntry]) {
        let mut lifecycle = Lifecycle::new(run.clone(), Content::Omit);
        for recorded in history {
            lifecycle.observe(recorded);
        }
        self.runs.put(run, lifecycle);
    }

    fn released(&self, run: &RunId, _at: Timestamp) {
        let waiting = self.runs.with(run, |lifecycle| {
            let state = lifecycle.run().filter(|state| state.status() == Status::Pending);
            state.map(|state| (LogContext::new(run, Some(state.execution_context())), external_results(state)))
        });
        if let Some((place, external)) = waiting.flatten() {
            if external > 0 {
                record!(info, place, { external, } "Invoked MCP tools and prepared external tools");
            }
            record!(info, place, {} "run pending");
        }
        self.runs.forget(run);
    }
}

/// The span of a tier whose last MCP call this fact settles, unless the run then waits for external results.
fn invoked_tools(lifecycle: &Lifecycle, events: &[(LogContext<'_>, LifecycleEvent)]) -> Option<SpanContext> {
    let settles = events.iter().any(|(_, event)| matches!(event.fact, LifecycleKind::McpCompleted { .. }));
    let state = lifecycle.run().filter(|_| settles)?;
    let is_last = !lifecycle.has_calls_in_flight() && external_results(state) == 0;
    is_last.then(|| state.execution_context())
}

fn external_results(state: &Run) -> usize {
    state.open_items().iter().filter(|item| matches!(item, PendingItem::ExternalResult(_))).count()
}

#[expect(clippy::wildcard_enum_match_arm, reason = "picks the events that concern it")]
fn record(place: &LogContext<'_>, event: &LifecycleEvent) {
    let (iteration, agent) = (event.iteration, place.agent());
    match &event.fact {
        LifecycleKind::Started { agent, model, .. } => {
            record!(info, place, { %agent, %model, } "Agent execution started");
        }
        LifecycleKind::Resumed { .. } => record!(info, place, {} "run resumed"),
        LifecycleKind::Paused { by, .. } => record!(info, place, { iteration, by, } "run paused"),
        LifecycleKind::Unpaused { by, .. } => record!(info, place, { iteration, by, } "run continued"),
        LifecycleKind::ServerAuth { authorization: ServerAuthorization { server, status, reason: Some(reason) } } => {
            record!(warn, place, { %server, status = status.as_str(), reason, } "MCP server not authorized");
        }
        LifecycleKind::CompensationStarted { status, undo } => {
            record!(warn, place, { iteration, status = status.as_str(), calls = undo.len(), } "compensation started");
        }
        LifecycleKind::ToolsListed { tools, left_out, changed, warnings } => {
            record!(info, place, { tools = tools.len(), left_out = left_out.len(), } "Tool registration complete");
            for tool in changed {
                record!(warn, place, { %tool, } "tool definition changed during the run");
            }
            for reason in warnings {
                record!(warn, place, { reason, } "rule or pattern matches no tool");
            }
            for left in left_out {
                let server = left.server.as_ref().map_or("-", |server| server.as_str());
                let tool = left.tool.as_deref().unwrap_or("*");
                record!(warn, place, { server, tool, reason = left.reason, } "tool left out");
            }
        }
        LifecycleKind::ModelReplied { tool_calls, .. } if !tool_calls.is_empty() => {
            record!(info, place, { iteration, calls = named(tool_calls), } "LLM requested tool calls");
        }
        LifecycleKind::ModelRetrying { model, attempt, instead_of: Some(before) } => {
            record!(warn, place, { iteration, attempt, %model, instead_of = %before, } "fallback model called");
        }
        LifecycleKind::ModelCallRefused { model, reason, .. } => {
            record!(warn, place, { iteration, %model, reason, } "model call refused");
        }
        LifecycleKind::ModelFailed { model, attempt, error: Failure { code, message, .. }, .. } => {
            record!(warn, place, { agent, iteration, attempt, %model, %code, reason = message, } "model call failed");
        }
        LifecycleKind::CompactionCompleted { model, duration_ms, .. } => {
            record!(info, place, { iteration, %model, duration_ms, } "conversation compacted");
        }
        LifecycleKind::CompactionFailed { error: Failure { code, message, .. }, .. } => {
            record!(warn, place, { agent, iteration, %code, reason = message, } "compaction failed");
        }
        LifecycleKind::McpExecuting { call, .. } => {
            record!(info, place, { iteration, call = %call.call_id, tool = call.tool_name, } "MCP call sent");
        }
        LifecycleKind::InputRequested { call, asks, .. } | LifecycleKind::InputRequired { call, asks, .. } => {
            let asks = asks.len();
            record!(info, place, { iteration, call = %call.call_id, tool = call.tool_name, asks, } "input requested");
        }
        LifecycleKind::TaskStarted { call, task_id, .. } => {
            record!(info, place, { iteration, call = %call.call_id, tool = call.tool_name, task_id, } "task created");
        }
        LifecycleKind::ExternalRequested { call } => {
            record!(info, place, { iteration, call = %call.call_id, tool = call.tool_name, } "external result requested");
        }
        LifecycleKind::McpCompleted { call, end: CallEnd { error: Some(kind), .. }, duration_ms, .. } => {
            record!(
                error, place, { iteration, call = %call.call_id, tool = call.tool_name, kind, duration_ms, }
                "MCP invocation failed"
            );
        }
        LifecycleKind::McpCompleted { call, problems, .. } if !problems.is_empty() => {
            let problems = problems.len();
            record!(
                warn, place, { iteration, call = %call.call_id, tool = call.tool_name, problems, }
                "result violates MCP, or does not match the tool's output schema"
            );
        }
        LifecycleKind::Rejected { call, reason, .. } => {
            let reason = reason.as_str();
            record!(info, place, { iteration, call = %call.call_id, tool = call.tool_name, reason, } "call rejected");
        }
        LifecycleKind::ValidationFailed { target: "output", problems, .. } => {
            record!(warn, place, { iteration, problems = problems.len(), } "Response invalid");
        }
        LifecycleKind::ValidationFailed { call_id: Some(call), problems, advisory: true, .. } => {
            let problems = problems.len();
            record!(warn, place, { iteration, call = %call, problems, } "arguments do not match the tool's schema; the call goes on");
        }
        LifecycleKind::BudgetExhausted { used, max } => {
            record!(warn, place, { iteration, used, max, } "Budget exhausted");
        }
        LifecycleKind::Completed { .. } => {
            record!(info, place, { agent, iteration, status = "completed", } "LLM finalized response");
        }
        LifecycleKind::Cancelled { .. } => {
            record!(info, place, { agent, iteration, status = "cancelled", } "run ended");
        }
        LifecycleKind::Failed { error: Failure { code, message, context, .. }, .. }
        | LifecycleKind::Incomplete { error: Failure { code, message, context, .. }, .. }
        | LifecycleKind::Expired { error: Failure { code, message, context, .. }, .. } => {
            let (status, context) = (event.name().trim_start_matches("execution."), context.as_deref());
            let model = context.and_then(|context| context.model.as_ref()).map(tracing::field::display);
            let attempt = context.and_then(|context| context.attempt);
            record!(error, place, { agent, iteration, status, model, attempt, %code, reason = message, } "run ended");
        }
        _ => record!(debug, place, { iteration, event = event.name(), } ),
    }
}

fn named(calls: &[CallRef]) -> String {
    let named: Vec<String> = calls.iter().map(|call| format!("{} {}", call.tool_name, call.call_id)).collect();
    named.join(", ")
}
