//! Span labels: one label for each span of a run. The driver hashes these labels with the trace id to name the parent
//! of an outgoing request, telemetry to name the span itself: the two have to agree.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Event, JournalEntry};
use crate::id::{CallId, FeedbackId, ServerId};
use crate::trace::SpanId;

/// The root span of one execution; `seq` is the position of its `execution.started` or `execution.resumed`.
pub fn execution(seq: u64) -> String {
    format!("execution/{seq}")
}

/// Listing the tools of a server, which may include its start; `seq` is the position of the execution for its first
/// listing, and of the next event for any later one.
pub fn listing(seq: u64, server: &ServerId) -> String {
    format!("listing/{seq}/{server}")
}

/// Waiting for admission; `seq` is the position of its `execution.queued`.
pub fn admission(seq: u64) -> String {
    format!("admission/{seq}")
}

/// One logical call of one model, retries included; `seq` is the position of its first attempt within the execution.
pub fn model_call(seq: u64) -> String {
    format!("llm/{seq}")
}

/// One compaction; `seq` is the position of its `compaction.started`.
pub fn compaction(seq: u64) -> String {
    format!("compaction/{seq}")
}

/// One tool call; `round` is the number of elicitation answers that its server received before.
pub fn tool_call(call: &CallId, round: u32) -> String {
    match round {
        0 => format!("tool/{call}"),
        // The model chooses the id, so it may have any form.
        _ => format!("tool-again/{round}/{call}"),
    }
}

/// A check of an answer or a decision about a call; `seq` is the position of its event.
pub fn guardrail(seq: u64) -> String {
    format!("guardrail/{seq}")
}

/// Feedback on the run; `at` is when it was last replaced.
pub fn feedback(id: &FeedbackId, at: Timestamp) -> String {
    format!("feedback/{id}/{at}")
}

/// Whether a span of the run has this id: whether it is the hash of a label, in the trace of an execution of the run. What comes
/// while the run is idle is a span of the next execution.
pub fn has_span(journal: &[JournalEntry], id: SpanId) -> bool {
    let Some(Event::Started(started)) = journal.first().map(|first| &first.event) else { return false };
    let mut rounds: BTreeMap<&CallId, u32> = BTreeMap::new();
    for entry in journal {
        if let Event::InputGiven { call, .. } = &entry.event {
            *rounds.entry(call).or_default() += 1;
        }
    }
    // The spans of copied events belong to the run that they were copied from.
    let own = journal.iter().skip_while(|entry| entry.seq < started.trigger.copied());
    let mut traces = own.clone().filter_map(|entry| entry.event.trace()).peekable();
    let mut current = None;
    own.into_iter().any(|entry| {
        if entry.event.trace().is_some() {
            current = traces.next();
        }
        let positions = [execution, admission, model_call, compaction, guardrail].map(|label| label(entry.seq));
        let listings = started.spec.servers.iter().map(|server| listing(entry.seq, server));
        let calls = entry.event.calls().flat_map(|call| {
            let rounds = rounds.get(call).copied().unwrap_or_default();
            (0..=rounds).map(move |round| tool_call(call, round))
        });
        let mut labels = positions.into_iter().chain(listings).chain(calls);
        let traces = [current, traces.peek().copied()];
        labels.any(|label| traces.into_iter().flatten().any(|trace| trace.span(&label) == id))
    })
}
