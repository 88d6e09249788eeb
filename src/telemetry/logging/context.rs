//! Trace context of a log record: the run, and the span that represents the event.

use toolgate_core::id::{AgentName, RunId};
use toolgate_core::lifecycle::{Lifecycle, LifecycleEvent, LifecycleKind};
use toolgate_core::run::{Event, JournalEntry, Run, Status};
use toolgate_core::trace::SpanContext;

/// The trace context of a record.
#[derive(Clone, Debug)]
pub(super) struct LogContext<'a> {
    pub(super) run: &'a RunId,
    /// `None` for a run that is unknown here.
    span: Option<SpanContext>,
    agent: Option<AgentName>,
}

impl<'a> LogContext<'a> {
    pub(super) fn new(run: &'a RunId, span: Option<SpanContext>) -> Self {
        Self { run, span, agent: None }
    }

    /// The run's agent, where the record of an ending or a failure names it.
    pub(super) fn agent(&self) -> Option<tracing::field::DisplayValue<&AgentName>> {
        self.agent.as_ref().map(tracing::field::display)
    }

    pub(super) fn trace_id(&self) -> Option<tracing::field::DisplayValue<String>> {
        self.span.as_ref().map(|span| tracing::field::display(span.trace.to_string()))
    }

    pub(super) fn span_id(&self) -> Option<tracing::field::DisplayValue<String>> {
        self.span.as_ref().map(|span| tracing::field::display(span.span.to_string()))
    }
}

/// The events of a fact, each with its trace context; folds the fact. A fact that opens a span belongs to that span, so
/// it is folded first. Any other fact belongs to a span that is already open and that it may close, so it is folded
/// last.
pub(super) fn places<'a>(
    lifecycle: &mut Lifecycle,
    run: &'a RunId,
    recorded: &JournalEntry,
) -> Vec<(LogContext<'a>, LifecycleEvent)> {
    let events = lifecycle.events_of(recorded);
    let begins = matches!(recorded.event, Event::Started(_) | Event::Resumed { .. } | Event::ModelCalled { .. });
    if begins {
        lifecycle.apply(recorded);
    }
    let place = |event: &LifecycleEvent| LogContext {
        agent: lifecycle.run().map(|state| state.started().spec.agent.clone()),
        ..LogContext::new(run, lifecycle.run().map(|state| span_of(state, &event.fact)))
    };
    let placed = events.into_iter().map(|event| (place(&event), event)).collect();
    if !begins {
        lifecycle.apply(recorded);
    }
    placed
}

fn span_of(run: &Run, fact: &LifecycleKind) -> SpanContext {
    if let LifecycleKind::ModelCalled { .. }
    | LifecycleKind::ModelRetrying { .. }
    | LifecycleKind::ModelReplied { .. }
    | LifecycleKind::ModelFailed { .. } = fact
    {
        return run.model_context();
    }
    if let LifecycleKind::CompactionStarted { .. }
    | LifecycleKind::CompactionCompleted { .. }
    | LifecycleKind::CompactionFailed { .. } = fact
    {
        return run.compaction_context();
    }
    // A result that comes while the run is idle belongs to a span of the next execution, which is not known yet.
    if matches!(fact, LifecycleKind::ExternalCompleted { .. }) && run.status() == Status::Pending {
        return run.execution_context();
    }
    let (LifecycleKind::McpExecuting { call, .. }
    | LifecycleKind::McpCompleted { call, .. }
    | LifecycleKind::BuiltinExecuting { call }
    | LifecycleKind::BuiltinCompleted { call, .. }
    | LifecycleKind::InputRequested { call, .. }
    | LifecycleKind::InputRequired { call, .. }
    | LifecycleKind::TaskStarted { call, .. }
    | LifecycleKind::ExternalCompleted { call, .. }) = fact
    else {
        return run.execution_context();
    };
    run.call_context(&call.call_id)
}
