//! Trace context of a log record: the run, and the span that represents the event.

use crate::core::id::RunId;
use crate::core::run::{Event, Recorded, Run, Status};
use crate::core::trace::SpanContext;
use crate::telemetry::lifecycle::{Fact, Lifecycle, LifecycleEvent};

/// The trace context of a record.
#[derive(Clone, Debug)]
pub(super) struct Place<'a> {
    pub(super) run: &'a RunId,
    /// `None` for a run that is unknown here.
    span: Option<SpanContext>,
}

impl<'a> Place<'a> {
    pub(super) fn of(run: &'a RunId, span: Option<SpanContext>) -> Self {
        Self { run, span }
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
    recorded: &Recorded,
) -> Vec<(Place<'a>, LifecycleEvent)> {
    let events = lifecycle.tell(recorded);
    let begins = matches!(recorded.event, Event::Started(_) | Event::Resumed { .. } | Event::ModelCalled { .. });
    if begins {
        lifecycle.take_in(recorded);
    }
    let place = |event: &LifecycleEvent| Place::of(run, lifecycle.run().map(|state| span_of(state, &event.fact)));
    let placed = events.into_iter().map(|event| (place(&event), event)).collect();
    if !begins {
        lifecycle.take_in(recorded);
    }
    placed
}

fn span_of(run: &Run, fact: &Fact) -> SpanContext {
    match fact {
        Fact::ModelCalled { .. }
        | Fact::ModelRetrying { .. }
        | Fact::ModelReplied { .. }
        | Fact::ModelFailed { .. } => run.model_context(),
        Fact::McpExecuting { call }
        | Fact::McpCompleted { call, .. }
        | Fact::BuiltinExecuting { call }
        | Fact::BuiltinCompleted { call, .. }
        | Fact::InputRequested { call, .. }
        | Fact::InputRequired { call, .. }
        | Fact::TaskStarted { call, .. } => run.call_context(&call.call_id),
        // A result that comes while the run is idle belongs to a span of the next execution, which is not known yet.
        Fact::ExternalCompleted { .. } if run.status() == Status::Pending => run.execution_context(),
        Fact::ExternalCompleted { call, .. } => run.call_context(&call.call_id),
        Fact::Started { .. }
        | Fact::Resumed { .. }
        | Fact::Pending { .. }
        | Fact::Completed { .. }
        | Fact::Failed { .. }
        | Fact::Cancelled { .. }
        | Fact::ContextBuildStarted
        | Fact::ContextBuildSuccess
        | Fact::ToolsListed { .. }
        | Fact::ApprovalsResolved { .. }
        | Fact::TierSelected { .. }
        | Fact::InputGiven { .. }
        | Fact::ExternalRequested { .. }
        | Fact::Rejected { .. }
        | Fact::BudgetExhausted { .. }
        | Fact::ApprovalRequested { .. }
        | Fact::ApprovalDecided { .. }
        | Fact::ApprovalExpired { .. }
        | Fact::PendingExpired { .. }
        | Fact::PendingExtended { .. }
        | Fact::Drifted { .. }
        | Fact::QuestionAsked { .. }
        | Fact::QuestionAnswered { .. }
        | Fact::ValidationFailed { .. }
        | Fact::OutputValidated
        | Fact::MessageAdded { .. }
        | Fact::Fragment(_) => run.execution_context(),
    }
}
